"""Loopy belief propagation: known values, schedules, domains, large and odd graphs."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import InfeasibleError
from chordal._status import Status
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.loopy_bp import SCHEDULES, LoopyBPInference
from chordal.potentials import Potentials
from chordal.structures import Chain, FactorGraph, Graph, Grid, Tree
from chordal.testing import MODELS, check_inference

exact = ExhaustiveInference()


def ising(structure, coupling, field=0.0):
    unary = np.tile([field, -field], structure.n_variables)
    return Potentials(structure, unary, coupling * np.array([1.0, -1.0, -1.0, 1.0]))


def ring(n):
    return Graph([n], [[(k, (k + 1) % n) for k in range(n)]], n_labels=2)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("n", [3, 8])
def test_bethe_of_an_ising_ring(schedule, n):
    # Z = (2 cosh J)^n + (2 sinh J)^n; the fixed point without a field has uniform messages, whose
    # Bethe value is the first term alone.
    p = ising(ring(n), 0.7)
    found = LoopyBPInference(schedule=schedule).marginals(p)
    assert_allclose(found.log_partition, n * np.log(2 * np.cosh(0.7)), rtol=1e-12)
    assert_allclose(found.parts.unary, 0.5, atol=1e-12)


def test_a_ring_in_a_field_has_the_values_of_its_transfer_matrix():
    # On one loop, Bethe's Z is the largest eigenvalue of the transfer matrix to the power n.
    coupling, field, n = 0.4, 0.3, 7
    T = np.array(
        [
            [np.exp(coupling + field), np.exp(-coupling)],
            [np.exp(-coupling), np.exp(coupling - field)],
        ]
    )
    found = LoopyBPInference().log_partition(ising(ring(n), coupling, field))
    assert_allclose(found, n * np.log(np.linalg.eigvalsh(T).max()), rtol=1e-12)


def test_schedules_and_domains_settle_at_the_same_point():
    rng = np.random.default_rng(3)
    grid = Grid([(6, 7), (2, 2)], n_labels=3, neighbours=8)
    p = Potentials(grid, rng.normal(size=grid.n_states), 0.2 * rng.normal(size=9))
    results = [
        LoopyBPInference(schedule=schedule, damping=damping, domain=domain).marginals(p)
        for schedule in SCHEDULES
        for damping in (0.0, 0.4)
        for domain in ("auto", "log")
    ]
    for found in results:
        assert found.convergence.status is Status.CONVERGED
        assert_allclose(found.log_partition, results[0].log_partition, rtol=1e-10)
        assert_allclose(found.parts.unary, results[0].parts.unary, atol=1e-6)
        assert_allclose(found.parts.tables, results[0].parts.tables, atol=1e-5)


def mixed_graph(rng):
    """Edges in both directions between variables of one to seven labels, some of high degree."""
    n = 40
    pairs = np.array([(i, j) for i in range(n) for j in range(i) if rng.random() < 0.1 or j == 0])
    pairs[::2] = pairs[::2, ::-1]
    return Graph([n], [pairs], n_labels=rng.integers(1, 8, size=n))


def check_beside_single_edges(p, max_iter):
    """In logarithms every message is made by itself. After few sweeps nothing has settled."""
    found = LoopyBPInference("parallel", max_iter=max_iter).marginals(p)
    single = LoopyBPInference("parallel", max_iter=max_iter, domain="log").marginals(p)
    assert_allclose(found.log_partition, single.log_partition, rtol=1e-12)
    assert_allclose(found.parts.unary, single.parts.unary, atol=1e-12)
    assert_allclose(found.parts.tables, single.parts.tables, atol=1e-11)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5, 6, 7, 9, 13, "mixed"])
def test_edges_side_by_side_give_the_messages_of_single_edges(n_labels):
    rng = np.random.default_rng(4)
    s = mixed_graph(rng) if n_labels == "mixed" else Grid([(5, 6), (3, 3)], n_labels)
    cells = [s.table_sizes.sum()] + ([n_labels**2] if n_labels != "mixed" else [])
    for n_cells in cells:  # a table for every edge, and one for all
        p = Potentials(s, rng.normal(size=s.n_states), rng.normal(size=n_cells))
        check_beside_single_edges(p, max_iter=4)


LATTICES = [
    Grid([(12, 13)], 5),
    Grid([(11, 9)], 3, neighbours=8),
    Grid([(4, 5, 6)], 2, neighbours=6),
    Graph([60], [[(k, (k + d) % 60) for k in range(60) for d in (1, 7, 20)]], 4),  # a torus
]


@pytest.mark.parametrize("lattice", LATTICES, ids=lambda s: f"{s.n_variables} variables")
def test_lattices_of_whole_blocks_give_the_messages_of_single_edges(lattice):
    rng = np.random.default_rng(6)
    n_cells = lattice.table_sizes.sum()
    p = Potentials(lattice, rng.normal(size=lattice.n_states), rng.normal(size=n_cells))
    check_beside_single_edges(p, max_iter=5)


def test_edges_beside_larger_cliques_give_the_messages_of_single_edges():
    rng = np.random.default_rng(7)
    n = 30
    scopes = [(k, k + 1) for k in range(n - 1)] + [(k, k + 5) for k in range(n - 5)]
    scopes += [(k, k + 2, k + 4) for k in range(0, n - 4, 3)] + [(k,) for k in range(0, n, 4)]
    s = FactorGraph([n], [scopes], n_labels=3)
    p = Potentials(s, rng.normal(size=s.n_states), rng.normal(size=s.table_sizes.sum()))
    check_beside_single_edges(p, max_iter=3)


def test_edges_side_by_side_respect_what_is_forbidden():
    rng = np.random.default_rng(1)
    grid = Grid([(7, 8)], n_labels=4)
    tables = rng.normal(size=16 * grid.n_cliques)
    tables[rng.random(len(tables)) < 0.1] = -np.inf
    p = Potentials(grid, rng.normal(size=grid.n_states), tables)
    found = LoopyBPInference(schedule="parallel", max_iter=5).marginals(p)
    single = LoopyBPInference(schedule="parallel", max_iter=5, domain="log").marginals(p)
    assert_allclose(found.parts.tables, single.parts.tables, atol=1e-11)
    assert (found.parts.tables[tables == -np.inf] == 0.0).all()


def test_best_labels_do_not_depend_on_the_schedule():
    rng = np.random.default_rng(2)
    for n_labels in (2, 3, 5, 7):
        grid = Grid([(9, 9)], n_labels)
        tables = 0.3 * rng.normal(size=grid.n_cliques * n_labels**2)
        p = Potentials(grid, 2.0 * rng.normal(size=grid.n_states), tables)
        results = [LoopyBPInference(schedule=schedule).map(p) for schedule in SCHEDULES]
        for found in results:
            assert found.convergence.status is Status.CONVERGED
            assert_array_equal(found.labels, results[0].labels)


def test_products_over_a_clique_that_underflow():
    # Four numbers of e^-113 at each end of an edge: one more product leaves floating point.
    f, low = -np.inf, -113.0
    only_first = [[low, 0, f, f, f], [low, f, 0, f, f], [low, f, f, 0, f], [low, f, f, f, 0]]
    leaves = [(0, k) for k in (2, 3, 4)] + [(1, k) for k in (5, 6, 7)]
    graph = Graph([8], [[(0, 1), *leaves]], n_labels=[5, 5] + [1] * 6)
    unary = only_first[0] * 2 + [0.0] * 6
    tables = np.concatenate([np.zeros(25), *(only_first[1:] * 2)])
    found = LoopyBPInference().marginals(Potentials(graph, unary, tables))
    assert_allclose(found.log_partition, [8 * low], rtol=1e-14)
    assert_allclose(found.parts.unary[[0, 5]], 1.0)


def test_close_to_exact_where_interactions_are_weak():
    rng = np.random.default_rng(0)
    grid = Grid([(3, 4)], n_labels=2)
    p = Potentials(grid, rng.normal(size=24), 0.2 * rng.normal(size=4))
    found, truth = LoopyBPInference().marginals(p), exact.marginals(p)
    assert_allclose(found.log_partition, truth.log_partition, atol=1e-3)
    assert_allclose(found.parts.unary, truth.parts.unary, atol=1e-3)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "name", ["cliques_of_every_size", "graph_extreme_scores", "tree_forbidden"]
)
def test_the_contract_holds_for_every_schedule(schedule, name):
    rng = np.random.default_rng(5)
    for domain in ("auto", "log"):
        method = LoopyBPInference(schedule=schedule, domain=domain)
        check_inference(method, MODELS[name](rng), rng)


def test_order_five_goes_to_log_space_and_is_exact_without_loops():
    rng = np.random.default_rng(0)
    graph = FactorGraph([6], [[(4, 0, 3, 1, 2), (2, 5)]], n_labels=[2, 3, 2, 2, 2, 3])
    p = Potentials(graph, rng.normal(size=14), rng.normal(size=48 + 6), [0, 1], [0, 48, 54])
    found, truth = LoopyBPInference().marginals(p), exact.marginals(p)
    assert_allclose(found.log_partition, truth.log_partition, rtol=1e-12)
    assert_allclose(found.parts.tables, truth.parts.tables, atol=1e-12)


def test_a_star_of_many_strong_messages_does_not_underflow():
    # 300 neighbours each pull with e^20: their product leaves the range of floating point.
    n = 300
    star = Graph([n + 1], [[(0, k) for k in range(1, n + 1)]], n_labels=2)
    unary = np.tile([0.0, 20.0], n + 1)
    p = Potentials(star, unary, [5.0, 0.0, 0.0, 5.0])
    found = LoopyBPInference().marginals(p)
    log_z = np.logaddexp(n * np.logaddexp(5.0, 20.0), 20.0 + n * np.logaddexp(0.0, 25.0))
    assert_allclose(found.log_partition, log_z, rtol=1e-13)
    assert_allclose(found.parts.unary[0], np.exp(n * np.logaddexp(5.0, 20.0) - log_z), atol=1e-12)


def test_ties_on_a_tree_are_broken_consistently():
    # Two best labellings, (0, 0, 0, …) and (1, 1, 1, …): labels taken one by one must not mix.
    tree = Tree([[-1, 0, 0, 1, 1, 2, 2]], n_labels=2)
    found = LoopyBPInference().map(Potentials(tree, np.zeros(14), [1.0, 0.0, 0.0, 1.0]))
    assert found.bound is None
    assert_allclose(found.score, 6.0)


def test_impossible_examples_are_named():
    differ = [-np.inf, 0.0, 0.0, -np.inf]
    loop = Graph([2, 4], [[(0, 1)], [(0, 1), (1, 2), (2, 0), (2, 3)]], n_labels=2)
    unary = np.zeros(12)
    unary[4:6] = [0.0, -np.inf]  # with one label fixed, messages find that three cannot differ
    p = Potentials(loop, unary, differ)
    method = LoopyBPInference()
    assert_array_equal(method.log_partition(p) == -np.inf, [False, True])
    for question in (method.marginals, method.map):
        with pytest.raises(InfeasibleError, match="example 1"):
            question(p)


def test_not_settled_is_said():
    p = ising(Grid([(6, 6)], n_labels=2), 0.5, 0.1)
    found = LoopyBPInference(max_iter=2).marginals(p)
    assert found.convergence.status is Status.MAX_ITERATIONS
    assert found.convergence.n_iter == 2
    assert found.convergence.change > 0.0
    assert_allclose(found.parts.unary.reshape(-1, 2).sum(axis=1), 1.0, rtol=1e-12)


def test_converged_examples_stop_by_themselves():
    quick, slow = ising(Grid([(2, 2)], 2), 0.1), ising(Grid([(9, 9)], 2), 0.4, 0.05)
    both = ising(Grid([(2, 2), (9, 9)], 2), 0.4)
    both.unary[8:] = slow.unary
    assert LoopyBPInference().marginals(quick).convergence.n_iter < 20
    alone = LoopyBPInference().marginals(slow)
    together = LoopyBPInference().marginals(both)
    assert_array_equal(together.parts.unary[8:], alone.parts.unary)


def test_max_product_on_a_loop_has_a_rough_bound():
    rng = np.random.default_rng(0)
    p = MODELS["grid_potts"](rng)
    found = LoopyBPInference(damping=0.3).map(p)
    assert_array_equal(found.bound, p.bound())
    assert_allclose(found.score, exact.map(p).score, rtol=0.05)


def test_a_long_chain_takes_two_passes():
    rng = np.random.default_rng(0)
    chain = Chain([20_000], n_labels=3)
    p = Potentials(chain, rng.normal(size=chain.n_states), rng.normal(size=9))
    from chordal.inference.chain import ChainInference

    found, truth = LoopyBPInference(schedule="parallel").marginals(p), ChainInference().marginals(p)
    assert found.convergence.n_iter == 1
    assert_allclose(found.log_partition, truth.log_partition, rtol=1e-12)
    assert_allclose(found.parts.unary, truth.parts.unary, atol=1e-10)
    assert_allclose(LoopyBPInference().map(p).score, ChainInference().map(p).score, rtol=1e-12)


@pytest.mark.slow
def test_a_million_nodes():
    rng = np.random.default_rng(0)
    grid = Grid([(1000, 1000)], n_labels=2)
    p = Potentials(grid, rng.normal(size=grid.n_states), [0.3, 0.0, 0.0, 0.3])
    start = time.perf_counter()
    found = LoopyBPInference(tol=1e-3).marginals(p)
    assert found.convergence.status is Status.CONVERGED
    assert time.perf_counter() - start < 60.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"schedule": "random"}, "schedule must be one of"),
        ({"damping": 1.0}, "damping must be below 1"),
        ({"damping": -0.1}, "damping must be a number"),
        ({"tol": -1.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"domain": "scaled"}, "domain must be one of"),
    ],
)
def test_parameters_are_checked(parameters, message):
    with pytest.raises(ValueError, match=message):
        LoopyBPInference(**parameters)
