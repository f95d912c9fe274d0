"""Exact methods agree with a list of all labellings; bounds are on their side."""

import numpy as np
import pytest
from hypothesis import given

from chordal.inference import INFERENCE

from .strategies import chains, factor_graphs, graphs, models, trees, usual, wide

METHODS = [INFERENCE.resolve(name) for name in INFERENCE.names()]
TRUTH = INFERENCE.resolve("exhaustive")


def exact(question, p):
    """Methods that claim to be exact here."""
    s = p.structure
    found = [m for m in METHODS if m.fits(question, s) and m.exact_on(s) and not m.refusal_of(p)]
    assert len(found) > 1
    return found


@pytest.mark.parametrize("kind", [chains, trees, graphs, factor_graphs])
def test_exact_methods_agree(kind):
    @given(p=kind(wide))
    def check(p):
        truth = TRUTH.marginals(p)
        scale = 1 + np.abs(p.unary).sum() + np.abs(p.tables).max(initial=0) * p.structure.n_cliques
        close = {"rtol": 1e-9, "atol": 1e-13 * scale + 1e-12}
        for method in exact("marginals", p):
            found = method.marginals(p)
            np.testing.assert_allclose(found.log_partition, truth.log_partition, **close)
            probability = {"rtol": 0, "atol": 1e-12 * scale}
            np.testing.assert_allclose(found.parts.unary, truth.parts.unary, **probability)
            np.testing.assert_allclose(found.parts.tables, truth.parts.tables, **probability)
        for method in exact("log_partition", p):
            np.testing.assert_allclose(method.log_partition(p), truth.log_partition, **close)
        for method in exact("entropy", p):
            loose = {"rtol": 0, "atol": 1e-12 * scale**2}
            np.testing.assert_allclose(method.entropy(p), TRUTH.entropy(p), **loose)

    check()


@given(p=models(wide))
def test_the_best_labelling_is_the_first_of_the_best(p):
    """predict = argmax of k-best = mode of the list of all labellings."""
    best = TRUTH.map(p).score
    scale = 1e-12 * (1 + np.abs(p.unary).sum() + np.abs(p.tables).sum() * p.structure.n_cliques)
    for method in exact("map", p):
        found = method.map(p)
        gap = 1e-6 if method.name == "milp" else 0.0  # HiGHS takes smaller differences for none
        np.testing.assert_allclose(found.score, best, rtol=1e-12, atol=scale + gap)
        np.testing.assert_allclose(p.score(found.labels), found.score, rtol=1e-12, atol=scale)
    for method in exact("k_best", p):
        ranked, expected = method.k_best(p, 6), TRUTH.k_best(p, 6)
        np.testing.assert_allclose(ranked.score, expected.score, rtol=1e-12, atol=scale)
        for k in range(6):
            there = ranked.score[:, k] > -np.inf
            own = p.score(ranked.labels[k])
            np.testing.assert_allclose(own[there], ranked.score[there, k], rtol=1e-9, atol=scale)


@given(p=graphs(usual))
def test_bounds_are_on_their_side(p):
    truth, best = TRUTH.log_partition(p), TRUTH.map(p).score
    scale = 1e-9 * (1 + np.abs(p.unary).sum() + np.abs(p.tables).sum())
    for method in METHODS:
        if method.refusal_of(p) or not method.supports(p.structure):
            continue
        if method.bound is not None and method.fits("log_partition", p.structure):
            found = method.log_partition(p)
            if method.bound == "upper":
                assert (found >= truth - scale).all(), method
            else:
                assert (found <= truth + scale).all(), method
        if method.fits("map", p.structure) and method.name != "milp":
            decoded = method.map(p)
            assert (decoded.score <= best + scale).all(), method
            if decoded.bound is not None:
                assert (decoded.bound >= best - scale).all(), method
        if method.fits("relaxed_map", p.structure):
            assert (method.relaxed_map(p).value >= best - scale).all(), method
