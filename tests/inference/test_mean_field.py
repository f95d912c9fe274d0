"""Naive mean field: its bound rises, constraints are kept, weak models are exact."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal._errors import InfeasibleError, UnsupportedError
from chordal._status import Status
from chordal.inference import _cliques
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.inference.mean_field import MeanFieldInference
from chordal.potentials import Potentials
from chordal.structures import FactorGraph, Graph, Grid
from chordal.testing import MODELS

exact = ExhaustiveInference()


def test_the_bound_rises_with_every_iteration():
    rng = np.random.default_rng(0)
    p = Potentials(Grid([(3, 4)], 2), rng.normal(size=24), rng.normal(size=4))
    bounds = [MeanFieldInference(max_iter=k).log_partition(p)[0] for k in (1, 2, 3, 5, 10, 100)]
    assert (np.diff(bounds) >= -1e-12).all()
    assert bounds[-1] > bounds[0]
    assert bounds[-1] <= exact.log_partition(p)[0]


def test_the_curie_weiss_equation():
    # Without a choice between sites, m = tanh(h + (n - 1) J m) on the complete graph.
    n, coupling, field = 6, 0.1, 0.2
    graph = Graph([n], [[(a, b) for a in range(n) for b in range(a)]], n_labels=2)
    tables = coupling * np.array([1.0, -1.0, -1.0, 1.0])
    p = Potentials(graph, np.tile([field, -field], n), tables)
    found = MeanFieldInference().marginals(p)
    m = found.parts.unary[0] - found.parts.unary[1]
    assert_allclose(m, np.tanh(field + (n - 1) * coupling * m), atol=1e-7)


def test_exact_without_edges():
    p = Potentials(FactorGraph([2], [[(0,), (1,), (0,)]], 2), [0, 1, 2, 3], [1, 2, 3, 4, 5, 7])
    assert MeanFieldInference().exact_on(p.structure)
    found, truth = MeanFieldInference().marginals(p), exact.marginals(p)
    assert_allclose(found.log_partition, truth.log_partition, rtol=1e-12)
    assert_allclose(found.parts.unary, truth.parts.unary, atol=1e-12)


@pytest.mark.parametrize("name", ["graph_forbidden", "cliques_forbidden", "chain_last_resort"])
def test_what_is_forbidden_never_has_a_chance(name):
    for seed in range(5):
        p = MODELS[name](np.random.default_rng(seed))
        found = MeanFieldInference().marginals(p)
        assert found.parts.tables[p.tables == -np.inf].max(initial=0.0) == 0.0
        assert found.log_partition[0] > -np.inf
        assert found.log_partition[0] <= exact.log_partition(p)[0] + 1e-9


def test_a_support_that_cannot_be_found_is_said(monkeypatch):
    # All nine variables differ with eight labels: there is none, but no message proves it.
    n = 9
    graph = Graph([n], [[(a, b) for a in range(n) for b in range(a)]], n_labels=n - 1)
    p = Potentials(graph, np.zeros(n * (n - 1)), np.where(np.eye(n - 1) == 1, -np.inf, 0.0))
    monkeypatch.setattr(_cliques, "MAX_FAILURES", 2)
    with pytest.raises(UnsupportedError, match="'mean_field' found no allowed labelling"):
        MeanFieldInference().log_partition(p)


def test_a_variable_without_labels_is_named():
    p = Potentials(Graph([2, 1], [[(0, 1)], []], 2), [0, 1, 2, 3, -np.inf, -np.inf], np.zeros(4))
    with pytest.raises(InfeasibleError, match="example 1"):
        MeanFieldInference().marginals(p)


def test_strong_interactions_end_in_one_of_two_modes():
    p = Potentials(Grid([(4, 4)], 2), np.tile([0.01, 0.0], 16), [3.0, 0.0, 0.0, 3.0])
    found = MeanFieldInference().marginals(p)
    assert found.convergence.status is Status.CONVERGED
    assert found.parts.unary[0] > 0.99  # the exact marginal is near one half
    assert found.log_partition[0] > exact.log_partition(p)[0] - 1.0


@pytest.mark.parametrize("parameters", [{"tol": -1.0}, {"max_iter": 0}])
def test_parameters_are_checked(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        MeanFieldInference(**parameters)
