"""The curvature memory of limited-memory quasi-Newton methods."""

from __future__ import annotations

from collections import deque

import numpy as np
from scipy.linalg.blas import daxpy, ddot, dscal

from chordal.oracle import Floats


class CurvatureHistory:
    """The last `memory` pairs (s, y) = (step, change of gradient).

    `direction` applies the inverse Hessian that they imply, by the two-loop recursion.
    Nocedal (1980), Updating quasi-Newton matrices with limited storage.
    """

    def __init__(self, memory: int) -> None:
        self._pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=memory)

    def __len__(self) -> int:
        return len(self._pairs)

    def clear(self) -> None:
        self._pairs.clear()

    def add(self, s: Floats, y: Floats) -> None:
        """Remember a pair; one without positive curvature is left out."""
        curvature = float(ddot(s, y))
        if curvature > 1e-10 * float(np.sqrt(ddot(s, s) * ddot(y, y))):
            self._pairs.append((s, y, curvature))

    def direction(self, gradient: Floats) -> Floats:
        """−H · gradient."""
        d = -gradient
        alphas = []
        for s, y, curvature in reversed(self._pairs):
            alpha = ddot(s, d) / curvature
            alphas.append(alpha)
            daxpy(y, d, a=-alpha)
        if self._pairs:
            _, y, curvature = self._pairs[-1]
            dscal(curvature / ddot(y, y), d)
        for (s, y, curvature), alpha in zip(self._pairs, reversed(alphas), strict=True):
            daxpy(s, d, a=alpha - ddot(y, d) / curvature)
        return d
