"""Clique trees of a course on graphical models: calibrated beliefs, marginals, max-marginals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.junction_tree import JunctionTreeInference
from chordal.inference.tree import TreeInference
from chordal.potentials import Potentials
from chordal.structures import FactorGraph

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def course(require):
    with np.load(require("pgm_course/coursera_pgm_pa3_pa4_pa5.npz")) as stored:
        return dict(stored)


def factors(course, name):
    """(scope, table) of each factor of a list."""
    scope, card, value = (course[f"{name}_{part}"] for part in ("scope", "card", "val"))
    of_scope, of_value = (course[f"{name}_{part}"] for part in ("scope_ptr", "val_ptr"))
    return [
        (scope[a:b], value[c:d].reshape(card[a:b]))
        for a, b, c, d in zip(of_scope[:-1], of_scope[1:], of_value[:-1], of_value[1:], strict=True)
    ]


def model(listed):
    counts = np.ones(1 + max(scope.max() for scope, _ in listed), dtype=np.int64)
    for scope, table in listed:
        counts[scope] = table.shape
    graph = FactorGraph([len(counts)], [[scope.tolist() for scope, _ in listed]], counts)
    cells = np.concatenate([table.ravel() for _, table in listed])
    with np.errstate(divide="ignore"):
        return Potentials(graph, np.zeros(graph.n_states), np.log(cells))


def row(parts, variable):
    return parts.unary[slice(*parts.structure.state_offsets[variable : variable + 2])]


def test_the_pedigree_of_six(course):
    parts = JunctionTreeInference().marginals(model(factors(course, "pa4_exact_in"))).parts
    given = factors(course, "pa4_exact_marginals")
    assert len(given) == 12
    for (variable,), table in given:
        assert_allclose(row(parts, variable), table, rtol=0.0, atol=1e-12)


def test_calibrated_beliefs_of_a_clique_tree(course):
    potentials = model(factors(course, "pa4_SumProdCalibrate_INPUT"))
    parts = JunctionTreeInference().marginals(potentials).parts
    given = factors(course, "pa4_SumProdCalibrate_RESULT")
    assert len(given) == potentials.structure.n_cliques == 9
    for clique, (scope, belief) in enumerate(given):
        assert_array_equal(potentials.structure.scope(clique), scope)
        # Each of the given beliefs has a scale of its own.
        assert_allclose(parts.table(clique), belief / belief.sum(), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("method", [TreeInference(), JunctionTreeInference()], ids=["tree", "jt"])
def test_max_marginals_of_a_word(course, method):
    potentials = model(factors(course, "pa4_max_in"))
    best = method.map(potentials)
    assert_array_equal(best.labels, course["pa4_decoded"])
    for (variable,), table in factors(course, "pa4_max_marginals"):
        assert_allclose(table.max(), best.score[0], rtol=1e-12)
        for label in range(0, 26, 5):
            held = potentials.like(potentials.unary.copy(), potentials.tables)
            row(held, variable)[np.arange(26) != label] = -np.inf
            assert_allclose(method.map(held).score[0], table[label], rtol=1e-12)


def test_max_calibrated_beliefs(course):
    potentials = model(factors(course, "pa4_MaxSumCalibrate_INPUT"))
    method, rng = TreeInference(), np.random.default_rng(0)
    for (a, b), belief in factors(course, "pa4_MaxSumCalibrate_RESULT"):
        cells = rng.choice(belief.size, size=20, replace=False)
        for cell in [*cells, belief.argmax()]:
            i, j = np.unravel_index(cell, belief.shape)
            held = potentials.like(potentials.unary.copy(), potentials.tables)
            row(held, a)[np.arange(26) != i] = -np.inf
            row(held, b)[np.arange(26) != j] = -np.inf
            if belief[i, j] > -np.inf:
                assert_allclose(method.map(held).score[0], belief[i, j], rtol=1e-12)


def test_the_grid(course):
    result = JunctionTreeInference().marginals(model(factors(course, "pa5_grid")))
    assert_allclose(result.log_partition[0], course["pa5_logZ_computed"], rtol=1e-12)
    nodes = result.parts.unary.reshape(16, 2)
    assert_allclose(nodes, course["pa5_exact_marginals_computed"], rtol=0.0, atol=1e-12)


def test_pedigrees_are_bayesian_networks(course):
    nine = model(factors(course, "pa4_NinePersonPedigree"))
    six = model(factors(course, "pa4_SixPersonPedigree"))
    assert JunctionTreeInference().tree_size(nine.structure).treewidth == 2
    assert_allclose(JunctionTreeInference().log_partition(nine), 0.0, atol=1e-12)
    truth = ExhaustiveInference().marginals(six)
    found = JunctionTreeInference().marginals(six)
    assert_allclose(found.parts.tables, truth.parts.tables, rtol=0.0, atol=1e-12)


def test_words_with_triplets_and_similar_letters(course):
    potentials = model(factors(course, "pa4_OCRNetworkToRun"))
    method = JunctionTreeInference()
    ranked = method.k_best(potentials, 5)
    assert_array_equal(ranked.labels[0], method.map(potentials).labels)
    for labels, score in zip(ranked.labels, ranked.score[0], strict=True):
        assert_allclose(potentials.score(labels), score, rtol=1e-12)
    assert (np.diff(ranked.score[0]) <= 0.0).all()
