"""Variables with very many neighbours: planned without looking through them at every step."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal.inference import INFERENCE, exact_for
from chordal.inference._clique_tree import plan_of
from chordal.potentials import Potentials
from chordal.structures import Chain, FactorGraph, Graph


def star_with_a_loop(n):
    """Variable 0 beside all others, of which two are neighbours."""
    return Graph([n + 1], [np.r_[np.c_[np.zeros(n, int), np.arange(1, n + 1)], [[1, 2]]]], 3)


def fan(n):
    """A path, and a clique of each of its edges with variable 0."""
    return FactorGraph([n + 1], [[(0, k, k + 1) for k in range(1, n)]], 2)


def half_a_fan(n):
    """A path, every other variable of which is beside variable 0."""
    k = np.arange(1, n)
    return Graph([n + 1], [np.r_[np.c_[k, k + 1], np.c_[0 * k[::2], k[::2]]]], 2)


def two_hubs(n):
    """Variables 0 and 1, each beside all others."""
    k = np.arange(2, n + 2)
    return Graph([n + 2], [np.r_[np.c_[0 * k, k], np.c_[0 * k + 1, k]]], 2)


KINDS = [star_with_a_loop, fan, half_a_fan, two_hubs]


@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_thousand_neighbours(kind):
    """Looking through them whenever one goes takes half a minute and more."""
    structure = kind(100_000)
    start = time.perf_counter()
    cost = plan_of(structure, "auto").size(structure)
    assert time.perf_counter() - start < 10.0
    assert cost.treewidth == 2


def dense_orders(structure, rule):
    """The cliques of an order by min_fill or min_weight, from matrices made anew at each step."""
    near = np.zeros((structure.n_variables,) * 2, dtype=np.float32)
    for clique in range(structure.n_cliques):
        a, b = structure.scope(clique)
        near[a, b] = near[b, a] = 1.0
    log_labels = np.log2(structure.label_counts)
    left, found = np.ones(structure.n_variables, dtype=bool), set()
    while left.any():
        degree = near.sum(axis=1)
        price = (log_labels + near @ log_labels).round(9)
        if rule == "min_fill":
            present = np.einsum("ij,ij->i", near @ near, near)
            price = price + 1e6 * (degree * (degree - 1) - present)
        v = int(np.argmin(np.where(left, price, np.inf)))
        beside = np.flatnonzero(near[v])
        found.add(frozenset([v, *beside.tolist()]))
        near[np.ix_(beside, beside)] = 1.0
        near[beside, beside] = 0.0
        near[v] = near[:, v] = 0.0
        left[v] = False
    return {c for c in found if not any(c < other for other in found)}


@pytest.mark.parametrize("rule", ["min_fill", "min_weight"])
def test_orders_with_long_lists(rule):
    """More neighbours than are kept in a plain list, which come and go."""
    rng = np.random.default_rng(0)
    n = 420
    path = np.c_[np.arange(1, n), np.arange(2, n + 1)]
    beside = 1 + rng.choice(n, size=300, replace=False)
    others = rng.choice(np.arange(1, n + 1), size=(12, 2), replace=False)
    edges = np.unique(np.sort(np.r_[path, np.c_[0 * beside, beside], others], axis=1), axis=0)
    structure = Graph([n + 1], [edges], rng.integers(2, 5, size=n + 1))
    tree = plan_of(structure, rule).tree
    offsets, members = tree.member_offsets, tree.members
    scopes = {frozenset(s.tolist()) for s in np.split(members, offsets[1:-1])}
    assert scopes == dense_orders(structure, rule)


def test_answers_by_the_labels_of_the_hub():
    """Given the hub's label, what is left is a chain."""
    rng = np.random.default_rng(1)
    n = 2_000
    structure = half_a_fan(n)
    scores = rng.normal(size=2 * (n + 1)), rng.normal(size=4 * structure.n_cliques)
    p = Potentials(structure, *scores)
    method = exact_for(structure)
    assert method is not None
    assert method.name == "junction_tree"
    unary, tables = p.unary.reshape(-1, 2), p.tables.reshape(-1, 2, 2)
    on_path, beside = tables[: n - 1], np.arange(1, n, 2)
    chain, by_label = Chain([n], 2), []
    for label in range(2):
        scores = unary[1:].copy()
        scores[beside - 1] += tables[n - 1 :, label]
        alone = Potentials(chain, scores.ravel(), on_path.ravel())
        by_label.append(unary[0, label] + INFERENCE.resolve("chain").log_partition(alone)[0])
    assert_allclose(method.log_partition(p), np.logaddexp(*by_label), rtol=1e-12)
    hub = method.marginals(p).parts.unary[:2]
    assert_allclose(hub, np.exp(by_label - np.logaddexp(*by_label)), rtol=0, atol=1e-10)
