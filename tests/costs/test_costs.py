"""Costs against their definitions."""

import itertools

import numpy as np
import pytest

from chordal._errors import UnsupportedError
from chordal.costs.chunk import ChunkCost
from chordal.costs.hamming import Hamming
from chordal.costs.weighted_hamming import WeightedHamming
from chordal.metrics import chunks
from chordal.potentials import Potentials
from chordal.structures import Chain, Structure

TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]


def limits(labels):
    """Where chunks begin and end, by the evaluation's own reader."""
    return [(c.start, c.end, c.type) for c in chunks([TAGS[k] for k in labels])]


def test_chunk_cost_counts_limits_that_are_missed_or_made_up():
    p = Potentials(Chain([4], 5), np.zeros(20), np.zeros(25))
    cost, rng = ChunkCost(TAGS, missed=2.0, false=0.5), np.random.default_rng(0)
    for gold in rng.integers(0, 5, (20, 4)):
        own = limits(gold)
        for y in itertools.islice(itertools.product(range(5), repeat=4), 0, None, 7):
            found, price = limits(y), 0.0
            for side in (0, 1):
                mine = {(c[side], c[2]) for c in own}
                other = {(c[side], c[2]) for c in found}
                price += 0.5 * (2.0 * len(mine - other) + 0.5 * len(other - mine))
            assert cost.of(p, np.array(y), gold)[0] == pytest.approx(price)


def test_chunk_cost_shares_tables_between_equal_situations():
    chain = Chain([50, 50], 5)
    p = Potentials(chain, np.zeros(500), np.zeros(25))
    gold = np.tile([0, 1, 2, 2, 0], 20).astype(np.int32)
    told = ChunkCost(TAGS).add(p, gold)
    assert len(told.tables) == 25 * 5  # the pairs O–B, B–I, I–I, I–O, O–O


def test_where_the_chunk_cost_cannot_work():
    with pytest.raises(ValueError, match="give it labels"):
        ChunkCost().require(Chain([2], 5))
    with pytest.raises(UnsupportedError, match="another number"):
        ChunkCost(TAGS).require(Chain([2], 4))
    one = Structure([5], np.array([0, 1]), np.zeros(0, int), np.zeros(1, int), np.array([0, 0]))
    with pytest.raises(UnsupportedError, match="cost 'chunk' needs a chain"):
        ChunkCost(TAGS).require(one)
    with pytest.raises(ValueError, match="needs labels that are tags"):
        ChunkCost().for_labels([0, 1], np.arange(2))


def test_weighted_hamming_from_names():
    labels, order = ["b", "a", "c"], np.array([1, 0, 2])  # numbers by frequency
    cost = WeightedHamming({"a": 4.0, ("a", "c"): 9.0, ("b", "c"): 0.0}).for_labels(labels, order)
    # rows and columns: b, a, c
    assert cost.costs.tolist() == [[0.0, 1.0, 0.0], [4.0, 0.0, 9.0], [1.0, 1.0, 0.0]]


BAD = [
    ([[0, -1], [1, 0]], "not negative"),
    ([[0, np.nan], [1, 0]], "finite"),
    ([[1, 1], [1, 0]], "0 on the diagonal"),
    ([[0, 1]], "square matrix"),
    ("much", "matrix of numbers"),
]


@pytest.mark.parametrize(("costs", "message"), BAD)
def test_bad_costs_are_refused(costs, message):
    with pytest.raises(ValueError, match=message):
        WeightedHamming(costs)


def test_bad_names_are_refused():
    labels, order = ["a", "b"], np.arange(2)
    for costs, message in [
        ({"q": 1.0}, "neither a label nor a pair"),
        ({("a", "q"): 1.0}, "neither a label nor a pair"),
        ({("a", "a"): 1.0}, "against itself"),
        ({"a": -1.0}, "not negative"),
    ]:
        with pytest.raises(ValueError, match=message):
            WeightedHamming(costs).for_labels(labels, order)
    with pytest.raises(ValueError, match="matrix of the 2 classes"):
        WeightedHamming(np.ones((3, 3)) - np.eye(3)).for_labels(labels, order)
    p = Potentials(Chain([1], 2), np.zeros(2), [])
    with pytest.raises(ValueError, match="for_labels"):
        WeightedHamming({"a": 2.0}).add(p, np.array([0]))


def test_class_weights_multiply_rows():
    weight = np.array([2.0, 0.5])
    assert Hamming().with_class_weight(weight).costs.tolist() == [[0.0, 2.0], [0.5, 0.0]]
    given = WeightedHamming([[0, 3], [4, 0]], normalize=True).with_class_weight(weight)
    assert given.costs.tolist() == [[0.0, 6.0], [2.0, 0.0]]
    assert given.normalize


def test_the_chunk_cost_reads_bilou_as_iobes():
    one = ChunkCost(["O", "B-X", "I-X", "E-X", "S-X"])
    other = ChunkCost(["O", "B-X", "I-X", "L-X", "U-X"])
    rng = np.random.default_rng(0)
    potentials = Potentials(Chain([6], n_labels=5), np.zeros(30), np.zeros(25))
    for _ in range(50):
        found, gold = rng.integers(5, size=(2, 6)).astype(np.int32)
        assert one.of(potentials, found, gold)[0] == other.of(potentials, found, gold)[0]
