"""The curvature memory of limited-memory quasi-Newton methods."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._blocks import Runner, blocks_of, run_in_turn
from chordal.oracle import Floats

Pair = tuple[Floats, Floats, float]  # step s, change of gradient y, s · y


def two_loop(pairs: Sequence[Pair], gradient: Floats) -> Floats:
    """−H · gradient with the inverse Hessian H that the pairs imply.

    Nocedal (1980), Updating quasi-Newton matrices with limited storage.
    """
    d = -gradient
    alphas = []
    for s, y, curvature in reversed(pairs):
        alpha = np.dot(s, d) / curvature
        alphas.append(alpha)
        d -= alpha * y
    if pairs:
        _, y, curvature = pairs[-1]
        d *= curvature / np.dot(y, y)
    for (s, y, curvature), alpha in zip(pairs, reversed(alphas), strict=True):
        d += (alpha - np.dot(y, d) / curvature) * s
    return d


def curvature_of(s: Floats, y: Floats) -> float:
    """s · y, or 0 where it is not safely positive."""
    curvature = float(np.dot(s, y))
    return curvature if curvature > 1e-10 * np.sqrt(np.dot(s, s) * np.dot(y, y)) else 0.0


class CurvatureHistory:
    """The last `memory` pairs (step, change of gradient), and products with the inverse Hessian.

    The two-loop recursion is run on coefficients: with the products s·y, y·y, s·g and y·g at hand
    it needs no long vector. Those with the newest y are differences of products with gradients,
    so that a step reads all pairs twice (for the products, for the sum) instead of four times.
    Pairs are kept in float32, which halves what is kept and read; sums are taken in float64, a
    block of all vectors at a time. `run` may share the blocks among threads.

    Chen, Wang and Zhou (2014), Large-scale L-BFGS using MapReduce.
    """

    def __init__(self, memory: int, run: Runner = run_in_turn) -> None:
        self._memory, self._run = memory, run
        # Rows 2k and 2k + 1 are the step s and the change y of pair k, written round and round.
        self._pairs: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
        self._order: list[int] = []  # pairs, oldest first
        self._sy: Floats = np.zeros((memory, memory))
        self._yy: Floats = np.zeros((memory, memory))
        self._sg: Floats = np.zeros(memory)  # products with the latest gradient
        self._yg: Floats = np.zeros(memory)

    def __len__(self) -> int:
        return len(self._order)

    def clear(self) -> None:
        """Forget all pairs."""
        self._order = []

    def add(
        self, weights: Floats, old_weights: Floats, gradient: Floats, old_gradient: Floats
    ) -> None:
        """Remember the last step; one without positive curvature is left out."""
        rows = 2 * self._memory
        if len(self._pairs) == 0:
            self._pairs = np.zeros(rows * len(weights), dtype=np.float32)
        unused = [k for k in range(self._memory) if k not in self._order]
        new = unused[0] if unused else self._order.pop(0)
        old_sg, old_yg = self._sg, self._yg
        step = _kernels.CurvatureStep(
            weights=weights,
            old_weights=old_weights,
            gradient=gradient,
            old_gradient=old_gradient,
        )

        def block(part: slice) -> Floats:
            sums = np.empty(rows + 3)
            _kernels.curvature_pair(step, self._pairs, 2 * new, part.start, part.stop, sums)
            return sums

        total = np.zeros(rows + 3)
        for sums in self._run(block, blocks_of(len(weights))):
            total += sums
        self._sg, self._yg = total[:rows:2].copy(), total[1:rows:2].copy()
        ss, yy, curvature = total[rows:]
        if curvature <= 1e-10 * np.sqrt(ss * yy):
            return
        self._order.append(new)
        self._sy[:, new], self._yy[:, new] = self._sg - old_sg, self._yg - old_yg
        self._yy[new] = self._yy[:, new]
        self._sy[new, new], self._yy[new, new] = curvature, yy

    def direction(self, gradient: Floats, out: Floats) -> float:
        """Set out to −H · gradient, for the gradient given last; returns the slope along it."""
        if not self._order:
            np.negative(gradient, out=out)
            return -float(np.dot(gradient, gradient))
        of_s, of_y = np.zeros(self._memory), np.zeros(self._memory)  # coefficients of the sum
        sy, yy, newest = self._sy, self._yy, self._order[-1]
        for k in reversed(self._order):
            of_y[k] = (self._sg[k] + sy[k] @ of_y) / -sy[k, k]
        scale = float(sy[newest, newest] / yy[newest, newest])
        alpha = -of_y
        of_y *= scale
        for k in self._order:
            beta = (scale * self._yg[k] + yy[k] @ of_y + sy[:, k] @ of_s) / sy[k, k]
            of_s[k] = alpha[k] - beta
        coefficients = -np.stack([of_s, of_y], axis=1).ravel()

        def block(part: slice) -> float:
            return _kernels.curvature_direction(
                self._pairs,
                scale,
                part.start,
                part.stop,
                coefficients=coefficients,
                gradient=gradient,
                out=out,
            )

        return sum(self._run(block, blocks_of(len(gradient))))


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
        """Forget all pairs."""
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
