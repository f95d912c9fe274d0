"""Cliques that count labels, beside tables over all of their variables."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment

from chordal import GraphCRF
from chordal.inference import INFERENCE, Count, with_counts
from chordal.potentials import Potentials
from chordal.structures import Chain, FactorGraph

EXACT = ["junction_tree", "elimination", "exhaustive"]


def two_graphs(rng):
    """Two examples with variables of two and three labels, a tied table and cliques of three."""
    labels = [2, 3, 2, 2, 2, 3, 2, 2, 2]
    graph = FactorGraph([5, 4], [[(0, 2), (2, 3), (0, 3, 4)], [(0, 1), (1, 2, 3)]], labels)
    sizes = [4, 8, 6, 8]
    tables = rng.normal(size=sum(sizes))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return Potentials(graph, rng.normal(size=graph.n_states), tables, [0, 0, 1, 2, 3], offsets)


def by_tables(p, counts):
    """The same model with a table over all variables of each count."""
    s = p.structure
    whole = p.untied()
    cliques, tables = [[], []], [[], []]
    for e in range(2):
        for k in range(s.clique_offsets[e], s.clique_offsets[e + 1]):
            cliques[e].append(tuple(s.scope(k) - s.variable_offsets[e]))
            tables[e].append(whole.table(k).ravel())
    for count in counts:
        first = s.variable_offsets[count.example]
        shape = s.label_counts[first + np.array(count.variables)]
        each = count.labels
        each = [each] * len(shape) if isinstance(each, int) else each
        each = [{own} if isinstance(own, int) else set(own) for own in each]
        table = np.zeros(tuple(shape))
        for y in product(*map(range, shape)):
            n = sum(label in own for label, own in zip(y, each, strict=True))
            table[y] = count.scores[min(n, len(count.scores) - 1)]
        cliques[count.example].append(tuple(count.variables))
        tables[count.example].append(table.ravel())
    graph = FactorGraph([5, 4], cliques, s.label_counts)
    flat = np.concatenate([t for own in tables for t in own])
    index = np.arange(graph.n_cliques)
    return Potentials(graph, p.unary, flat, index)


MODELS = {
    "exactly one": [Count.exactly_one([0, 2, 3, 4])],
    "exactly one, softly": [Count.exactly_one([4, 0, 3, 2], penalty=1.5)],
    "at most one, of three labels": [
        Count.at_most_one([0, 1, 2, 3, 4], [1, 2, 0, 1, 1]), Count.at_most_one([0, 3], example=1),
    ],
    "clauses": [
        Count.at_least_one([0, 2, 3], [0, 0, 1]), Count.at_least_one([1, 2, 4], [{0, 2}, 1, 1]),
        Count.at_least_one([0], 2, example=1),
    ],
    "between": [Count.between([0, 1, 2, 3, 4], 2, 3), Count.between([0, 1, 2, 3], 1, 2, example=1)],
    "any scores": [
        Count([0, 1, 2, 3, 4], [0.3, -1.0, 2.0, 0.1]),
        Count([3, 1, 2, 0], [-np.inf, 1.0, 0.0], example=1),
        Count([1, 4], [0.0, -2.0, 1.0, 5.0]), Count([0, 2, 3], [0.7]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("name", MODELS)
def test_exact_answers_are_those_of_whole_tables(name, method):
    rng = np.random.default_rng(len(name))
    p = two_graphs(rng)
    tables, model = by_tables(p, MODELS[name]), with_counts(p, MODELS[name])
    brute, own = INFERENCE.resolve("exhaustive"), INFERENCE.resolve(method)
    assert_allclose(own.log_partition(model.potentials), brute.log_partition(tables), rtol=1e-9)
    found = own.marginals(model.potentials)
    assert_allclose(model.unary(found.parts), brute.marginals(tables).parts.unary, atol=1e-9)
    best = model.labels(own.map(model.potentials).labels)
    assert_array_equal(best, brute.map(tables).labels)
    for _ in range(20):
        labels = rng.integers(0, p.structure.label_counts)
        assert_allclose(model.potentials.score(model.extended(labels)), tables.score(labels))
    assert_allclose(own.entropy(model.potentials), brute.entropy(tables), atol=1e-9)


def test_k_best_labellings_do_not_repeat():
    p = two_graphs(np.random.default_rng(1))
    counts = MODELS["at most one, of three labels"]
    tables, model = by_tables(p, counts), with_counts(p, counts)
    labels, scores = INFERENCE.resolve("junction_tree").k_best(model.potentials, 6)
    expected, same = INFERENCE.resolve("exhaustive").k_best(tables, 6)
    assert_allclose(scores, same)
    assert_array_equal(model.labels(labels), expected)


@pytest.mark.parametrize("method", ["ad3", "linear_program", "milp"])
def test_relaxations_solve_an_assignment(method):
    """Rows and columns with exactly one each: the relaxation of counts is as tight as can be."""
    n = 9
    gain = np.random.default_rng(0).normal(size=(n, n))
    unary = np.stack([np.zeros(n * n), gain.ravel()], axis=1)
    p = Potentials(FactorGraph([n * n], [[]], 2), unary, [])
    cells = np.arange(n * n).reshape(n, n)
    model = with_counts(p, [Count.exactly_one(own) for own in [*cells, *cells.T]])
    assert len(model.potentials.tables) == 2 * n * ((n - 2) * 8 + 4)
    found = INFERENCE.resolve(method).map(model.potentials)
    rows, columns = linear_sum_assignment(-gain)
    taken = model.labels(found.labels).reshape(n, n)
    assert_array_equal(np.argwhere(taken), np.stack([rows, columns], axis=1))
    assert_allclose(found.bound, gain[rows, columns].sum(), rtol=1e-6)


@pytest.mark.parametrize("method", ["junction_tree", "loopy_bp"])
def test_one_of_very_many(method):
    """2000 variables, whose table would have 2^2000 cells: P(i) is a softmax."""
    score = np.random.default_rng(0).normal(size=2000)
    p = Potentials(FactorGraph([2000], [[]], 2), np.stack([0 * score, score], axis=1), [])
    model = with_counts(p, [Count.exactly_one(range(2000))])
    found = INFERENCE.resolve(method).marginals(model.potentials)
    total = np.log(np.exp(score).sum())
    assert_allclose(found.log_partition, [total], rtol=1e-6)
    assert_allclose(model.unary(found.parts)[1::2], np.exp(score - total), rtol=1e-3, atol=1e-9)


def test_a_chain_with_one_of_a_label_stays_narrow():
    """Counted along the chain, beside a sum over where the one is."""
    rng = np.random.default_rng(0)
    n, labels = 40, 3
    p = Potentials(Chain([n], labels), rng.normal(size=n * labels), rng.normal(size=9))
    model = with_counts(p, [Count.exactly_one(range(n), 2)])
    found = INFERENCE.resolve("junction_tree").log_partition(model.potentials)
    others = []
    for k in range(n):
        unary = p.unary.reshape(n, labels).copy()
        unary[:, 2] = -np.inf
        unary[k] = [-np.inf, -np.inf, p.unary[k * labels + 2]]
        own = INFERENCE.resolve("chain").log_partition(p.like(unary.ravel(), p.tables))
        others.append(own[0])
    assert_allclose(found, [np.logaddexp.reduce(others)], rtol=1e-10)


def test_on_a_fitted_model():
    rng = np.random.default_rng(0)
    edges = [(0, 1), (1, 2), (2, 3)]
    X = [(rng.normal(size=(4, 2)), edges) for _ in range(5)]
    y = [["x" if v > 0 else "y" for v in nodes[:, 0]] for nodes, _ in X]
    crf = GraphCRF(l2=0.1).fit(X, y)
    counts = [Count.exactly_one(range(4), 0, example=i) for i in range(5)]
    model = with_counts(crf.potentials(X), counts)
    best = crf.classes_[
        model.labels(INFERENCE.resolve("junction_tree").map(model.potentials).labels)
    ]
    assert_array_equal((best.reshape(5, 4) == "x").sum(axis=1), 1)


def test_what_is_refused():
    p = two_graphs(np.random.default_rng(0))
    cases = [
        (Count([], [0.0]), "must be some of 0 to 4"),
        (Count([0, 5], [0.0]), "must be some of 0 to 4"),
        (Count([0, 0], [0.0]), "must differ"),
        (Count([0, 1], [0.0], 2), "from 0 to 1 for variable 0"),
        (Count([0, 1], [0.0], [1]), "one for each of 2 variables"),
        (Count([0, 1], [np.nan]), "must be numbers or -inf"),
        (Count([0, 1], [-np.inf] * 2), "must allow some number"),
        (Count([0, 1], [0.0], example=2), "is for example 2, but there are 2"),
    ]
    for count, match in cases:
        with pytest.raises(ValueError, match=match):
            with_counts(p, [count])
    with pytest.raises(TypeError, match="must be a Count"):
        with_counts(p, [(0, 1)])
    with pytest.raises(ValueError, match="high must be"):
        Count.between([0, 1], 2, 1)
