"""Maximum flow: exact on every submodular model, refusals by edge, large and odd networks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import InfeasibleError, UnsupportedError
from chordal.inference.chain import ChainInference
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.max_flow import MaxFlowInference
from chordal.potentials import Potentials
from chordal.structures import Chain, FactorGraph, Graph, Grid
from chordal.testing import check_infeasible, check_inference

SCORES = st.one_of(st.floats(-3, 3), st.sampled_from([0.0, 1e4, -1e4, -np.inf, -np.inf]))


@st.composite
def submodular(draw):
    """Graphs with one or two labels, each edge made submodular, −inf anywhere it may stand."""
    n = draw(st.integers(1, 6))
    pairs = [(i, j) if (i + j) % 2 else (j, i) for i in range(n) for j in range(i)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    singles = [(v,) for v in draw(st.lists(st.integers(0, n - 1), max_size=2))]
    counts = draw(st.lists(st.sampled_from([1, 2, 2, 2]), min_size=n, max_size=n))
    graph = FactorGraph([n], [[*edges, *singles]], counts)
    tables = []
    for size in graph.table_sizes.tolist():
        table = draw(st.lists(SCORES, min_size=size, max_size=size))
        if size == 4 and max(table[1:3]) > -np.inf:
            if -np.inf in (table[0], table[3]):
                table[1:3] = -np.inf, -np.inf
            elif table[1] + table[2] > table[0] + table[3]:
                table[:2], table[2:] = (table[1], table[0]), (table[3], table[2])
        tables += table
    unary = draw(st.lists(SCORES, min_size=graph.n_states, max_size=graph.n_states))
    return Potentials(graph, unary, tables, np.arange(graph.n_cliques))


@given(submodular())
@settings(max_examples=120, deadline=None, derandomize=True, database=None)
def test_any_submodular_scores(p):
    method, rng = MaxFlowInference(), np.random.default_rng(0)
    assert method.refusal_of(p) is None
    feasible = np.isfinite(ExhaustiveInference().log_partition(p)).all()
    (check_inference if feasible else check_infeasible)(method, p, rng)


def test_the_edge_that_is_not_submodular_is_named():
    graph = Graph([2, 3], [[(0, 1)], [(0, 1), (2, 1)]], n_labels=2)
    tables = [[1, 0, 0, 1], [0, 0, 0, 0], [0, 2, 1, 0.5]]
    p = Potentials(graph, np.zeros(10), tables)
    wrong = r"'max_flow'.* edge 1 of example 1, between variables 2 and 1, .*2 \+ 1 .* 0 \+ 0\.5"
    with pytest.raises(UnsupportedError, match=wrong):
        MaxFlowInference().map(p)
    fixed = p.like(p.unary.copy(), p.tables)
    fixed.unary[6] = -np.inf  # one of its ends has one label left: nothing to refuse
    assert MaxFlowInference().refusal_of(fixed) is None
    assert_allclose(MaxFlowInference().map(fixed).score, ExhaustiveInference().map(fixed).score)


def test_more_labels_and_larger_cliques_are_refused():
    method = MaxFlowInference()
    assert not method.supports(Grid([(2, 2)], 3))
    assert not method.supports(FactorGraph([3], [[(0, 1, 2)]], 2))
    with pytest.raises(UnsupportedError, match="'max_flow' does not support Grid"):
        method.map(Potentials(Grid([(2, 2)], 3), np.zeros(12), np.zeros(9)))


def test_a_rounding_error_is_not_refused():
    table = np.array([0.1 + 0.2, 0.1, 0.2, 0.0])  # s00 + s11 = s01 + s10, but for rounding
    p = Potentials(Chain([3], 2), np.arange(6.0), -table)
    assert MaxFlowInference().refusal_of(p) is None


@pytest.mark.parametrize("spread", [1.0, 1e4, 1e-9])
def test_long_chains_against_the_exact_method(spread):
    rng, n = np.random.default_rng(0), 20_000
    tables = spread * rng.normal(size=(n - 1, 2, 2))
    w = tables[:, 0, 0] + tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0]
    tables[w < 0] = tables[w < 0, ::-1]
    p = Potentials(Chain([n], 2), rng.normal(size=2 * n), tables)
    found, exact = MaxFlowInference().map(p), ChainInference().map(p)
    assert_allclose(found.score, exact.score, rtol=1e-12)


@pytest.mark.parametrize("neighbours", [4, 8])
def test_grids_against_an_independent_flow(neighbours):
    maxflow = pytest.importorskip("networkx").maximum_flow_value
    import networkx as nx

    rng, grid = np.random.default_rng(1), Grid([(9, 11)], 2, neighbours)
    gain = rng.integers(-9, 10, grid.n_variables)
    reward = rng.integers(0, 6, grid.n_cliques)
    unary = np.stack([gain, np.zeros_like(gain)], axis=1)
    p = Potentials(grid, unary, reward[:, None] * np.array([1, 0, 0, 1]))
    network = nx.DiGraph()
    for v, g in enumerate(gain.tolist()):
        network.add_edge("s", v, capacity=max(g, 0))
        network.add_edge(v, "t", capacity=max(-g, 0))
    for (i, j), r in zip(grid.scopes.reshape(-1, 2).tolist(), reward.tolist(), strict=True):
        network.add_edge(i, j, capacity=r)
        network.add_edge(j, i, capacity=r)
    flow = maxflow(network, "s", "t")
    assert MaxFlowInference().map(p).score[0] == np.maximum(gain, 0).sum() + reward.sum() - flow


def test_ties_go_to_label_0_and_nodes_by_themselves_are_decided():
    graph = Graph([4, 0, 2], [[(0, 1), (1, 2)], [], []], n_labels=2)
    p = Potentials(graph, np.zeros(12), [1.0, 0.0, 0.0, 1.0])
    assert_array_equal(MaxFlowInference().map(p).labels, np.zeros(6))
    p.unary[[7, 11]] = 0.5
    assert_array_equal(MaxFlowInference().map(p).labels, [0, 0, 0, 1, 0, 1])


def test_hard_constraints_can_leave_nothing():
    same = np.array([0.0, -np.inf, -np.inf, 0.0])
    n = 1000  # the contradiction has to travel from one end to the other
    unary = np.zeros((2 * n, 2))
    unary[n, 0] = unary[-1, 1] = -np.inf
    with pytest.raises(InfeasibleError, match="example 1"):
        MaxFlowInference().map(Potentials(Chain([n, n], 2), unary, same))


def test_scores_whose_sum_overflows_are_refused():
    p = Potentials(Chain([2], 2), [1e300, 0, 0, 0], [0, 0, 0, 0])
    with pytest.raises(ValueError, match=r"unary\[0\] = 1e\+300 is too large"):
        MaxFlowInference().map(p)


def test_a_million_nodes():
    grid = Grid([(1000, 1000)], 2)
    clean = np.indices((1000, 1000)).sum(axis=0) // 125 % 2
    noisy = clean + np.random.default_rng(0).normal(scale=0.7, size=clean.shape)
    unary = np.stack([np.zeros(10**6), 2 * noisy.ravel() - 1], axis=1)
    found = MaxFlowInference().map(Potentials(grid, unary, [1.0, 0.0, 0.0, 1.0]))
    wrong = (found.labels != clean.ravel()).mean()
    assert wrong < 0.1 * ((noisy > 0.5) != clean).mean()
