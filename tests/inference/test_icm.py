"""Iterated conditional modes, simulated annealing, and the search for allowed labellings."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from chordal import _kernels
from chordal._status import Status
from chordal.inference import INFERENCE
from chordal.inference._cliques import allowed_labels
from chordal.inference._moves import improved_by_trees
from chordal.inference.annealing import AnnealingInference
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.icm import ICMInference
from chordal.inference.junction_tree import JunctionTreeInference
from chordal.potentials import Potentials
from chordal.structures import Chain, FactorGraph, Graph, Grid
from chordal.testing import INFEASIBLE, MODELS

HARD = [name for name in MODELS if "forbidden" in name or "one_labelling" in name]


@pytest.mark.parametrize("name", MODELS)
def test_no_single_label_is_better_at_the_end(name):
    p = MODELS[name](np.random.default_rng(0))
    for method in (ICMInference(), AnnealingInference(n_sweeps=5, n_restarts=1)):
        found = method.map(p)
        assert found.convergence.status is Status.CONVERGED
        assert np.isfinite(found.score).all()
        for v, count in enumerate(p.structure.label_counts):
            for label in range(count):
                other = found.labels.copy()
                other[v] = label
                assert p.score(other).sum() <= found.score.sum() + 1e-8


def test_sweeps_visit_what_a_change_has_unsettled():
    # The last pixel's label travels to the first, one pixel a sweep against the order.
    n = 50
    unary = np.tile([0.1, 0.0], (n, 1))
    unary[-1] = [0.0, 9.0]
    table = [0.0, 0.0, 0.0, 0.3]  # two labels 1 in a row
    found = ICMInference().map(Potentials(Chain([n], 2), unary, table))
    assert_array_equal(found.labels, np.ones(n))
    assert found.convergence.n_iter == n
    few = ICMInference(max_iter=3).map(Potentials(Chain([n], 2), unary, table))
    assert (few.convergence.status, few.convergence.n_iter) == (Status.MAX_ITERATIONS, 3)


@pytest.mark.parametrize("name", MODELS)
def test_no_tree_is_better_at_the_end(name):
    p = MODELS[name](np.random.default_rng(0))
    found = ICMInference(blocks="tree").map(p)
    assert (found.score >= ICMInference().map(p).score - 1e-9).all()
    blocks = _kernels.greedy_forests(p.structure.topology, p.structure.incidence)
    order, offsets = blocks.order, blocks.offsets
    for first, last in pairwise(offsets):
        fixed = np.ones(p.structure.n_variables, dtype=bool)
        fixed[order[first:last]] = False
        best = ExhaustiveInference().map(p.given(found.labels, fixed)).score
        assert_allclose(best, found.score, rtol=1e-9, atol=1e-9)
    if p.structure.is_forest and len(offsets) == 2:
        assert_allclose(found.score, ExhaustiveInference().map(p).score, rtol=1e-9)


def spins(n, seed):
    """A grid whose edges attract and repel at random."""
    rng, grid = np.random.default_rng(seed), Grid([(n, n)], 2)
    strength = rng.normal(size=(grid.n_cliques, 1))
    return Potentials(grid, 0.1 * rng.normal(size=2 * n * n), strength * [1, -1, -1, 1])


def test_trees_are_better_moves_than_single_variables():
    gain, cooled = [], []
    for seed in range(10):
        p = spins(12, seed)
        best = JunctionTreeInference().map(p).score
        single, trees = (ICMInference(blocks=b).map(p).score for b in ("single", "tree"))
        gain.append((best - trees) / (best - single))
        loss = [
            best - AnnealingInference(n_sweeps=n, blocks=blocks, n_restarts=1).map(p).score
            for blocks, n in (("single", 60), ("tree", 30))  # which takes about the same time
        ]
        cooled.append(np.ravel(loss))
    assert np.mean(gain) < 0.5  # of what is missing to the best labelling
    single, trees = np.mean(cooled, axis=0)
    assert trees < single


def test_methods_that_round_end_where_no_tree_gains():
    for seed in range(5):
        p = spins(10, seed)
        best = JunctionTreeInference().map(p).score
        for name in ("trw_s", "ad3", "linear_program", "loopy_bp", "qpbo"):
            found = INFERENCE.get(name)().map(p)
            again = improved_by_trees(p, found)
            assert_array_equal(again.labels, found.labels)
            assert best * 0.9 < found.score <= best + 1e-9


def test_annealing_finds_what_descent_does_not():
    rng, worse, missed = np.random.default_rng(0), 0, 0
    for _ in range(20):
        grid = Grid([(3, 4)], 2)
        p = Potentials(grid, 0.5 * rng.normal(size=24), rng.normal(size=4 * grid.n_cliques))
        best = ExhaustiveInference().map(p).score
        worse += (ICMInference().map(p).score < best - 1e-9).sum()
        missed += (AnnealingInference().map(p).score < best - 1e-9).sum()
    assert worse >= 8
    assert missed <= 1


def test_annealing_of_cliques_of_three_and_a_batch():
    p = MODELS["cliques_of_every_size"](np.random.default_rng(3))
    assert_allclose(AnnealingInference().map(p).score, ExhaustiveInference().map(p).score)


def test_threads_and_seeds():
    rng = np.random.default_rng(0)
    p = Potentials(Grid([(12, 12)], 3), rng.normal(size=432), rng.normal(size=9))
    settings = {"n_sweeps": 3, "n_restarts": 3}
    one = AnnealingInference(**settings).map(p)
    many = AnnealingInference(**settings, n_jobs=3).map(p)
    assert_array_equal(one.labels, many.labels)
    other = AnnealingInference(**settings, random_state=1).map(p)
    assert not np.array_equal(one.labels, other.labels)


def test_the_schedule():
    p = Potentials(Chain([3], 2), [0, 1, 0, -np.inf, 0, 2], [[0.0, 3.0], [-np.inf, 1.0]])
    # Ranges of unary scores 1, 0, 2; four ends of edges with a range of 3; three variables.
    assert_allclose(AnnealingInference(n_sweeps=2).temperatures(p), [5.0, 0.1])
    given = AnnealingInference(n_sweeps=3, hot=4.0, cold=1.0)
    assert_allclose(given.temperatures(p), [4.0, 2.0, 1.0])
    flat = Potentials(Chain([3], 2), np.zeros(6), np.zeros(4))
    assert (AnnealingInference().temperatures(flat) > 0.0).all()
    empty = Potentials(Chain([0], 2), [], [])
    assert AnnealingInference().map(empty).score == [0.0]


def test_parameters_are_checked():
    with pytest.raises(ValueError, match="max_iter must be an integer"):
        ICMInference(max_iter=0)
    with pytest.raises(ValueError, match="hot must be a number above 0"):
        AnnealingInference(hot=0.0)
    with pytest.raises(ValueError, match=r"cold must not be above hot \(1\), got 2"):
        AnnealingInference(hot=1.0, cold=2.0)


@pytest.mark.parametrize("name", [*HARD, *INFEASIBLE])
def test_the_search_finds_or_proves(name):
    for seed in range(5):
        p = (MODELS | INFEASIBLE)[name](np.random.default_rng(seed))
        exists = np.isfinite(ExhaustiveInference().log_partition(p))
        labels, outcome = allowed_labels(p, np.ones(p.structure.n_examples, dtype=bool))
        assert_array_equal(outcome, exists)
        assert np.isfinite(p.score(labels))[exists].all()


@st.composite
def puzzles(draw):
    """Cliques of up to three variables with half of their cells forbidden."""
    n = draw(st.integers(1, 6))
    scope = st.lists(st.integers(0, n - 1), min_size=1, max_size=min(n, 3), unique=True)
    counts = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    graph = FactorGraph([n, 1], [draw(st.lists(scope, max_size=6)), []], [*counts, 2])
    cells = int(graph.table_sizes.sum())
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    scores = np.where(rng.random(cells) < draw(st.sampled_from([0.3, 0.5, 0.7])), -np.inf, 0.0)
    unary = np.where(rng.random(graph.n_states) < 0.1, -np.inf, rng.normal(size=graph.n_states))
    return Potentials(graph, unary, scores, np.arange(graph.n_cliques))


@given(puzzles())
@settings(max_examples=100, deadline=None, derandomize=True, database=None)
def test_the_search_on_any_constraints(p):
    exists = np.isfinite(ExhaustiveInference().log_partition(p))
    labels, outcome = allowed_labels(p, np.ones(2, dtype=bool))
    assert_array_equal(outcome, exists)
    assert np.isfinite(p.score(labels))[exists].all()


def test_the_search_colours_a_map_of_hexagons():
    # Three colours, six neighbours: what the first choices force goes through the whole map.
    rows, columns = 30, 30
    steps = [(0, 1), (1, 0), (1, -1)]
    edges = [
        (r * columns + c, (r + a) * columns + c + b)
        for r in range(rows)
        for c in range(columns)
        for a, b in steps
        if r + a < rows and 0 <= c + b < columns
    ]
    differ = np.where(np.eye(3) == 1.0, -np.inf, 0.0)
    unary = np.random.default_rng(0).normal(size=3 * rows * columns)
    p = Potentials(Graph([rows * columns], [edges], 3), unary, differ)
    assert np.isfinite(ICMInference().map(p).score).all()
    labels, outcome = allowed_labels(p, np.ones(1, dtype=bool))
    assert outcome == [1]
    assert np.isfinite(p.score(labels)).all()


def test_a_million_pixels():
    grid = Grid([(1000, 1000)], 2)
    noisy = np.random.default_rng(0).normal(size=(10**6, 2))
    p = Potentials(grid, noisy, [1.0, 0.0, 0.0, 1.0])
    found = ICMInference().map(p)
    assert found.convergence.status is Status.CONVERGED
    assert found.score > p.score(noisy.argmax(axis=1))
