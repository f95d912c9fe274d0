"""Models whose tables forbid labellings, with one that is allowed planted: messages keep it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import InfeasibleError
from chordal.inference._cliques import propagated
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.loopy_bp import SCHEDULES, LoopyBPInference
from chordal.inference.mean_field import MeanFieldInference
from chordal.inference.tree_reweighted import TreeReweightedInference
from chordal.potentials import Potentials
from chordal.structures import FactorGraph, Graph

exact = ExhaustiveInference()
METHODS = [
    *(LoopyBPInference(schedule=schedule) for schedule in SCHEDULES),
    LoopyBPInference(damping=0.5),
    LoopyBPInference(domain="log"),
    TreeReweightedInference(),
    MeanFieldInference(),
]


def planted(seed):
    """Clauses of two or three variables, each of which forbids some of their labellings."""
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(3, 9)), int(rng.integers(2, 4))
    solution = rng.integers(0, k, n).astype(np.int32)
    scopes, tables = [], []
    for _ in range(int(rng.integers(n, 5 * n))):
        scope = rng.choice(n, size=int(rng.integers(2, 4)), replace=False)
        table = (seed % 2) * rng.normal(size=(k,) * len(scope))
        for _ in range(int(rng.integers(1, 4))):
            forbidden = rng.integers(0, k, len(scope))
            if (forbidden != solution[scope]).any():
                table[tuple(forbidden)] = -np.inf
        scopes.append(tuple(scope.tolist()))
        tables.append(table.ravel())
    unary = rng.choice([0.0, 1.0, 5.0]) * rng.normal(size=n * k)
    p = Potentials(FactorGraph([n], [scopes], k), unary, np.concatenate(tables), range(len(scopes)))
    assert p.score(solution)[0] > -np.inf
    return p, solution


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_no_satisfiable_model_is_lost(method):
    for seed in range(150):
        p, _ = planted(seed)
        found, truth = method.marginals(p), exact.log_partition(p)[0]
        assert abs(found.log_partition[0] - truth) < 50.0, seed
        shares = found.parts.unary.reshape(p.structure.n_variables, -1)
        assert_allclose(shares.sum(axis=1), 1.0, atol=1e-6, err_msg=str(seed))
        assert np.isfinite(found.parts.tables).all()
        if method.bound == "upper":
            assert found.log_partition[0] >= truth - 1e-9
        if method.bound == "lower":
            assert found.log_partition[0] <= truth + 1e-9


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_best_labellings_are_allowed(schedule):
    for seed in range(150):
        p, solution = planted(seed)
        best = LoopyBPInference(schedule=schedule).map(p)
        assert best.score[0] > -np.inf, seed
        assert_allclose(best.score, p.score(best.labels))
        assert best.bound >= best.score
        assert best.bound >= p.score(solution)


def test_most_of_them_settle():
    ended = [LoopyBPInference().marginals(planted(seed)[0]).convergence for seed in range(100)]
    assert sum(end.status.succeeded for end in ended) >= 95


def test_propagation_strikes_out_nothing_that_a_labelling_has():
    struck = 0
    for seed in range(60):
        p, _ = planted(seed)
        left, possible = propagated(p), exact.marginals(p).parts.unary > 0.0
        assert not (possible & (left.unary == -np.inf)).any()
        assert_allclose(exact.log_partition(left), exact.log_partition(p))
        struck += int((left.unary == -np.inf).sum())
    assert struck > 30


def test_propagation_leaves_models_without_constraints_alone():
    p = Potentials(Graph([3], [[(0, 1), (1, 2), (0, 2)]], 2), [0, -np.inf, 1, 0, 0, 0], np.ones(4))
    assert propagated(p) is p


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_propagation_disproves_is_infeasible(schedule):
    # Neighbours differ round a triangle, with two labels.
    differ = np.array([-np.inf, 0.0, 0.0, -np.inf])
    triangle = Graph([2, 3], [[(0, 1)], [(0, 1), (1, 2), (0, 2)]], 2)
    p = Potentials(triangle, np.zeros(10), differ)
    method = LoopyBPInference(schedule=schedule)
    assert_allclose(method.log_partition(p), [np.log(2), -np.inf])
    for question in (method.marginals, method.map):
        with pytest.raises(InfeasibleError, match="example 1"):
            question(p)


def test_equal_labels_round_a_loop_keep_what_they_score():
    # A chain of equalities that closes: all evidence counts once for exact answers, and the labels
    # of the better sum are the best ones, however far apart the two are.
    n = 40
    ring = Graph([n], [[(k, (k + 1) % n) for k in range(n)]], 2)
    unary = np.tile([0.0, -30.0], n)
    unary[1] = 31.0 * n
    unary[0] = -30.0
    p = Potentials(ring, unary, np.array([0.0, -np.inf, -np.inf, 0.0]))
    for schedule in SCHEDULES:
        method = LoopyBPInference(schedule=schedule)
        assert_array_equal(method.map(p).labels, 1)
        assert np.isfinite(method.log_partition(p)).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_damping_is_raised_where_messages_go_round(schedule):
    # Neighbours repel strongly round odd loops: plain parallel messages jump between two states.
    rng = np.random.default_rng(2)
    n = 8
    dense = Graph([n], [[(a, b) for a in range(n) for b in range(a)]], 2)
    p = Potentials(dense, 0.1 * rng.normal(size=2 * n), 0.7 * np.array([-1.0, 1.0, 1.0, -1.0]))
    found = LoopyBPInference(schedule=schedule).marginals(p)
    assert found.convergence.status.succeeded, found.convergence
