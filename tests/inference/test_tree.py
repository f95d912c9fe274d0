"""Belief propagation on trees: against the chain's kernels, closed forms and brute force."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal._errors import InfeasibleError, UnsupportedError
from chordal.inference.chain import ChainInference
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.junction_tree import JunctionTreeInference
from chordal.inference.tree import TreeInference
from chordal.potentials import Potentials
from chordal.structures import Chain, FactorGraph, Graph, Tree, offsets_of
from chordal.testing import check_inference

tree, chain = TreeInference(), ChainInference()


def random_chain(lengths, n_labels, tied, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    structure = Chain(lengths, n_labels)
    cells = n_labels**2 if tied else structure.table_sizes.sum()
    return Potentials(
        structure, scale * rng.normal(size=structure.n_states), scale * rng.normal(size=cells)
    )


@pytest.mark.parametrize("scale", [1.0, 300.0], ids=["scaled", "log"])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5, 9, 20])
def test_chains_are_trees(n_labels, tied, scale):
    p = random_chain([30, 1, 17, 0, 2], n_labels, tied, scale=scale)
    assert_allclose(tree.log_partition(p), chain.log_partition(p), rtol=1e-12, atol=1e-12)
    ours, theirs = tree.marginals(p), chain.marginals(p)
    assert_allclose(ours.log_partition, theirs.log_partition, rtol=1e-12, atol=1e-12)
    assert_allclose(ours.parts.unary, theirs.parts.unary, rtol=0.0, atol=1e-10)
    assert_allclose(ours.parts.tables, theirs.parts.tables, rtol=0.0, atol=1e-9)
    assert_allclose(tree.map(p).score, chain.map(p).score, rtol=1e-12, atol=1e-12)
    assert_array_equal(tree.map(p).labels, chain.map(p).labels)
    assert_allclose(tree.entropy(p), chain.entropy(p), rtol=1e-9, atol=1e-9)


def test_the_derivative_of_long_chains():
    p, rng = random_chain([200, 50], 4, tied=True), np.random.default_rng(1)
    d = p.like(rng.normal(size=len(p.unary)), rng.normal(size=len(p.tables)))
    ours, theirs = (m.marginals_derivative(p, d) for m in (tree, chain))
    assert_allclose(ours.unary, theirs.unary, rtol=0.0, atol=1e-11)
    assert_allclose(ours.tables, theirs.tables, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("k", [1, 7, 300])
def test_the_k_best_of_long_chains(k):
    # Enough candidates that the queue has to be cut, for small k.
    p = random_chain([700, 3], 3, tied=True)
    ours, theirs = tree.k_best(p, k), chain.k_best(p, k)
    assert_allclose(ours.score, theirs.score, rtol=1e-12)
    assert len(np.unique(ours.labels[:, :700], axis=0)) == k
    for rank in range(min(k, 27)):
        assert_allclose(p.score(ours.labels[rank]), ours.score[:, rank], rtol=1e-12)


def test_edges_may_point_either_way():
    rng = np.random.default_rng(0)
    down, up = [(0, 1), (0, 2), (2, 3)], [(1, 0), (2, 0), (3, 2)]
    counts = [3, 5, 2, 4]
    one = Potentials(Graph([4], [down], counts), rng.normal(size=14), rng.normal(size=29))
    flipped = np.concatenate([one.table(k).T.ravel() for k in range(3)])
    other = Potentials(Graph([4], [up], counts), one.unary, flipped)
    a, b = tree.marginals(one), tree.marginals(other)
    assert_allclose(a.log_partition, b.log_partition, rtol=1e-14)
    assert_allclose(a.parts.unary, b.parts.unary, rtol=1e-12)
    for k in range(3):
        assert_allclose(a.parts.table(k), b.parts.table(k).T, rtol=1e-12)
    assert_array_equal(tree.map(one).labels, tree.map(other).labels)


def test_scaled_and_log_space_in_one_batch():
    # Three examples share a table: an ordinary one, one of extreme scores, one with a −inf.
    rng = np.random.default_rng(3)
    trees = Tree([[-1, 0, 0, 1], [-1, 0, 1], [1, -1]], n_labels=2)
    unary = rng.normal(size=18)
    unary[8:14] *= 1e4
    unary[14] = -np.inf
    for table in (rng.normal(size=4), np.array([0.3, -np.inf, 0.0, 0.7])):
        check_inference(tree, Potentials(trees, unary, table), rng)


def test_a_million_nodes_in_a_row():
    n, rng = 1_000_000, np.random.default_rng(0)
    unary, table = rng.normal(size=2 * n), rng.normal(size=4)
    path = Potentials(Tree([np.arange(-1, n - 1)], n_labels=2), unary, table)
    same = Potentials(Chain([n], n_labels=2), unary, table)
    ours, theirs = tree.marginals(path), chain.marginals(same)
    assert_allclose(ours.log_partition, theirs.log_partition, rtol=1e-12)
    assert_allclose(ours.parts.unary, theirs.parts.unary, rtol=0.0, atol=1e-11)
    assert_array_equal(tree.map(path).labels, chain.map(same).labels)


@pytest.mark.slow
def test_every_answer_on_a_deep_tree():
    n, rng = 300_000, np.random.default_rng(0)
    parents = np.arange(n) - 1 - rng.integers(0, 3, n)
    p = Potentials(Tree([np.maximum(parents, -1)], 2), rng.normal(size=2 * n), rng.normal(size=4))
    marginals = tree.marginals(p)
    samples = tree.sample(p, 50, rng)
    frequency = (samples == 1).mean(axis=0).mean()
    assert_allclose(frequency, marginals.parts.unary[1::2].mean(), atol=2e-3)
    ranked = tree.k_best(p, 3)
    assert_allclose(ranked.score[0, 0], tree.map(p).score[0], rtol=1e-12)
    # H = log Z − E[score], with the model's own marginals
    tables = (marginals.parts.tables * p.tables).sum()
    expected = marginals.log_partition[0] - marginals.parts.unary @ p.unary - tables
    assert_allclose(tree.entropy(p)[0], expected, rtol=1e-9)


def test_a_star_of_many_leaves():
    # Too many factors at one node for scaled probabilities; each leaf can be summed by itself.
    n, rng = 20_000, np.random.default_rng(0)
    star = Graph([n + 1], [[(0, k) for k in range(1, n + 1)]], n_labels=3)
    p = Potentials(star, rng.normal(size=3 * n + 3), rng.normal(size=9))
    leaves = np.log(np.exp(p.table(0)[:, None, :] + p.unary[3:].reshape(n, 3)).sum(axis=2))
    root = p.unary[:3] + leaves.sum(axis=1)
    expected = np.log(np.exp(root - root.max()).sum()) + root.max()
    result = tree.marginals(p)
    assert_allclose(result.log_partition, expected, rtol=1e-12)
    assert_allclose(result.parts.unary[:3], np.exp(root - expected), rtol=1e-8, atol=1e-300)


def test_the_same_seed_gives_the_same_samples():
    p = random_chain([20], 3, tied=True)
    draws = [tree.sample(p, 5, np.random.default_rng(7)) for _ in range(2)]
    assert_array_equal(*draws)
    assert (tree.sample(p, 5, np.random.default_rng(8)) != draws[0]).any()


def test_cliques_of_any_order_without_a_loop():
    rng = np.random.default_rng(0)
    graph = FactorGraph([7], [[(0, 1, 2), (2, 3), (3, 4, 5, 6), (6,)]], n_labels=2)
    p = Potentials(graph, rng.normal(size=14), rng.normal(size=8 + 4 + 16 + 2))
    expected = ExhaustiveInference().marginals(p)
    found = tree.marginals(p)
    assert_allclose(found.log_partition, expected.log_partition, rtol=1e-13)
    assert_allclose(found.parts.tables, expected.parts.tables, atol=1e-14)


def test_loops_are_refused():
    loop = Graph([3], [[(0, 1), (1, 2), (2, 0)]], n_labels=2)
    with pytest.raises(UnsupportedError, match="'tree' does not support Graph"):
        tree.map(Potentials(loop, np.zeros(6), np.zeros(4)))


def test_no_labelling_is_said_to_be_missing():
    differ = [-np.inf, 0.0, 0.0, -np.inf]
    p = Potentials(Tree([[-1, 0], [-1, 0, 1]], 2), [0] * 4 + [0, -np.inf, 0, 0, -np.inf, 0], differ)
    assert tree.log_partition(p)[0] > -np.inf
    assert tree.log_partition(p)[1] == -np.inf
    with pytest.raises(InfeasibleError, match="example 1"):
        tree.marginals(p)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_forests_in_log_space_are_those_of_the_junction_tree(seed):
    """-inf among the tables sends every example to the clique tree."""
    rng = np.random.default_rng(seed)
    sizes = [7, 1, 12, 3]
    edges = [
        np.array([(rng.integers(i), i) for i in range(1, n) if rng.random() < 0.8]).reshape(-1, 2)
        for n in sizes
    ]
    counts = rng.integers(1, 4, size=sum(sizes))
    structure = Graph(sizes, edges, counts)
    offsets = offsets_of(np.multiply(*counts[structure.scopes.reshape(-1, 2).T]))
    tables = rng.normal(size=offsets[-1])
    tables[rng.random(len(tables)) < 0.1] = -np.inf
    potentials = Potentials(
        structure, rng.normal(size=counts.sum()), tables, np.arange(len(offsets) - 1), offsets
    )
    other = JunctionTreeInference("min_weight")
    expected = other.log_partition(potentials)
    assert_allclose(tree.log_partition(potentials), expected, rtol=1e-12)
    if (expected > -np.inf).all():
        one, two = tree.marginals(potentials).parts, other.marginals(potentials).parts
        assert_allclose(one.unary, two.unary, rtol=0, atol=1e-12)
        assert_allclose(one.tables, two.tables, rtol=0, atol=1e-12)
        assert_allclose(tree.entropy(potentials), other.entropy(potentials), rtol=1e-9)


def test_a_star_of_100000_nodes_takes_no_time():
    """Its centre's scores have too wide a range for scaled probabilities."""
    n, centre = 100_000, 777
    leaves = np.delete(np.arange(n), centre)
    structure = Graph([n], [np.column_stack([np.full(n - 1, centre), leaves])], 2)
    rng = np.random.default_rng(0)
    potentials = Potentials(structure, rng.normal(size=2 * n), rng.normal(size=4 * (n - 1)))
    started = time.perf_counter()
    found = tree.marginals(potentials)
    assert time.perf_counter() - started < 20  # it took a minute when the plan was quadratic
    tables, unary = potentials.tables.reshape(-1, 2, 2), potentials.unary.reshape(-1, 2)
    messages = np.logaddexp.reduce(tables + unary[leaves][:, None, :], axis=2).sum(axis=0)
    expected = np.logaddexp.reduce(unary[centre] + messages)
    assert_allclose(found.log_partition, expected, rtol=1e-12)
