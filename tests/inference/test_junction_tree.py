"""Junction trees: against transfer matrices and brute force; refusals with the memory they name."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import InfeasibleError, UnsupportedError
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.junction_tree import JunctionTreeInference
from chordal.inference.tree import TreeInference
from chordal.potentials import Potentials
from chordal.structures import FactorGraph, Graph, Grid, Tree
from chordal.testing import check_infeasible, check_inference

method = JunctionTreeInference()


def ising(height, width, seed=0):
    rng = np.random.default_rng(seed)
    grid = Grid([(height, width)], n_labels=2)
    return Potentials(grid, rng.normal(size=grid.n_states), rng.normal(size=4))


def transfer(p, height, width):
    """log Z of a grid, a column at a time: all 2^height states of one against those of the next."""
    states = np.indices((2,) * height).reshape(height, -1)
    u, table = p.unary.reshape(height, width, 2), p.table(0)
    rows = np.arange(height)
    along = sum(table[np.ix_(states[r], states[r])] for r in rows)
    across = sum(table[states[r], states[r + 1]] for r in rows[:-1])
    log = np.zeros(states.shape[1])
    for x in range(width):
        if x:
            most = log.max()
            log = np.log(np.exp(log - most) @ np.exp(along)) + most
        log = log + across + sum(u[r, x, states[r]] for r in rows)
    return np.logaddexp.reduce(log)


@pytest.mark.parametrize("order", ["auto", "min_fill", "min_weight", "sweep"])
@pytest.mark.parametrize("shape", [(3, 40), (7, 9), (1, 5)])
def test_grids_by_transfer_matrices(shape, order):
    p = ising(*shape)
    expected = transfer(p, *shape)
    found = JunctionTreeInference(order=order)
    assert_allclose(found.log_partition(p)[0], expected, rtol=1e-12)
    assert_allclose(found.marginals(p).log_partition[0], expected, rtol=1e-12)


def test_marginals_are_the_derivative_of_log_z():
    p, step = ising(5, 12), 1e-4
    parts = method.marginals(p).parts
    rng = np.random.default_rng(1)
    d = p.like(rng.normal(size=len(p.unary)), rng.normal(size=len(p.tables)))
    moved = [
        method.log_partition(p.like(p.unary + h * d.unary, p.tables + h * d.tables))[0]
        for h in (step, -step)
    ]
    slope = parts.unary @ d.unary + parts.tables @ d.tables
    assert_allclose((moved[0] - moved[1]) / (2 * step), slope, rtol=1e-6)


def test_orders_agree_on_every_answer():
    p = ising(4, 6)
    a, b = (JunctionTreeInference(order=order) for order in ("min_fill", "sweep"))
    assert_allclose(a.marginals(p).parts.tables, b.marginals(p).parts.tables, rtol=1e-11)
    assert_allclose(a.entropy(p), b.entropy(p), rtol=1e-11)
    assert_array_equal(a.k_best(p, 20).labels, b.k_best(p, 20).labels)
    assert_allclose(a.k_best(p, 20).score, b.k_best(p, 20).score, rtol=1e-12)


def test_forests_as_by_tree():
    rng = np.random.default_rng(0)
    p = Potentials(
        Tree([[-1, 0, 0, 1, 1, 2], [-1, -1]], 3), rng.normal(size=24), rng.normal(size=9)
    )
    a, b = method.marginals(p), TreeInference().marginals(p)
    assert_allclose(a.parts.unary, b.parts.unary, rtol=1e-12)
    assert_allclose(a.parts.tables, b.parts.tables, rtol=1e-12)


def test_pieces_and_single_nodes_add_up():
    rng = np.random.default_rng(0)
    ring = [(0, 1), (1, 2), (2, 0)]
    other = [(a + 4, b + 4) for a, b in ring]
    unary, tables = rng.normal(size=14), rng.normal(size=24)
    together = Potentials(Graph([7], [ring + other], 2), unary, tables)
    apart = Potentials(Graph([4, 3], [ring, ring], 2), unary, tables)
    assert_allclose(method.log_partition(together), method.log_partition(apart).sum(), rtol=1e-13)
    assert_allclose(method.entropy(together), method.entropy(apart).sum(), rtol=1e-12)


def test_variables_with_one_label_cost_nothing():
    everyone = [(a, b) for a in range(40) for b in range(a)]
    counts = np.ones(40, dtype=np.int64)
    counts[[3, 17, 30]] = 4
    graph = Graph([40], [everyone], counts)
    assert method.tree_size(graph).treewidth == 2
    assert method.tree_size(graph).largest == 64
    rng = np.random.default_rng(0)
    p = Potentials(graph, rng.normal(size=graph.n_states), rng.normal(size=graph.table_sizes.sum()))
    assert_allclose(method.log_partition(p), ExhaustiveInference().log_partition(p), rtol=1e-12)
    assert_allclose(method.marginals(p).parts.unary[:3], 1.0)


def test_a_clique_of_twenty_is_refused_with_its_memory():
    structure = FactorGraph([21], [[list(range(20)), [19, 20]]], n_labels=5)
    method = JunctionTreeInference(memory_limit=1e9)
    cost = method.tree_size(structure)
    assert (cost.treewidth, cost.largest) == (19, 5**20)
    assert not method.supports(structure)
    with pytest.raises(UnsupportedError) as refusal:
        method.require("marginals", structure)
    message = str(refusal.value)
    assert "'junction_tree'" in message
    assert "clique of 20 variables (0, 1, 2, 3, 4, 5, 6, 7, …)" in message
    assert f"{5**20:,}" in message
    assert "762.9 TB" in message
    assert "memory_limit is 1.0 GB" in message


def test_numbers_too_large_for_the_machine_are_still_named():
    structure = FactorGraph([20], [[list(range(20))]], n_labels=10)
    assert method.tree_size(structure).largest == 10**20
    with pytest.raises(UnsupportedError, match="at least 800,000,000"):
        method.require("map", structure)


def test_the_budget_is_what_is_predicted():
    p = ising(6, 20)
    need = method.tree_size(p.structure).bytes
    assert JunctionTreeInference(memory_limit=need).log_partition(p) == method.log_partition(p)
    with pytest.raises(UnsupportedError, match="would need"):
        JunctionTreeInference(memory_limit=need - 1).log_partition(p)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": "best"}, "order must be one of"),
        ({"memory_limit": 0}, "memory_limit must be a number above 0"),
        ({"memory_limit": "1 GB"}, "memory_limit must be a number"),
    ],
)
def test_bad_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        JunctionTreeInference(**arguments)


def test_a_map_of_four_countries_needs_four_colours():
    every = [(a, b) for a in range(4) for b in range(a)]
    for colours in (3, 4):
        differ = np.where(np.eye(colours) == 1.0, -np.inf, 0.0)
        p = Potentials(Graph([4], [every], colours), np.zeros(4 * colours), differ)
        if colours == 3:
            assert method.log_partition(p)[0] == -np.inf
            for ask in (method.marginals, method.map, method.entropy):
                with pytest.raises(InfeasibleError):
                    ask(p)
            continue
        assert_allclose(method.log_partition(p), np.log(24.0), rtol=1e-14)
        assert len(np.unique(method.map(p).labels)) == 4
        assert_allclose(method.k_best(p, 30).score[0, :24], 0.0)
        assert (method.k_best(p, 30).score[0, 24:] == -np.inf).all()


scores = st.one_of(
    st.floats(-5, 5), st.sampled_from([0.0, -np.inf, -np.inf, 1e4, -1e4, 300.0, -590.0])
)


@st.composite
def factor_graphs(draw):
    n = draw(st.integers(1, 5))
    counts = draw(st.lists(st.integers(1, 3), min_size=n, max_size=n))
    variables = st.lists(st.integers(0, n - 1), min_size=1, max_size=min(n, 3), unique=True)
    graph = FactorGraph([n], [draw(st.lists(variables, max_size=5))], counts)
    cells = int(graph.table_sizes.sum())
    unary = draw(st.lists(scores, min_size=graph.n_states, max_size=graph.n_states))
    tables = draw(st.lists(scores, min_size=cells, max_size=cells))
    return Potentials(graph, unary, tables, np.arange(graph.n_cliques))


@given(factor_graphs(), st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None, derandomize=True, database=None)
def test_any_graph_and_any_scores(potentials, seed):
    rng = np.random.default_rng(seed)
    feasible = np.isfinite(ExhaustiveInference().log_partition(potentials)).all()
    check = check_inference if feasible else check_infeasible
    check(method, potentials, rng)
