"""α-expansion and αβ-swap: near the best on Potts models, never falling, any labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal.inference.alpha_beta_swap import AlphaBetaSwapInference
from chordal.inference.alpha_expansion import AlphaExpansionInference
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.max_flow import MaxFlowInference
from chordal.potentials import Potentials
from chordal.structures import Chain, FactorGraph, Graph, Grid

MOVES = [AlphaExpansionInference, AlphaBetaSwapInference]
moves = pytest.mark.parametrize("method", MOVES, ids=["expansion", "swap"])


def potts(rng, shape, n_labels, strength):
    grid = Grid([shape], n_labels)
    reward = strength * rng.random(grid.n_cliques)
    tables = reward[:, None, None] * np.eye(n_labels)
    return Potentials(grid, rng.normal(size=grid.n_states), tables)


def lp_bound(p):
    """What no labelling of one pairwise example exceeds: the local polytope's best."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    s, rows, columns, values, right = p.structure, [], [], [], []
    cells = s.n_states + np.concatenate([[0], np.cumsum(s.table_sizes)])

    def equation(positive, negative, value):
        rows.extend([len(right)] * (len(positive) + len(negative)))
        columns.extend([*positive, *negative])
        values.extend([1.0] * len(positive) + [-1.0] * len(negative))
        right.append(value)

    for v in range(s.n_variables):
        equation(range(s.state_offsets[v], s.state_offsets[v + 1]), [], 1.0)
    for c in range(s.n_cliques):
        i, j = s.scope(c)
        cell = np.arange(cells[c], cells[c + 1]).reshape(s.label_counts[[i, j]])
        for label, row in enumerate(cell):
            equation(row, [s.state_offsets[i] + label], 0.0)
        for label, column in enumerate(cell.T):
            equation(column, [s.state_offsets[j] + label], 0.0)
    matrix = coo_array((values, (rows, columns)), (len(right), cells[-1])).tocsr()
    cost = -np.concatenate([p.unary, p.untied().tables])
    return -linprog(cost, A_eq=matrix, b_eq=right, method="highs").fun


@moves
@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_within_a_percent_of_the_relaxations_bound_on_potts_models(method, strength):
    for seed in range(2):
        p = potts(np.random.default_rng(seed), (12, 12), 4, strength)
        found, bound = method().map(p), lp_bound(p)
        assert found.convergence.status is Status.CONVERGED
        assert bound * 0.99 <= found.score[0] <= bound + 1e-6


def test_within_a_percent_of_trw_s_bound_on_larger_ones():
    trw_s = pytest.importorskip("chordal.inference.trw_s").TRWSInference()
    rng, grid = np.random.default_rng(0), Grid([(40, 40)], 5)
    for strength in (0.5, 1.0, 2.0):
        p = Potentials(grid, rng.normal(size=grid.n_states), strength * np.eye(5))
        found, bound = AlphaExpansionInference().map(p).score, trw_s.map(p).bound
        assert 0.99 * bound[0] <= found[0] <= bound[0] + 1e-6


@moves
def test_the_best_of_small_potts_models_nearly_always(method):
    best = 0
    for seed in range(40):
        p = potts(np.random.default_rng(seed), (3, 3), 3, 1.0)
        best += method().map(p).score[0] >= ExhaustiveInference().map(p).score[0] - 1e-9
    assert best >= 36


def test_a_swap_of_two_labels_is_exact_if_submodular():
    p = potts(np.random.default_rng(0), (20, 30), 2, 2.0)
    found = AlphaBetaSwapInference().map(p)
    assert_allclose(found.score, MaxFlowInference().map(p).score)
    assert found.convergence.n_iter == 2  # the second round finds nothing


def one_move_best(p, labels, alpha):
    """The best labelling in which some variables take α, by trying all sets."""
    n, best = len(labels), -np.inf
    for bits in range(2**n):
        chosen = [alpha if bits >> v & 1 else labels[v] for v in range(n)]
        best = max(best, p.score(chosen)[0])
    return best


def test_no_expansion_is_better_at_the_end():
    for seed in range(10):
        p = potts(np.random.default_rng(seed), (2, 4), 3, 1.0)
        found = AlphaExpansionInference().map(p)
        for alpha in range(3):
            assert one_move_best(p, found.labels, alpha) <= found.score[0] + 1e-9


@moves
def test_more_rounds_never_lower_the_score_of_any_scores(method):
    rng = np.random.default_rng(0)
    for _ in range(20):
        edges = [(i, j) for i in range(12) for j in range(i) if rng.random() < 0.4]
        graph = Graph([12], [edges], rng.integers(1, 5, 12))
        p = Potentials(
            graph, rng.normal(size=graph.n_states), rng.normal(size=graph.table_sizes.sum())
        )
        counts = graph.label_counts
        start = [int(u.argmax()) for u in np.split(p.unary, np.cumsum(counts)[:-1])]
        scores = [p.score(start)[0], *(method(k).map(p).score[0] for k in (1, 2, 3, 20))]
        assert (np.diff(scores) >= 0.0).all()
        assert scores[-1] > scores[0]


@moves
def test_constraints_at_the_start_are_repaired(method):
    same = np.where(np.eye(3) == 1.0, 0.0, -np.inf)
    unary = np.eye(3)[[0, 1, 2, 1, 1]]
    found = method().map(Potentials(Chain([5], 3), unary, same))
    assert_array_equal(found.labels, np.ones(5))
    assert found.score == 3.0


@moves
def test_cliques_of_one_variable_count_as_its_scores(method):
    graph = FactorGraph([3], [[(1,), (0, 1), (1, 2), (1,)]], 3)
    tables = [np.array([0.0, 0.0, 5.0]), np.eye(3).ravel(), np.eye(3).ravel(), np.full(3, 7.0)]
    p = Potentials(graph, np.zeros(9), np.concatenate(tables), np.arange(4))
    found = method().map(p)
    assert_array_equal(found.labels, [2, 2, 2])
    assert found.score == 14.0


@moves
def test_each_example_is_decided_by_itself(method):
    rng = np.random.default_rng(0)
    grid = Grid([(3, 4), (0, 3), (2, 2), (5, 5)], 3)
    p = Potentials(grid, rng.normal(size=grid.n_states), 0.7 * np.eye(3))
    found = method().map(p)
    for e, shape in enumerate(grid.shapes):
        first, last = grid.variable_offsets[e : e + 2]
        alone = Potentials(
            Grid([shape], 3),
            p.unary[3 * first : 3 * last],
            p.tables,
            np.zeros(grid.clique_offsets[e + 1] - grid.clique_offsets[e]),
            [0, 9],
        )
        assert_array_equal(found.labels[first:last], method().map(alone).labels)


@moves
def test_too_few_rounds_are_said(method):
    p = potts(np.random.default_rng(0), (10, 10), 4, 1.0)
    run = method(max_iter=1).map(p).convergence
    assert (run.status, run.n_iter) == (Status.MAX_ITERATIONS, 1)
    assert run.change > 0.0


@moves
def test_refusals(method):
    with pytest.raises(ValueError, match="max_iter must be an integer of at least 1"):
        method(max_iter=0)
    triplet = Potentials(FactorGraph([3], [[(0, 1, 2)]], 2), np.zeros(6), np.zeros(8))
    with pytest.raises(UnsupportedError, match=r"alpha_.* does not support FactorGraph"):
        method().map(triplet)
