"""The contract of `marginals_derivative`: brute force, differences, weights and memory."""

from __future__ import annotations

import numpy as np

from chordal.inference import Inference
from chordal.inference.exhaustive import ExhaustiveInference
from chordal.potentials import Potentials
from chordal.testing.contracts._common import (
    assert_same_parts,
    copy_of,
    random_direction,
    rounding,
    unchanged,
    weighted_parts,
)


def check_marginals_derivative(
    method: Inference, potentials: Potentials, rng: np.random.Generator
) -> None:
    """The derivative of marginals is that of all labellings, and of differences."""
    direction = random_direction(potentials, rng)
    with unchanged(direction, "marginals_derivative"):
        parts = method.marginals_derivative(potentials, direction)
    exact = method.exact_on(potentials.structure)
    atol = 30.0 * rounding(potentials) if exact else 1e-3
    if exact:
        truth = ExhaustiveInference().marginals_derivative(potentials, direction)
        assert_same_parts(parts, truth, "marginals_derivative", atol=atol)
    _check_numeric_derivative(method, potentials, direction, parts)

    overwritten = method.marginals_derivative(potentials, copy_of(direction), overwrite=True)
    what = "marginals_derivative with overwrite"
    assert_same_parts(overwritten, parts, what, atol=0.0, rtol=0.0)
    weight = rng.uniform(0.5, 2.0, size=potentials.structure.n_examples)
    weight[: len(weight) // 2] = 0.0
    weighted = method.marginals_derivative(potentials, direction, weight)
    what = "weighted marginals_derivative"
    untied = method.marginals_derivative(potentials.untied(), direction.untied())
    expected = weighted_parts(potentials, weight, untied)
    assert_same_parts(weighted, expected, what, atol=2.0 * atol)


def _check_numeric_derivative(
    method: Inference, potentials: Potentials, direction: Potentials, parts: Potentials
) -> None:
    """Symmetric differences of the method's own marginals."""
    step = 1e-4
    right, left = (
        method.marginals(
            potentials.like(
                potentials.unary + sign * direction.unary,
                potentials.tables + sign * direction.tables,
            )
        ).parts
        for sign in (step, -step)
    )
    numeric = potentials.like(
        (right.unary - left.unary) / (2.0 * step), (right.tables - left.tables) / (2.0 * step)
    )
    # Third derivatives grow with the cube of the direction's score.
    atol = 1e-4 + 4.0 * rounding(potentials) / step
    what = "marginals_derivative beside differences"
    assert_same_parts(parts, numeric, what, atol=atol, rtol=1e-3)
