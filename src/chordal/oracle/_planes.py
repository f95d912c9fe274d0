"""Block-coordinate Frank–Wolfe on any structure: a plane under the loss of every example.

An example's loss is at least L_i + ⟨G_i, w⟩, where G_i is the adjoint of parts P_i in the shape of
its potentials, so that ⟨G_i, w⟩ is a product with scores that are at hand. Planes that were
found are mixed: P_i and L_i are means of them, with dual variables for weights. Then
w = centre − Σ G_i / l2 minimises the planes' sum plus the regularisation, and

    dual = Σ L_i + ⟨centre, Σ G_i⟩ − ‖Σ G_i‖² / (2 l2)

bounds the optimum from below. Where the best labelling is found approximately, planes still are
below the loss, but the losses themselves are taken too low.

Reference: Lacoste-Julien et al. (2013), Block-coordinate Frank–Wolfe optimization for structural
SVMs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal.potentials import Floats, Potentials

Ints = NDArray[np.int64]


class PlaneLearner:
    """Each visit mixes the plane that touches one example's loss into that example's own."""

    def __init__(self, examples: Any) -> None:
        self._examples = examples
        n = examples.n_weights
        self._centre = np.zeros(n) if examples.centre is None else examples.centre
        self._w = self._centre.copy()
        self._mean_w, self._mean_linear = self._w.copy(), 0.0
        self._parts: list[tuple[Floats, Floats] | None] = [None] * examples.n_examples
        self._linear = np.zeros(examples.n_examples)
        self._steps, self._dual = 0, -np.inf

    def visit(self, order: Ints) -> None:
        """Improve the planes of these examples in turn."""
        for i in self._examples.checked(order):
            self._improve(i)
            if not np.isfinite(self._w).all():
                raise OverflowError
            self._steps += 1
            share = 2.0 / (self._steps + 1.0)
            self._mean_w += share * (self._w - self._mean_w)
            self._mean_linear += share * (float(self._linear.sum()) - self._mean_linear)

    def _improve(self, i: int) -> None:
        examples = self._examples
        potentials = examples.potentials(i, self._w)
        loss, found = examples.evaluate(examples.shards[i], potentials)
        kept = self._parts[i]
        own = potentials.zeros() if kept is None else potentials.like(*kept)
        gap = loss - float(self._linear[i]) - _product(own, potentials)
        linear = loss - _product(found, potentials) - float(self._linear[i])
        found.unary[:] -= own.unary
        found.tables[:] -= own.tables
        change = examples.adjoint(i, found)
        with np.errstate(over="ignore"):
            curvature = float(change @ change) / examples.l2
        if not np.isfinite(curvature):
            raise OverflowError
        if gap <= 0.0:  # the plane touches the loss already
            return
        step = 1.0 if gap >= curvature else gap / curvature
        self._parts[i] = (own.unary + step * found.unary, own.tables + step * found.tables)
        self._linear[i] += step * linear
        self._w -= step / examples.l2 * change

    def state(self) -> tuple[Floats, float]:
        """The mean weights, and the highest dual value so far."""
        for w, linear in (
            (self._w, float(self._linear.sum())),
            (self._mean_w, self._mean_linear),
        ):
            self._dual = max(self._dual, self._dual_value(w, linear))
        return self._mean_w.copy(), self._dual

    def _dual_value(self, w: Floats, linear: float) -> float:
        l2, offset = self._examples.l2, w - self._centre
        return linear - l2 * float(self._centre @ offset) - 0.5 * l2 * float(offset @ offset)


def _product(parts: Potentials, scores: Potentials) -> float:
    """⟨parts, scores⟩; what is forbidden has no part."""
    allowed = np.where(scores.tables == -np.inf, 0.0, scores.tables)
    return float(parts.unary @ scores.unary + parts.tables @ allowed)
