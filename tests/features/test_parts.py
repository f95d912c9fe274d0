"""Parts of examples: gathered pieces are what one reading gives, and shards in a file are equal."""

import pickle
from itertools import pairwise

import numpy as np
import pytest

from chordal import ChainCRF, GraphCRF, MatchingModel, MultiLabelCRF
from chordal.features import AttributeInput, Parts, Spilled, fetch, release
from chordal.features.attributes import _groups
from chordal.features.joining import fitted_to, head_of, joined_batches, outlined
from chordal.features.parts import Part

RNG = np.random.default_rng(4)
CUTS = [0, 2, 3, 9, 20]
WORDS = [[[f"w{RNG.integers(9)}"] for _ in range(RNG.integers(1, 5))] for _ in range(20)]
GRAPHS = [
    (RNG.normal(size=(4, 2)), [[0, 1], [1, 2], [2, 3]] + [[0, 3]] * (i in (2, 7)))
    for i in range(20)
]


def read(estimator, X):
    whole = estimator._new_reader(X).read(X, grow=True)
    reader = estimator._new_reader(X)
    parts = [reader.read(X[a:b], grow=True) for a, b in pairwise(CUTS)]
    return whole, parts


def same(a, b):
    return pickle.dumps(plain(a)) == pickle.dumps(plain(b))


def plain(batch):
    out = [np.asarray(batch.sizes).tolist(), batch.groups, batch.is_chain]
    for own in batch.cliques:
        data = None if own.rows is None else own.rows.data
        if hasattr(data, "ids"):
            data = [data.offsets.tolist(), data.ids.tolist()]
        elif data is not None:
            data = np.asarray(data).tolist()
        out += [own.pattern, own.listed(batch.sizes).tolist(), own.counts.tolist(), data]
    return out


@pytest.mark.parametrize(
    ("estimator", "X"),
    [(ChainCRF(), WORDS), (GraphCRF(), GRAPHS), (MatchingModel(), [x[0][None] for x in GRAPHS])],
    ids=["chains", "graphs", "matchings"],
)
def test_pieces_are_what_one_reading_gives(estimator, X):
    whole, batches = read(estimator, X)
    golds = [np.arange(int(own.sizes.sum()), dtype=np.int32) for own in batches]
    loaded = [Part(*own) for own in zip(batches, golds, strict=True)]
    let_go = []
    parts = Parts(lambda k: loaded[k], len(loaded), let_go.append)
    assert let_go == [0, 1, 2, 3]
    assert parts.n_examples == 20
    assert parts.outline.groups == whole.groups
    assert parts.outline.is_chain == whole.is_chain
    assert parts.outline.limits(3) == whole.limits(3)
    order = RNG.permutation(20)
    batch, gold = parts.gathered(order)
    assert same(batch, whole.reordered(order))
    assert np.array_equal(gold, np.concatenate(golds)[whole.positions(order)])
    for piece in parts.runs([(0, 1), (1, 8), (8, 20)]):
        begin, end = piece.begin - piece.first, piece.end - piece.first
        found = piece.batch.reordered(np.arange(begin, end))
        assert same(found, whole.reordered(np.arange(piece.begin, piece.end)))


def test_a_pattern_of_some_parts_is_listed_in_all():
    whole, batches = read(GraphCRF(), GRAPHS)
    assert [own.cliques[1].pattern for own in batches] == ["steps", None, None, "steps"]
    outline = outlined([head_of(own) for own in batches])
    assert same(joined_batches([fitted_to(own, outline) for own in batches]), whole)


def test_attributes_that_are_equal_in_all_parts():
    source = AttributeInput()
    X = [[["a", "A", "b", "B"], ["a", "A"], ["c"], ["b", "B"]], [["a"], ["A"], ["b", "B"], ["d"]]]
    rows = [source.read([x], grow=True) for x in X]
    whole = AttributeInput().read(X, grow=True)
    n = source.n_columns
    assert _groups(rows, n).tolist() == _groups([whole], n).tolist() == [0, 1, 2, 2, 4, 5]
    assert _groups(rows[:1], n).tolist() == [0, 0, 2, 2, 4, 5]
    twice = AttributeInput()
    assert _groups([twice.read([[["a"]], [["b", "b"]]], grow=True)], 2) is None


def test_shards_in_a_file_are_equal():
    X = RNG.normal(size=(30, 3))
    model = MultiLabelCRF(structure="full", max_iter=2).fit(X, RNG.integers(2, size=(30, 3)))
    batch = model.reader_.read(X, grow=False)
    shards = [model.layout_.compile(batch, a, a + 10) for a in (0, 10, 20)]
    spilled = Spilled.of(iter(shards))
    expanded = model.layout_.expanded(model.weights_)
    for _ in range(2):
        fetch(spilled[1:])
        for own, other in zip(spilled, shards, strict=True):
            found = model.layout_.potentials(own, expanded)
            expected = model.layout_.potentials(other, expanded)
            assert np.array_equal(found.unary, expected.unary)
            assert np.array_equal(found.tables, expected.tables)
        release(spilled)
    assert len(spilled[1:3]) == 2
    assert isinstance(spilled[1:3], Spilled)
    assert len(Spilled.of([])) == 0
    zeros = spilled[0].frame.tables  # one number, repeated
    assert zeros.shape == shards[0].frame.tables.shape
    assert zeros.strides == (0,)
