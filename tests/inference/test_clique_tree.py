"""Clique trees: valid trees from every order, and the greedy choices made slowly."""

import gc
import itertools
import math
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from chordal.inference._clique_tree import ORDERS, plan_of
from chordal.structures import FactorGraph, Graph, Grid, Tree


def random_graph(seed):
    """Cliques of one to four variables, label counts that differ, pieces."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    cliques = [
        rng.choice(n, size=min(n, int(rng.integers(1, 5))), replace=False).tolist()
        for _ in range(int(rng.integers(0, 12)))
    ]
    return FactorGraph([n], [cliques], rng.integers(1, 5, size=n))


def clusters(plan):
    tree = plan.tree
    offsets, members, residual, parents = (
        tree.member_offsets,
        tree.members,
        tree.residual,
        tree.parent,
    )
    scopes = [members[a:b].tolist() for a, b in itertools.pairwise(offsets)]
    return scopes, residual.tolist(), parents.tolist()


def slow_width_order(structure, rule):
    """The order that `min_fill` and `min_weight` describe, from sets and nothing kept."""
    counts = structure.label_counts
    near = {v: set() for v in range(structure.n_variables)}
    for clique in range(structure.n_cliques):
        scope = [v for v in structure.scope(clique).tolist() if counts[v] > 1]
        for v in scope:
            near[v] |= set(scope) - {v}
    order, cliques = [], []
    while near:

        def price(v):
            missing = sum(b not in near[a] for a in near[v] for b in near[v] if a < b)
            weight = math.prod(counts[[v, *near[v]]].tolist())
            return (missing, weight, v) if rule == "min_fill" else (weight, v)

        best = min(near, key=price)
        order.append(best)
        cliques.append(frozenset(near[best] | {best}))
        for a in near[best]:
            near[a] |= near[best] - {a}
            near[a].discard(best)
        del near[best]
    return order, {c for c in cliques if not any(c < other for other in cliques)}


@pytest.mark.parametrize("rule", ["min_fill", "min_weight"])
@pytest.mark.parametrize("seed", range(25))
def test_orders_are_those_described(rule, seed):
    structure = random_graph(seed)
    scopes, _, _ = clusters(plan_of(structure, rule))
    _, expected = slow_width_order(structure, rule)
    assert {frozenset(s) for s in scopes} == expected


@pytest.mark.parametrize("rule", ORDERS)
@pytest.mark.parametrize("seed", range(25))
def test_every_tree_is_a_junction_tree(rule, seed):
    structure = random_graph(seed)
    plan = plan_of(structure, rule)
    scopes, residual, parents = clusters(plan)
    # Each variable is in the residual of exactly one cluster.
    at_home = [v for s, r in zip(scopes, residual, strict=True) for v in s[:r]]
    assert_array_equal(np.sort(at_home), np.arange(structure.n_variables))
    for i, (scope, r, parent) in enumerate(zip(scopes, residual, parents, strict=True)):
        separator = set(scope[r:])
        if parent < 0:
            assert not separator
            continue
        # Children come first, and what a cluster shares with the rest it shares with its parent.
        assert parent > i
        assert separator
        assert separator == set(scope) & set(scopes[parent])
        assert not set(scopes[parent]) <= set(scope)
    # Every clique is in the cluster it was given to, variables with one label aside.
    offsets, factors = plan.tree.factor_offsets, plan.tree.factors
    assert_array_equal(np.sort(factors), np.arange(structure.n_cliques))
    for i, scope in enumerate(scopes):
        for clique in factors[offsets[i] : offsets[i + 1]]:
            named = structure.scope(clique)
            assert set(named[structure.label_counts[named] > 1].tolist()) <= set(scope)
    # The predicted cells are those of all tables and messages.
    counts = structure.label_counts
    tables = sum(np.prod(counts[scope]) for scope in scopes)
    messages = sum(np.prod(counts[s[r:]]) for s, r in zip(scopes, residual, strict=True))
    tree = plan.tree
    assert tree.cells[0] == tables + messages
    assert tree.messages[0] == messages
    largest = max(np.prod(counts[scope]) for scope in scopes)
    longest = max(np.prod(counts[s[r:]]) for s, r in zip(scopes, residual, strict=True))
    assert tree.largest[0] == largest + longest
    assert tree.streamed[0] <= tree.messages[0] + tree.largest[0] <= tree.cells[0] + longest


@pytest.mark.parametrize(
    ("structure", "treewidth"),
    [
        (Tree([[-1, 0, 0, 1, 1]], 3), 1),
        (Graph([6], [[(k, (k + 1) % 6) for k in range(6)]], 2), 2),
        (Graph([7], [[(a, b) for a in range(7) for b in range(a)]], 2), 6),
        (Graph([3], [[]], 2), 0),
        (FactorGraph([5], [[(0, 1, 2, 3, 4)]], 2), 4),
        (FactorGraph([0], [[]], []), 0),
    ],
    ids=["tree", "ring", "complete", "no edges", "one clique", "nothing"],
)
@pytest.mark.parametrize("rule", ["min_fill", "min_weight", "auto", "search"])
def test_known_treewidths(structure, treewidth, rule):
    cost = plan_of(structure, rule).size(structure)
    assert cost.treewidth == treewidth
    assert cost.complete


@pytest.mark.parametrize("shape", [(8, 60), (60, 8)])
def test_a_sweep_is_best_on_long_grids(shape):
    grid = Grid([shape], n_labels=2)
    assert plan_of(grid, "sweep").size(grid).treewidth == 8


def test_ten_thousand_variables_are_planned_or_given_up():
    wide, long = Grid([(100, 100)], n_labels=2), Grid([(4, 30_000)], n_labels=2)
    for rule in ("min_fill", "min_weight", "sweep", "auto"):
        cost = plan_of(wide, rule, limit=27.0).size(wide)
        assert not cost.complete
        assert cost.largest > 2**27
    assert plan_of(long, "auto").size(long).treewidth == 4


def test_a_large_graph_is_given_up_by_a_part_of_it():
    wide = Grid([(300, 300)], n_labels=2)  # more than four parts of 10,000
    cost = plan_of(wide, "min_weight", limit=20.0).size(wide)
    assert not cost.complete
    assert 2**20 < cost.largest < 2**40


def cells_of_tables(structure, order):
    """What orders are compared by."""
    tree = plan_of(structure, order).tree
    return tree.cells[0] - tree.messages[0]


@pytest.mark.parametrize("structure", [Grid([(5, 40)], 3), Grid([(12, 12)], 2), random_graph(3)])
def test_more_effort_never_makes_a_dearer_tree(structure):
    *rules, auto, search = (cells_of_tables(structure, order) for order in ORDERS)
    assert search <= auto <= min(rules)


def test_noise_finds_a_smaller_tree():
    *rules, auto, search = (cells_of_tables(Grid([(16, 16)], 2), order) for order in ORDERS)
    assert search < auto < 0.5 * min(rules)


def test_each_example_has_its_own_best_rule():
    long, square = (4, 60), (8, 8)
    both = Grid([long, square], n_labels=3)
    alone = [plan_of(Grid([shape], n_labels=3), "auto").tree.cells[0] for shape in (long, square)]
    assert_array_equal(plan_of(both, "auto").tree.cells, alone)


def test_the_same_graph_the_same_tree():
    edges = [(a, b) for a in range(30) for b in range(a) if (7 * a + 5 * b) % 11 < 3]
    a, b = (plan_of(Graph([30], [edges], 2), "search").tree for _ in range(2))
    for one, other in ((a.members, b.members), (a.parent, b.parent), (a.factors, b.factors)):
        assert_array_equal(one, other)


def test_no_search_where_a_clique_itself_is_too_large():
    everyone = [(a, b) for a in range(24) for b in range(a)]
    graph = Graph([60], [everyone + [(k, k + 1) for k in range(24, 59)]], 4)
    plan = plan_of(graph, "search", limit=30.0)  # a search would take seconds
    assert len(plan.stuck) >= 16


def test_plans_are_made_once_and_go_with_their_structure():
    grid = Grid([(3, 3)], n_labels=2)
    plan = plan_of(grid, "auto")
    assert plan_of(grid, "auto") is plan
    gone = weakref.ref(grid)
    del grid, plan
    gc.collect()
    assert gone() is None
