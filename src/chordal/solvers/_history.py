"""The curvature memory of limited-memory quasi-Newton methods."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import daxpy, ddot, dscal

from chordal.oracle import Floats

Pair = tuple[Floats, Floats, float]  # step s, change of gradient y, s · y


def two_loop(pairs: Sequence[Pair], gradient: Floats) -> Floats:
    """−H · gradient with the inverse Hessian H that the pairs imply.

    Nocedal (1980), Updating quasi-Newton matrices with limited storage.
    """
    d = -gradient
    alphas = []
    for s, y, curvature in reversed(pairs):
        alpha = ddot(s, d) / curvature
        alphas.append(alpha)
        daxpy(y, d, a=-alpha)
    if pairs:
        _, y, curvature = pairs[-1]
        dscal(curvature / ddot(y, y), d)
    for (s, y, curvature), alpha in zip(pairs, reversed(alphas), strict=True):
        daxpy(s, d, a=alpha - ddot(y, d) / curvature)
    return d


def curvature_of(s: Floats, y: Floats) -> float:
    """s · y, or 0 where it is not safely positive."""
    curvature = float(ddot(s, y))
    return curvature if curvature > 1e-10 * float(np.sqrt(ddot(s, s) * ddot(y, y))) else 0.0


class CurvatureHistory:
    """The last `memory` pairs (step, change of gradient)."""

    def __init__(self, memory: int) -> None:
        self._pairs: deque[Pair] = deque(maxlen=memory)

    def __len__(self) -> int:
        return len(self._pairs)

    def clear(self) -> None:
        self._pairs.clear()

    def add(self, s: Floats, y: Floats) -> None:
        """Remember a pair; one without positive curvature is left out."""
        curvature = curvature_of(s, y)
        if curvature > 0.0:
            self._pairs.append((s, y, curvature))

    def direction(self, gradient: Floats) -> Floats:
        """−H · gradient."""
        return two_loop(self._pairs, gradient)


class SubspaceHistory:
    """Pairs on the coordinates that are free to move, which change from step to step.

    With an L1 term few weights are ever free, so that many pairs cost little.
    """

    def __init__(self, memory: int) -> None:
        self._steps: deque[tuple[Floats, Floats]] = deque(maxlen=memory)
        self._free: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._steps)

    def clear(self) -> None:
        self._steps.clear()

    def restrict(self, free: NDArray[np.int64]) -> None:
        """Keep the pairs on these coordinates (ascending); new ones start at zero."""
        if np.array_equal(free, self._free):
            return
        at = np.minimum(np.searchsorted(self._free, free), max(len(self._free) - 1, 0))
        known = self._free[at] == free if len(self._free) else np.zeros(len(free), dtype=bool)

        def moved(values: Floats) -> Floats:
            return np.where(known, values[at], 0.0)

        self._steps = deque(
            ((moved(s), moved(y)) for s, y in self._steps), maxlen=self._steps.maxlen
        )
        self._free = free

    def add(self, s: Floats, y: Floats) -> None:
        """Remember a pair on the current coordinates."""
        if curvature_of(s, y) > 0.0:
            self._steps.append((s, y))

    def direction(self, gradient: Floats) -> Floats:
        """−H · gradient, all on the current coordinates."""
        pairs = [(s, y, curvature_of(s, y)) for s, y in self._steps]
        return two_loop([pair for pair in pairs if pair[2] > 0.0], gradient)
