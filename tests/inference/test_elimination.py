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


@pytest.mark.parametrize("order", ["auto", "min_fill", "min_weight", "sweep", "search"])
def test_the_same_answers_as_a_junction_tree(order):
    p = grid(6, 15)
    one, other = EliminationInference(order=order), JunctionTreeInference()
    assert_allclose(one.log_partition(p), other.marginals(p).log_partition, rtol=1e-13)
    best = one.map(p)
    assert_array_equal(best.labels, other.k_best(p, 1).labels[0])
    assert_allclose(best.score, p.score(best.labels), rtol=1e-13)
    found, expected = (m.marginals(p, weight=np.array([1.0, 0.5])) for m in (one, other))
    assert_allclose(found.log_partition, expected.log_partition, rtol=1e-13)
    assert_allclose(found.parts.unary, expected.parts.unary, rtol=1e-10)
    assert_allclose(found.parts.tables, expected.parts.tables, rtol=1e-10)
    assert_allclose(one.entropy(p), other.entropy(p), rtol=1e-11)


def test_the_same_tree_gives_the_same_answers_bit_for_bit():
    p = grid(5, 9, n_labels=3)
    one, other = EliminationInference(order="min_fill"), JunctionTreeInference(order="min_fill")
    assert_array_equal(one.marginals(p).parts.tables, other.marginals(p).parts.tables)
    assert_array_equal(one.entropy(p), other.entropy(p))
    drawn = [m.sample(p, 7, np.random.default_rng(0)) for m in (one, other)]
    assert_array_equal(*drawn)


def test_forbidden_labels():
    rng = np.random.default_rng(0)
    structure = Grid([(4, 5)], 3)
    tables = rng.normal(size=(structure.n_cliques, 9))
    tables[rng.random(tables.shape) < 0.2] = -np.inf
    p = Potentials(structure, rng.normal(size=structure.n_states), tables)
    found = EliminationInference().marginals(p)
    expected = JunctionTreeInference().marginals(p)
    assert np.isfinite(found.log_partition).all()
    assert_allclose(found.parts.tables, expected.parts.tables, rtol=1e-11)


def test_it_reaches_further_than_a_junction_tree():
    p = grid(8, 200)
    whole = JunctionTreeInference(order="sweep").tree_size(p.structure)
    needs = {
        question: EliminationInference(order="sweep").tree_size(p.structure, question)
        for question in ("log_partition", "map", "marginals")
    }
    assert all(need.largest == whole.largest for need in needs.values())
    assert needs["log_partition"].bytes < whole.bytes / 50
    assert needs["map"].bytes < needs["marginals"].bytes < whole.bytes / 2
    expected = JunctionTreeInference().marginals(p)
    for question, need in needs.items():
        budget = {"order": "sweep", "memory_limit": need.bytes}
        assert not JunctionTreeInference(**budget).supports(p.structure)
        with pytest.raises(UnsupportedError, match="'elimination' answers this question"):
            JunctionTreeInference(**budget).require(question, p.structure)
        answer = getattr(EliminationInference(**budget), question)(p)
        if question == "log_partition":
            assert_allclose(answer, expected.log_partition, rtol=1e-13)
        if question == "marginals":
            assert_allclose(answer.parts.unary, expected.parts.unary, rtol=1e-9)
        budget["memory_limit"] -= 1
        with pytest.raises(UnsupportedError, match="'elimination' would need"):
            getattr(EliminationInference(**budget), question)(p)


def test_what_needs_all_tables_is_refused():
    p = grid(2, 2)
    for ask in (lambda m: m.k_best(p, 2), lambda m: m.marginals_derivative(p, p)):
        with pytest.raises(UnsupportedError, match="'elimination' does not compute"):
            ask(EliminationInference())


def test_a_clique_too_large_is_refused():
    structure = FactorGraph([20], [[list(range(20))]], n_labels=10)
    with pytest.raises(UnsupportedError, match="clique of 20 variables"):
        EliminationInference().require("map", structure)
