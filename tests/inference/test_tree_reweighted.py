"""Tree-reweighted belief propagation: its forests and its bound."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import InfeasibleError
from chordal._status import Status
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.loopy_bp import LoopyBPInference
from chordal.inference.tree_reweighted import TreeReweightedInference
from chordal.potentials import Potentials
from chordal.structures import FactorGraph, Graph, Grid
from chordal.testing import MODELS

exact = ExhaustiveInference()


def complete(n):
    return Graph([n], [[(a, b) for a in range(n) for b in range(a)]], n_labels=2)


def members(method, structure):
    """[n_forests, n_cliques] of a structure of one example, and the shares."""
    forests = method.forests(structure)
    return forests.flags.reshape(forests.n_forests[0], -1), forests.appearance


@pytest.mark.parametrize("graph", [complete(7), Grid([(4, 5)], 2), Grid([(3, 3)], 2, neighbours=8)])
def test_forests_span_and_cover_every_edge(graph):
    flags, appearance = members(TreeReweightedInference(), graph)
    assert (flags.sum(axis=1) == graph.n_variables - 1).all()
    assert_allclose(flags.mean(axis=0), appearance)
    assert appearance.min() > 0.0
    assert_allclose(appearance.sum(), graph.n_variables - 1)
    for forest in flags:
        edges = graph.scopes.reshape(-1, 2)[forest == 1]
        assert Graph([graph.n_variables], [edges], 2).is_forest


def test_bridges_are_in_every_tree():
    # Two triangles joined by an edge, an edge apart, a node by itself.
    edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3), (6, 7)]
    _, appearance = members(TreeReweightedInference(n_trees=20), Graph([9], [edges], 2))
    assert_array_equal(appearance[[3, 7]], 1.0)
    assert (appearance[[0, 1, 2, 4, 5, 6]] < 1.0).all()
    assert_allclose(appearance[:3].sum(), 2.0)


def test_forests_of_cliques_have_no_loop():
    graph = FactorGraph([5], [[(0, 1, 2), (2, 3, 4), (4, 0, 1), (0, 2), (1,)]], n_labels=2)
    flags, appearance = members(TreeReweightedInference(), graph)
    assert appearance[4] == 1.0
    for forest in flags:
        chosen = [tuple(graph.scope(c)) for c in np.flatnonzero(forest)]
        assert FactorGraph([5], [chosen], 2).is_forest


def test_the_bound_holds_at_any_messages_and_improves():
    rng = np.random.default_rng(0)
    graph = complete(6)
    p = Potentials(graph, rng.normal(size=12), 2.0 * rng.normal(size=graph.table_sizes.sum()))
    truth = exact.log_partition(p)[0]
    bounds = [TreeReweightedInference(max_iter=k).log_partition(p)[0] for k in (1, 2, 5, 200)]
    assert min(bounds) >= truth - 1e-12
    assert bounds[-1] < bounds[0]
    # Where loopy BP is far off and on the wrong side, this one is still a bound.
    strong = p.like(p.unary, 3.0 * p.tables)
    assert TreeReweightedInference().log_partition(strong)[0] >= exact.log_partition(strong)[0]


def test_a_ring_by_hand():
    # Uniform messages are at rest on a ring without a field. With appearance (n - 1) / n each tree
    # is a chain of couplings J n / (n - 1): log Z = n log 2 + (n - 1) log cosh(J n / (n - 1)).
    n, coupling = 4, 0.8
    ring = Graph([n], [[(k, (k + 1) % n) for k in range(n)]], n_labels=2)
    p = Potentials(ring, np.zeros(2 * n), coupling * np.array([1.0, -1.0, -1.0, 1.0]))
    method = TreeReweightedInference(n_trees=n)
    assert_allclose(method.forests(ring).appearance, (n - 1) / n)
    expected = n * np.log(2.0) + (n - 1) * np.log(np.cosh(coupling * n / (n - 1)))
    assert_allclose(method.log_partition(p), expected, rtol=1e-12)


def test_marginals_are_less_sure_than_loopy_ones():
    rng = np.random.default_rng(1)
    p = Potentials(Grid([(5, 5)], 2), 0.3 * rng.normal(size=50), [0.8, 0.0, 0.0, 0.8])
    mine, loopy = TreeReweightedInference().marginals(p), LoopyBPInference().marginals(p)
    assert mine.convergence.status is Status.CONVERGED
    assert np.abs(mine.parts.unary - 0.5).mean() < np.abs(loopy.parts.unary - 0.5).mean()


def test_the_same_seed_gives_the_same_answer():
    p = MODELS["loop_frustrated"](np.random.default_rng(0))
    first = TreeReweightedInference(random_state=1).log_partition(p)
    assert_array_equal(first, TreeReweightedInference(random_state=1).log_partition(p))


def test_impossible_examples_are_named():
    differ = [-np.inf, 0.0, 0.0, -np.inf]
    loop = Graph([2, 3], [[(0, 1)], [(0, 1), (1, 2), (2, 0)]], n_labels=2)
    unary = np.zeros(10)
    unary[5] = -np.inf
    p = Potentials(loop, unary, differ)
    with pytest.raises(InfeasibleError, match="example 1"):
        TreeReweightedInference().marginals(p)
    assert_array_equal(TreeReweightedInference().log_partition(p) == -np.inf, [False, True])


@pytest.mark.parametrize(
    "parameters",
    [{"n_trees": 0}, {"damping": 1.0}, {"tol": -1.0}, {"max_iter": 0}, {"random_state": -1}],
)
def test_parameters_are_checked(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        TreeReweightedInference(**parameters)
