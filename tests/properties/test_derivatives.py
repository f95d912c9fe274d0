"""Marginals are the derivative of log Z, and covariances that of marginals."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chordal.inference import INFERENCE
from chordal.structures import Chain

from .strategies import models, numbers, usual

step = 1e-5
moderate = st.floats(-5, 5, allow_subnormal=False)


def methods(p):
    names = ["exhaustive", "junction_tree", *(["chain"] if isinstance(p.structure, Chain) else [])]
    return [INFERENCE.resolve(name) for name in names]


@given(p=models(moderate), data=st.data())
def test_the_derivative_of_log_z(p, data):
    direction = p.like(
        data.draw(numbers(len(p.unary), moderate)), data.draw(numbers(len(p.tables), moderate))
    )
    ahead, behind = (
        p.like(p.unary + s * direction.unary, p.tables + s * direction.tables)
        for s in (step, -step)
    )
    for method in methods(p):
        slope = (method.log_partition(ahead) - method.log_partition(behind)) / (2 * step)
        parts = method.marginals(p).parts
        expected = parts.unary @ direction.unary + parts.tables @ direction.tables
        np.testing.assert_allclose(slope.sum(), expected, rtol=1e-5, atol=1e-4)


@given(p=models(moderate), data=st.data())
def test_the_derivative_of_marginals(p, data):
    direction = p.like(
        data.draw(numbers(len(p.unary), moderate)), data.draw(numbers(len(p.tables), moderate))
    )
    ahead, behind = (
        p.like(p.unary + s * direction.unary, p.tables + s * direction.tables)
        for s in (step, -step)
    )
    for method in methods(p):
        if not method.fits("marginals_derivative", p.structure):
            continue
        found = method.marginals_derivative(p, direction)
        after, before = method.marginals(ahead).parts, method.marginals(behind).parts
        for name in ("unary", "tables"):
            slope = (getattr(after, name) - getattr(before, name)) / (2 * step)
            np.testing.assert_allclose(getattr(found, name), slope, rtol=1e-4, atol=1e-4)


@given(p=models(usual))
def test_entropy(p):
    for method in methods(p):
        found = method.marginals(p)
        expected = found.parts.unary @ p.unary + found.parts.tables @ p.tables
        entropy = method.entropy(p).sum()
        scale = 1e-12 * (1 + np.abs(p.unary).sum() + np.abs(p.tables).sum() * p.structure.n_cliques)
        close = {"rtol": 1e-9, "atol": 1e-9 + scale}
        np.testing.assert_allclose(entropy, found.log_partition.sum() - expected, **close)
        assert entropy >= -1e-9
