"""Soft and partial targets: slices, scores, and what is refused."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal.inference.exhaustive import ExhaustiveInference
from chordal.objectives.likelihood import Likelihood
from chordal.targets import PartialLabels, SoftLabels, add_target, kind_of, score_of
from chordal.testing import MODELS


def soft(structure, rng):
    q = [rng.dirichlet(np.ones(n)) for n in structure.label_counts]
    return SoftLabels(np.concatenate(q), structure.label_counts), q


@pytest.mark.parametrize("name", ["chain_some_tied", "chain_varied_labels", "triplets"])
def test_the_expected_score_is_that_of_all_labellings(name):
    rng = np.random.default_rng(0)
    p = MODELS[name](rng)
    target, q = soft(p.structure, rng)
    expected = np.zeros(p.structure.n_examples)
    mean = p.zeros()
    for example, (first, last) in enumerate(itertools.pairwise(p.structure.variable_offsets)):
        for labels in itertools.product(*(range(len(row)) for row in q[first:last])):
            chance = np.prod([row[k] for row, k in zip(q[first:last], labels, strict=True)])
            whole = np.zeros(p.structure.n_variables, dtype=np.int32)
            whole[first:last] = labels
            expected[example] += chance * p.score(whole)[example]
            only = np.zeros(p.structure.n_examples)
            only[example] = chance
            mean.add_indicators(whole, weight=only)
    assert_allclose(score_of(p, target), expected, rtol=1e-10)
    parts = p.zeros()
    add_target(parts, target)
    assert_allclose(parts.unary, mean.unary, atol=1e-12)
    assert_allclose(parts.tables, mean.tables, atol=1e-12)


def test_what_is_forbidden_and_has_no_probability_counts_nothing():
    p = MODELS["chain_tied"](np.random.default_rng(0))
    p.unary[1] = p.tables[3] = -np.inf
    labels = np.zeros(8, dtype=np.int32)
    one_hot = np.zeros(24)
    one_hot[::3] = 1.0
    assert_allclose(score_of(p, SoftLabels(one_hot, np.full(8, 3))), p.score(labels))


def test_the_probability_of_a_set_is_the_sum_over_its_labellings():
    rng = np.random.default_rng(1)
    p = MODELS["chain_tied"](rng)
    allowed = rng.random(24) < 0.5
    allowed[::3] = True
    values = (
        Likelihood()
        .evaluate(p, PartialLabels(allowed, np.full(8, 3)), ExhaustiveInference())
        .values
    )
    drawn = ExhaustiveInference().k_best(p, 3**5)
    total = np.zeros(2)
    for labels, score in zip(drawn.labels, drawn.score.T, strict=True):
        inside = allowed[np.arange(8) * 3 + labels]
        total += np.exp(score) * [inside[:5].all(), inside[5:].all()]
    log_z = ExhaustiveInference().log_partition(p)
    assert_allclose(values, log_z - np.log(total), rtol=1e-10)


def test_slices_follow_label_counts():
    counts = [2, 3, 1]
    q = SoftLabels([0.5, 0.5, 0.2, 0.3, 0.5, 1.0], counts)
    assert_array_equal(q[1:3].probability, [0.2, 0.3, 0.5, 1.0])
    sets = PartialLabels([True, False, False, True, True, True], counts)
    assert_array_equal(sets[0:2].allowed, [True, False, False, True, True])
    assert (len(q[0:0]), len(sets), kind_of(q), kind_of(sets)) == (0, 3, "soft", "partial")


def test_bad_targets_are_refused():
    with pytest.raises(ValueError, match="variable 1 must sum to 1"):
        SoftLabels([0.5, 0.5, 0.5, 0.4], [2, 2])
    with pytest.raises(ValueError, match="not negative"):
        SoftLabels([1.5, -0.5], [2])
    with pytest.raises(ValueError, match="at least one possible label"):
        PartialLabels([True, True, False, False], [2, 2])
    with pytest.raises(ValueError, match="per label of every variable"):
        PartialLabels([True], [2, 2])
