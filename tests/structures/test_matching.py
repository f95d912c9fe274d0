"""Matchings: what they hold, and what they refuse."""

from itertools import product

import numpy as np
import pytest

from chordal.inference.exhaustive import ExhaustiveInference
from chordal.potentials import matching_potentials
from chordal.structures import Matching


def test_all_pairs_of_an_example_exclude_each_other():
    matching = Matching([3, 0, 2, 1], [2, 4, 0, 3])
    scopes = [tuple(matching.scope(k).tolist()) for k in range(matching.n_cliques)]
    assert scopes == [(0, 1), (0, 2), (1, 2), (3, 4)]
    assert matching.label_counts.tolist() == [3, 3, 3, 1, 1, 4]
    assert matching.table_of_clique.tolist() == [0, 0, 0, 1]
    assert matching.table_offsets.tolist() == [0, 9, 10]


def test_the_labellings_that_are_allowed_are_the_matchings():
    potentials = matching_potentials([np.zeros((3, 2))])
    allowed = 0
    for labels in product(range(3), repeat=3):
        taken = [k for k in labels if k < 2]
        distinct = len(set(taken)) == len(taken)
        assert (potentials.score(labels)[0] == 0.0) == distinct
        allowed += distinct
    log_count = ExhaustiveInference().log_partition(potentials)
    np.testing.assert_allclose(np.exp(log_count), allowed, rtol=1e-12)


def test_bad_counts_are_refused():
    with pytest.raises(ValueError, match="one entry per example, got 2 and 1"):
        Matching([1, 2], [3])
    with pytest.raises(ValueError, match="n_target must be a 1-d array of non-negative"):
        Matching([1], [-1])


def test_bad_scores_are_refused():
    with pytest.raises(ValueError, match=r"scores\[0\] must be an array"):
        matching_potentials([np.zeros(3)])
    with pytest.raises(ValueError, match=r"no_target\[0\] must have a score per source item \(2\)"):
        matching_potentials([np.zeros((2, 3))], [np.zeros(3)])
    with pytest.raises(ValueError, match="finite or -inf, got nan"):
        matching_potentials([np.full((1, 1), np.nan)])
