"""TRW-S: its bound, its labellings, Potts tables, constraints."""

import copy
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import InfeasibleError, UnsupportedError
from chordal._status import Status
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.loopy_bp import LoopyBPInference
from chordal.inference.trw_s import TRWSInference
from chordal.potentials import Potentials
from chordal.structures import Chain, FactorGraph, Graph, Grid
from chordal.testing import MODELS


def random_grid(rng, shape, n_labels, strength, tables=None):
    grid = Grid([shape], n_labels)
    if tables is None:
        tables = strength * rng.normal(size=grid.table_sizes.sum())
    return Potentials(grid, rng.normal(size=grid.n_states), tables)


def test_the_bound_falls_and_stays_above_the_best_score():
    rng = np.random.default_rng(1)
    p = random_grid(rng, (3, 3), 3, 1.5)
    best = ExhaustiveInference().map(p).score
    bounds = [TRWSInference(tol=0.0, max_iter=k).map(p).bound[0] for k in (1, 2, 3, 5, 10, 50)]
    assert (np.diff(bounds) <= 1e-12).all()
    assert bounds[-1] >= best - 1e-9
    assert bounds[0] > bounds[-1]  # and it does something


def test_attractive_grids_are_solved_and_proved():
    # The relaxation of attractive two-label models is tight.
    rng = np.random.default_rng(0)
    p = random_grid(rng, (4, 4), 2, 1.0, tables=[0.8, 0.0, 0.0, 0.8])
    found = TRWSInference(tol=0.0, max_iter=5000).map(p)
    assert_allclose(found.score, ExhaustiveInference().map(p).score, rtol=1e-12)
    assert found.gap[0] < 1e-6


@pytest.mark.parametrize("n_labels", [2, 3, 5, 9])
def test_potts_tables_take_the_fast_path_to_the_same_bound(n_labels):
    rng = np.random.default_rng(n_labels)
    grid = Grid([(5, 6)], n_labels)
    p = Potentials(grid, rng.normal(size=grid.n_states), 0.7 * np.eye(n_labels) - 0.2)
    nearly = 0.7 * np.eye(n_labels) - 0.2
    nearly[0, 1] += 1e-13  # no longer one
    general = p.like(p.unary, nearly.ravel())
    a, b = (TRWSInference(max_iter=50, tol=0.0).map(q) for q in (p, general))
    assert_allclose(a.bound, b.bound, rtol=1e-9)
    assert_allclose(a.score, b.score, rtol=1e-9)


def test_a_potts_model_is_solved_almost():
    rng = np.random.default_rng(0)
    p = random_grid(rng, (20, 20), 4, 0.0, tables=0.6 * np.eye(4))
    found = TRWSInference().map(p)
    assert found.gap[0] < 0.01 * abs(found.score[0])
    assert found.score[0] >= LoopyBPInference(damping=0.5).map(p).score[0] - 1e-9


def test_chains_are_exact():
    rng = np.random.default_rng(0)
    p = Potentials(Chain([7, 1, 0], 3), rng.normal(size=24), rng.normal(size=9))
    found = TRWSInference().map(p)
    assert_allclose(found.score, ExhaustiveInference().map(p).score, rtol=1e-12)
    assert_allclose(found.gap, 0.0, atol=1e-9)
    assert found.convergence.status is Status.CONVERGED


def test_cliques_of_one_and_edges_twice():
    rng = np.random.default_rng(0)
    graph = FactorGraph([3], [[(0,), (1, 0), (0, 1), (1, 2), (2, 0)]], n_labels=[2, 3, 2])
    p = Potentials(graph, rng.normal(size=7), rng.normal(size=2 + 6 + 6 + 6 + 4))
    found = TRWSInference().map(p)
    assert found.bound[0] >= ExhaustiveInference().map(p).score[0] - 1e-12
    assert_allclose(p.score(found.labels), found.score)


def test_constraints_are_kept_or_the_score_says_so():
    rng = np.random.default_rng(0)
    p = MODELS["graph_forbidden"](rng)
    found = TRWSInference().map(p)
    assert found.score[0] > -np.inf
    assert np.isfinite(found.bound[0])


def test_impossible_examples_are_named():
    same = [0.0, -np.inf, -np.inf, 0.0]
    graph = Graph([2, 2], [[(0, 1)], [(1, 0)]], n_labels=2)
    p = Potentials(graph, [0, 0, 0, 0, 0, -np.inf, -np.inf, 0], same)
    with pytest.raises(InfeasibleError, match="example 1"):
        TRWSInference().map(p)


def test_larger_cliques_are_refused():
    p = MODELS["triplets"](np.random.default_rng(0))
    with pytest.raises(UnsupportedError, match="trw_s"):
        TRWSInference().map(p)


def test_the_same_each_time():
    rng = np.random.default_rng(0)
    p = random_grid(rng, (8, 8), 3, 1.0)
    first, second = TRWSInference().map(p), TRWSInference().map(p)
    assert_array_equal(first.labels, second.labels)
    assert_array_equal(first.bound, second.bound)


@pytest.mark.parametrize("parameters", [{"tol": -1.0}, {"max_iter": 0}])
def test_parameters_are_checked(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        TRWSInference(**parameters)


def test_a_long_run_that_gains_little_says_so():
    """28,560 edges of 60 labels: 10⁹ steps are 146 iterations."""
    rng = np.random.default_rng(0)
    size, n = 120, 60
    steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    grid = Grid([(size, size)], n)
    p = Potentials(grid, rng.random((size, size, n)), -0.1 * np.minimum(steps, 3))
    found = TRWSInference(min_progress=0.05).map(p)
    assert found.convergence.status is Status.SETTLED
    assert found.convergence.n_iter < 200
    on = TRWSInference(min_progress=0.0, max_iter=found.convergence.n_iter + 20).map(p)
    assert on.convergence.status is not Status.SETTLED
    assert on.bound[0] < found.bound[0]
    assert found.score[0] <= found.bound[0]


def test_in_training_each_call_goes_on_from_the_last_one():
    rng = np.random.default_rng(3)
    p = random_grid(rng, (12, 12), 3, 0.7)
    method = TRWSInference(max_iter=2).in_training()
    bounds = [method.map(p).bound[0] for _ in range(8)]
    assert bounds[-1] < bounds[0] - 1e-3  # two iterations alone do not get there
    assert (np.diff(bounds) <= 1e-9).all()
    other = p.like(rng.normal(size=p.unary.shape), rng.normal(size=p.tables.shape))
    found = method.map(other)  # messages of other scores: the bound holds all the same
    best = TRWSInference().map(other)
    assert_allclose(found.score, other.score(found.labels))
    assert found.bound[0] >= best.score[0] - 1e-9


def test_a_method_in_training_can_be_copied():
    p = random_grid(np.random.default_rng(3), (6, 6), 3, 0.7)
    method = TRWSInference().in_training()
    expected = method.map(p).labels
    for made in (copy.deepcopy(method), pickle.loads(pickle.dumps(method))):
        assert_array_equal(made.map(p).labels, expected)


def test_messages_of_labels_that_were_forbidden_are_begun_anew():
    p = Potentials(Graph([2], [[(0, 1)]], n_labels=2), [0.0] * 4, [0.0, -np.inf, -np.inf, 0.0])
    method = TRWSInference().in_training()
    method.map(p)
    free = p.like(np.array([0.0, 5.0, 3.0, 0.0]), np.zeros(4))
    assert_array_equal(method.map(free).labels, [1, 0])


def test_edges_in_any_order_and_direction_with_single_cliques_between():
    rng = np.random.default_rng(4)
    cliques = [(3, 1), (2,), (0, 3), (4, 2), (1, 2), (0,), (4, 0)]
    graph = FactorGraph([5], [cliques], n_labels=[2, 3, 4, 2, 3])
    for _ in range(20):
        p = Potentials(graph, rng.normal(size=14), 2 * rng.normal(size=graph.table_sizes.sum()))
        found, best = TRWSInference().map(p), ExhaustiveInference().map(p)
        assert found.bound[0] >= best.score[0] - 1e-9
        assert found.score[0] >= best.score[0] - 1e-9
