"""Brute force, the oracle of the other methods, against models small enough for paper."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import InfeasibleError
from chordal.inference import Spans
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.potentials import Potentials
from chordal.structures import Chain, Structure

# Two variables with labels 0, 1: weights of the four labellings 1, 2, 3 and 6.
WEIGHTS = np.array([[1.0, 2.0], [3.0, 6.0]])
PAIR = Potentials(Chain([2], 2), np.zeros(4), np.log(WEIGHTS))
brute = ExhaustiveInference()


def test_sums():
    log_partition, parts, _ = brute.marginals(PAIR)
    assert_allclose(log_partition, [np.log(12.0)], rtol=1e-14)
    assert_allclose(parts.unary, [3 / 12, 9 / 12, 4 / 12, 8 / 12], rtol=1e-14)
    assert_allclose(parts.tables, WEIGHTS.ravel() / 12, rtol=1e-14)
    p = WEIGHTS / 12
    assert_allclose(brute.entropy(PAIR), [-(p * np.log(p)).sum()], rtol=1e-14)


def test_best():
    assert_array_equal(brute.map(PAIR).labels, [1, 1])
    ranked = brute.k_best(PAIR, 5)
    assert_array_equal(ranked.labels[:4], [[1, 1], [1, 0], [0, 1], [0, 0]])
    assert_allclose(ranked.score[0, :4], np.log([6, 3, 2, 1]), rtol=1e-14)
    assert ranked.score[0, 4] == -np.inf


def test_spans_and_weights():
    zero, one = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
    spans = Spans(zero, one, one, np.array([1, 0], dtype=np.uint8))
    assert_allclose(brute.span_log_probability(PAIR, spans), [np.log(4 / 12)], rtol=1e-14)
    weighted = brute.marginals(PAIR, weight=np.array([2.0])).parts
    assert_allclose(weighted.unary, np.array([3, 9, 4, 8]) / 6, rtol=1e-14)


def test_samples():
    samples = brute.sample(PAIR, 6000, np.random.default_rng(0))
    counts = np.bincount(samples @ [2, 1], minlength=4)
    assert_allclose(counts / 6000, WEIGHTS.ravel() / 12, rtol=0.1)


def test_cliques_of_three():
    structure = Structure(
        [2, 1, 3],
        variable_offsets=np.array([0, 3]),
        scopes=np.array([0, 1, 2]),
        scope_offsets=np.array([0, 3]),
        clique_offsets=np.array([0, 1]),
    )
    potentials = Potentials(structure, np.zeros(6), np.arange(6.0))
    assert_array_equal(brute.map(potentials).labels, [1, 0, 2])
    assert_allclose(brute.log_partition(potentials), [np.log(np.exp(np.arange(6)).sum())])
    assert brute.marginals(potentials).parts.table(0).shape == (2, 1, 3)


def test_nothing_left():
    potentials = Potentials(Chain([2], 2), np.zeros(4), np.full(4, -np.inf))
    assert_array_equal(brute.log_partition(potentials), [-np.inf])
    with pytest.raises(InfeasibleError):
        brute.map(potentials)


@pytest.mark.parametrize(("lengths", "fits"), [([3], True), ([3, 3], True), ([4], False)])
def test_the_limit_is_per_example(lengths, fits):
    assert ExhaustiveInference(max_labellings=8).supports(Chain(lengths, 2)) is fits
    assert brute.supports(Chain([0, 2, 0], 2))
