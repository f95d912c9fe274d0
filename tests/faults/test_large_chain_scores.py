"""Chain marginals are probabilities whatever the size of the scores: they sum to one, edges agree
with nodes, and a general method finds the same.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal import ChainCRF
from chordal.inference import INFERENCE
from chordal.inference.chain import ChainInference
from chordal.potentials import Potentials
from chordal.structures import Chain

SIZES = [1.0, 1e2, 1e3, 1e6, 1e10, 1e13, 1e16, 1e100, 1e303]
EXACT = INFERENCE.resolve("junction_tree")


def chains(size, forbid=False):
    rng, structure = np.random.default_rng(3), Chain([30] * 4, 4)
    unary, table = rng.normal(size=structure.n_states), rng.normal(size=16)
    if forbid:
        table[[3, 6]] = -np.inf
        unary[::11] = -np.inf
    return Potentials(structure, size * unary, size * table)


@pytest.mark.parametrize("domain", ["auto", "log"])
@pytest.mark.parametrize("forbid", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_marginals_are_probabilities(size, forbid, domain):
    p, method = chains(size, forbid), ChainInference(domain)
    whole = method.marginals(p).parts
    nodes = whole.unary.reshape(4, 30, 4)
    assert_allclose(nodes.sum(axis=2), 1.0, rtol=0.0, atol=1e-12)
    assert_allclose(whole.unary, EXACT.marginals(p).parts.unary, rtol=0.0, atol=1e-9)
    edges = method.marginals(p.untied()).parts.tables.reshape(4, 29, 4, 4)
    assert_allclose(edges.sum(axis=3), nodes[:, :-1], rtol=0.0, atol=1e-12)
    assert_allclose(edges.sum(axis=2), nodes[:, 1:], rtol=0.0, atol=1e-12)
    assert_allclose(whole.tables.sum(), 4 * 29, rtol=1e-12)
    assert_allclose(method.entropy(p), EXACT.entropy(p), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", SIZES)
def test_the_derivative_of_probabilities_sums_to_zero(size):
    p, rng = chains(size), np.random.default_rng(5)
    direction = p.like(rng.normal(size=len(p.unary)), rng.normal(size=len(p.tables)))
    found = ChainInference().marginals_derivative(p, direction)
    assert_allclose(found.unary.reshape(-1, 4).sum(axis=1), 0.0, rtol=0.0, atol=1e-12)
    assert_allclose(found.tables.sum(), 0.0, rtol=0.0, atol=1e-10)


def test_long_chains_do_not_drift():
    # A seed whose rounding errors all have one sign: without correction they add up to 1.3e-12.
    rng, n = np.random.default_rng(0), 400_000
    tables = rng.normal(size=(20, 16)) * 3.0
    structure = Chain([n // 20] * 20, 4)
    index = np.repeat(np.arange(20), n // 20 - 1)
    p = Potentials(structure, np.full(4 * n, 0.1), tables, index)
    sums = ChainInference().marginals(p).parts.unary.reshape(-1, 4).sum(axis=1)
    assert_allclose(sums, 1.0, rtol=0.0, atol=1e-12)


def test_predicted_marginals_of_features_on_any_scale():
    rng = np.random.default_rng(1)
    X = [rng.normal(size=(8, 3)) for _ in range(10)]
    y = [["a" if row[0] > 0 else "b" for row in x] for x in X]
    crf = ChainCRF().fit(X, y)
    for size in (1e10, 1e16):
        many = crf.predict_marginals([x * size for x in X])
        one = [crf.predict_marginals([x * size])[0] for x in X]
        for a, b in zip(many, one, strict=True):
            assert_allclose(a.sum(axis=1), 1.0, rtol=0.0, atol=1e-12)
            assert (a == b).all()
