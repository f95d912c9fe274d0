"""What the contracts share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from chordal.potentials import Floats, Potentials


class Iterate(Protocol):
    """What a callback is told after an iteration."""

    iteration: int
    value: float
    gap: float
    weights: Floats


def require(condition: object, message: str) -> None:
    """Fail with the message; unlike `assert`, also under ``python -O``."""
    if not condition:
        raise AssertionError(message)


def copy_of(potentials: Potentials) -> Potentials:
    """A copy of the model that shares no memory with it."""
    return potentials.like(potentials.unary.copy(), potentials.tables.copy())


@contextmanager
def unchanged(potentials: Potentials, what: str) -> Iterator[None]:
    """Fail if the block writes to the potentials."""
    before = copy_of(potentials)
    yield
    for name in ("unary", "tables"):
        message = f"{what} changed potentials.{name}"
        assert_array_equal(getattr(potentials, name), getattr(before, name), err_msg=message)


def rounding(potentials: Potentials) -> float:
    """How far rounding may carry a sum of this model's scores, generously."""
    scores = np.concatenate([potentials.unary, potentials.tables])
    largest = np.abs(scores[np.isfinite(scores)]).max(initial=1.0)
    structure = potentials.structure
    longest = np.diff(structure.variable_offsets).max(initial=1)
    return float(1e-13 * (1.0 + 2.0 * longest * largest))


def assert_same_parts(
    actual: Potentials, expected: Potentials, what: str, *, atol: float, rtol: float = 1e-9
) -> None:
    """Compare both arrays of two containers; with zero tolerance, bit for bit."""
    for name in ("unary", "tables"):
        a, b = getattr(actual, name), getattr(expected, name)
        require(a.shape == b.shape, f"{what}.{name} has shape {a.shape}, expected {b.shape}")
        assert_allclose(a, b, rtol=rtol, atol=atol, equal_nan=False, err_msg=f"{what}.{name}")


def random_direction(potentials: Potentials, rng: np.random.Generator) -> Potentials:
    """Finite numbers of the size of one for every score."""
    return potentials.like(
        rng.normal(size=len(potentials.unary)), rng.normal(size=len(potentials.tables))
    )


def weighted_parts(potentials: Potentials, weight: Floats, untied: Potentials) -> Potentials:
    """Weighted parts from those of the untied model, example by example."""
    s, out = potentials.structure, potentials.zeros()
    for example in range(s.n_examples):
        states = slice(*s.state_offsets[s.variable_offsets[example : example + 2]])
        out.unary[states] = weight[example] * untied.unary[states]
        for clique in range(s.clique_offsets[example], s.clique_offsets[example + 1]):
            out.table(clique)[...] += weight[example] * untied.table(clique)
    return out
