import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import InfeasibleError
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.potentials import Potentials, refuse_infeasible
from chordal.structures import Chain, FactorGraph, Grid
from chordal.testing import MODELS, feasible_labels


def test_one_table_for_all_or_one_for_each():
    chain = Chain([3, 2], n_labels=2)
    tied = Potentials(chain, np.zeros(10), [1, 2, 3, 4])
    assert_array_equal(tied.table_of_clique, [0, 0, 0])
    assert_array_equal(tied.table(2), [[1, 2], [3, 4]])
    each = Potentials(chain, np.zeros(10), np.arange(12))
    assert_array_equal(each.table_of_clique, [0, 1, 2])
    assert_array_equal(each.table(2), [[8, 9], [10, 11]])


def test_tables_of_different_sizes():
    chain = Chain([4], n_labels=[2, 3, 2, 3])
    p = Potentials(chain, np.zeros(10), np.arange(12), [0, 1, 0])
    assert_array_equal(p.table_offsets, [0, 6, 12])
    assert p.table(0).shape == (2, 3)
    assert p.table(1).shape == (3, 2)
    assert_array_equal(p.table(2), p.table(0))


def test_shapes_are_flattened_and_numbers_become_float64():
    p = Potentials(Chain([2], 2), np.zeros((2, 2), dtype=np.float32), [[0, 1], [2, 3]])
    assert p.unary.shape == p.tables.shape == (4,)
    assert p.unary.dtype == p.tables.dtype == np.float64


@pytest.mark.parametrize("name", MODELS)
def test_score_is_the_sum_of_what_the_labels_choose(name):
    rng = np.random.default_rng(0)
    p = MODELS[name](rng)
    labels, s = feasible_labels(p, rng), p.structure
    expected = np.zeros(s.n_examples)
    for example in range(s.n_examples):
        for v in range(s.variable_offsets[example], s.variable_offsets[example + 1]):
            expected[example] += p.unary[s.state_offsets[v] + labels[v]]
        for c in range(s.clique_offsets[example], s.clique_offsets[example + 1]):
            expected[example] += p.table(c)[tuple(labels[s.scope(c)])]
    assert_allclose(p.score(labels), expected, rtol=1e-12)
    assert_allclose(p.untied().score(labels), expected, rtol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_indicators_are_the_derivative_of_the_score(name):
    rng = np.random.default_rng(0)
    p = MODELS[name](rng)
    labels, parts = feasible_labels(p, rng), p.zeros()
    weight = rng.uniform(0.5, 2.0, p.structure.n_examples)
    parts.add_indicators(labels, scale=-2.0, weight=weight)
    other = p.like(rng.normal(size=len(p.unary)), rng.normal(size=len(p.tables)))
    inner = parts.unary @ other.unary + parts.tables @ other.tables
    assert_allclose(inner, -2.0 * weight @ other.score(labels), rtol=1e-10)
    plain = p.zeros()
    plain.add_indicators(labels)
    assert plain.unary.sum() == p.structure.n_variables
    assert plain.tables.sum() == p.structure.n_cliques


def test_untied_keeps_the_model():
    p = MODELS["chain_some_tied"](np.random.default_rng(0))
    untied = p.untied()
    assert_array_equal(untied.table_of_clique, np.arange(7))
    for clique in range(7):
        assert_array_equal(untied.table(clique), p.table(clique))
    untied.tables[:] = 0.0
    assert (p.tables != 0.0).all()


def test_zeros_and_like_share_the_structure_only():
    p = MODELS["chain_tied"](np.random.default_rng(0))
    zeros = p.zeros()
    assert zeros.structure is p.structure
    assert zeros.table_of_clique is p.table_of_clique
    zeros.unary[0] = 5.0
    assert p.unary[0] != 5.0
    assert p.check() is p


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros(3), np.zeros(4)), "unary must have 4 scores, got 3"),
        ((np.zeros(4), np.zeros(5)), "tables must have 4 cells for this structure, got 5"),
        ((np.zeros(4), np.zeros(4), [0, 0]), r"one entry per clique \(1\)"),
        ((np.zeros(4), np.zeros(4), [[0]]), r"one entry per clique \(1\)"),
        ((np.zeros(4), np.zeros(4), [1], [0, 4]), "table_of_clique must be between 0 and 0"),
        ((np.zeros(4), np.zeros(4), [-1], [0, 4]), "table_of_clique must be between 0 and 0"),
        ((np.zeros(4), np.zeros(4), [-1]), "table_of_clique must be between"),
        ((np.zeros(4), np.zeros(4), [0], [0, 2, 4]), "table of clique 0 must have 4 cells, got 2"),
        ((np.zeros(4), np.zeros(4), [0], [1, 5]), "tables must have"),
        ((np.zeros(4), np.zeros(4), [0], []), "tables must have"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        Potentials(Chain([2], 2), *arguments)


@pytest.mark.parametrize("offsets", [[0, 100, 104, 4], [0, -8, -4, 4], [0, 6, 2, 6, 4]])
def test_offsets_that_go_back_are_refused(offsets):
    """Their differences may fit while a table lies outside the memory."""
    with pytest.raises(ValueError, match="table"):
        Potentials(Chain([2], 2), np.zeros(4), np.zeros(4), [1], offsets)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0], "one entry per variable"),
        ([[0, 0, 0]], "one entry per variable"),
        ([0, 0, 3], "label count - 1"),
        ([2, 0, 0], "label count - 1"),
        ([0, -1, 0], "label count - 1"),
    ],
)
def test_bad_labels(labels, message):
    p = Potentials(Chain([3], [2, 3, 3]), np.zeros(8), np.zeros(15))
    for call in (p.score, p.add_indicators):
        with pytest.raises(ValueError, match=message):
            call(labels)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["unary", "tables"])
def test_scores_that_are_no_scores(name, bad):
    p = Potentials(Chain([2], 2), np.zeros(4), np.zeros(4))
    getattr(p, name)[2] = bad
    with pytest.raises(ValueError, match=rf"finite or -inf, got {bad} in {name}\[2\]"):
        p.check()
    getattr(p, name)[2] = -np.inf
    p.check()


def test_the_infeasible_example_is_named():
    refuse_infeasible(np.array([]))
    refuse_infeasible(np.array([0.0, -1e300]))
    with pytest.raises(InfeasibleError, match="no labelling of example 2 is allowed"):
        refuse_infeasible(np.array([0.0, -5.0, -np.inf]))


@pytest.mark.parametrize("name", MODELS)
def test_the_bound_is_one(name):
    p = MODELS[name](np.random.default_rng(0))
    if ExhaustiveInference().supports(p.structure):
        best = ExhaustiveInference().map(p).score
        assert (p.bound() >= best - 1e-9 * (1.0 + np.abs(best))).all()


def test_the_bound_is_the_best_score_where_cliques_do_not_meet():
    rng, graph = (
        np.random.default_rng(0),
        FactorGraph([6], [[(0, 2, 1), (4, 3)]], [2, 3, 2, 2, 3, 4]),
    )
    p = Potentials(graph, rng.normal(size=16), rng.normal(size=18))
    assert_allclose(p.bound(), ExhaustiveInference().map(p).score, rtol=1e-12)
    p.tables[12:] = -np.inf
    assert p.bound() == -np.inf  # nothing is allowed


def test_shares_of_rows_tighten_the_bound():
    grid = Grid([(5, 5)], 2)
    p = Potentials(grid, np.tile([1.0, 0.0], 25), [0, 0, 0, 1])  # labels 0 alone, or 1 in pairs
    assert p.bound() < 25 + grid.n_cliques
    assert p.bound() >= p.score(np.ones(25))


@pytest.mark.parametrize("fixed", [np.ones(2, dtype=bool), np.zeros(3, dtype=int)])
def test_what_is_fixed_is_said_of_every_variable(fixed):
    p = Potentials(Chain([3], 2), np.zeros(6), np.zeros(4))
    with pytest.raises(ValueError, match=r"fixed must be bool, one per variable \(3\), got"):
        p.given([0, 0, 0], fixed)
