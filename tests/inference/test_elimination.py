"""Variable elimination: the junction tree's answers with less memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import UnsupportedError
from chordal.inference.elimination import EliminationInference
from chordal.inference.junction_tree import JunctionTreeInference
from chordal.potentials import Potentials
from chordal.structures import FactorGraph, Grid


def grid(height, width, n_labels=2):
    rng = np.random.default_rng(0)
    structure = Grid([(height, width), (2, 2)], n_labels)
    return Potentials(structure, rng.normal(size=structure.n_states), rng.normal(size=n_labels**2))


@pytest.mark.parametrize("order", ["auto", "min_fill", "min_weight", "sweep"])
def test_the_same_answers_as_a_junction_tree(order):
    p = grid(6, 15)
    one, other = EliminationInference(order=order), JunctionTreeInference()
    assert_allclose(one.log_partition(p), other.marginals(p).log_partition, rtol=1e-13)
    best = one.map(p)
    assert_array_equal(best.labels, other.k_best(p, 1).labels[0])
    assert_allclose(best.score, p.score(best.labels), rtol=1e-13)


def test_it_reaches_further_than_a_junction_tree():
    p = grid(8, 200)
    whole = JunctionTreeInference(order="sweep").cost(p.structure)
    at_once = EliminationInference(order="sweep").cost(p.structure)
    assert at_once.largest == whole.largest
    assert at_once.bytes < whole.bytes / 50
    budget = {"order": "sweep", "max_bytes": at_once.bytes}
    assert not JunctionTreeInference(**budget).supports(p.structure)
    expected = JunctionTreeInference().log_partition(p)
    assert_allclose(EliminationInference(**budget).log_partition(p), expected, rtol=1e-13)
    budget["max_bytes"] -= 1
    with pytest.raises(UnsupportedError, match="'elimination' would need"):
        EliminationInference(**budget).map(p)


def test_a_clique_too_large_is_refused():
    structure = FactorGraph([20], [[list(range(20))]], n_labels=10)
    with pytest.raises(UnsupportedError, match="clique of 20 variables"):
        EliminationInference().require("map", structure)
