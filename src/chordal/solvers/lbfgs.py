"""L-BFGS: quasi-Newton with limited memory, for smooth objectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._blocks import Runner, blocks_of, run_in_turn
from chordal._saved import Saved, SavedError, State
from chordal._status import Status
from chordal.oracle import Floats
from chordal.solvers._base import Run, Solver, number
from chordal.solvers._vectors import Vectors

ARMIJO = 1e-4
CURVATURE = 0.9
MAX_EVALUATIONS = 30  # of a line search

Pair = tuple[Floats, Floats, float]  # step s, change of gradient y, s · y


@final
@dataclass(eq=False)
class LBFGS(Solver):
    """Limited-memory BFGS with a line search for the strong Wolfe conditions.

    Parameters
    ----------
    memory : int, default=6
        Number of stored pairs (step, change of gradient).

    References
    ----------
    Liu and Nocedal (1989), On the limited memory BFGS method for large scale optimization.
    """

    memory: int = number(6, minimum=1)

    needs_smooth: ClassVar[bool] = True
    rotates: ClassVar[bool] = True

    def _run(self, run: Run) -> Status:
        vectors = run.vectors
        history = run.keep("pairs", CurvatureHistory(self.memory, vectors.run, len(run.weights)))
        direction = np.empty_like(run.weights)
        while True:
            run.between()
            slope = history.direction(run.gradient, direction)
            if slope >= 0.0:
                history.clear()
                continue
            if -slope <= 1e-14 * max(1.0, abs(run.value)):
                return Status.CONVERGED  # what is left to gain is lost in rounding
            step = 1.0 if len(history) else 1.0 / max(1.0, run.gradient_norm)
            start = Point(0.0, run.weights, run.value, run.gradient, slope)
            point = strong_wolfe(run.evaluate, start, direction, step, vectors)
            if point is None:
                if len(history) == 0:
                    return Status.STALLED
                history.clear()  # try once more along the steepest descent
                continue
            run.changing()
            history.add(point.weights, run.weights, point.gradient, run.gradient)
            norm = vectors.norm(point.gradient)
            status = run.accept(point.weights, point.value, point.gradient, norm)
            if status is not None:
                return status
            run.recycle(start.weights, start.gradient)


class CurvatureHistory:
    """The last `memory` pairs (step, change of gradient), and products with the inverse Hessian.

    The two-loop recursion runs on coefficients: with the products s·y, y·y, s·g and y·g it needs no
    long vectors. Products with the newest y are differences of products with gradients. So a step
    reads all pairs twice (for the products and for the sum) instead of four times. Pairs are stored
    in float32, which halves memory traffic; sums are in float64, block by block. `run` may
    distribute the blocks over threads.

    Chen, Wang and Zhou (2014), Large-scale L-BFGS using MapReduce.
    """

    def __init__(self, memory: int, run: Runner = run_in_turn, n_weights: int = 0) -> None:
        self._memory, self._run, self._n_weights = memory, run, n_weights
        # Rows 2k and 2k + 1 are the step s and the change y of pair k, written round and round.
        self._pairs: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
        self._order: list[int] = []  # pairs, oldest first
        self._sy: Floats = np.zeros((memory, memory))
        self._yy: Floats = np.zeros((memory, memory))
        self._sg: Floats = np.zeros(memory)  # products with the latest gradient
        self._yg: Floats = np.zeros(memory)

    def __len__(self) -> int:
        return len(self._order)

    def to_state(self) -> State:
        """All pairs, including dropped ones, whose products are still stored."""
        products = {"sy": self._sy, "yy": self._yy, "sg": self._sg, "yg": self._yg}
        order = np.array(self._order, dtype=np.int64)
        return {"pairs": self._pairs, "order": order, **products}

    def from_state(self, saved: Saved) -> None:
        """Restore pairs of vectors of the same length."""
        memory, order = self._memory, saved.array("order", np.int64, (None,)).tolist()
        if len(set(order)) < len(order) or not set(order) <= set(range(memory)):
            raise SavedError(f"the pairs must be some of {memory}, each once")
        self._order, self._pairs = order, saved.array("pairs", np.float32, (None,))
        if len(self._pairs) != 2 * memory * self._n_weights and (order or len(self._pairs)):
            raise SavedError(f"there must be {memory} pairs of {self._n_weights} weights")
        self._sy, self._yy = (saved.array(k, np.float64, (memory, memory)) for k in ("sy", "yy"))
        self._sg, self._yg = (saved.array(k, np.float64, (memory,)) for k in ("sg", "yg"))

    def clear(self) -> None:
        """Forget all pairs."""
        self._order = []

    def add(
        self, weights: Floats, old_weights: Floats, gradient: Floats, old_gradient: Floats
    ) -> None:
        """Store the last step, unless its curvature is not positive."""
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
        """Write −H · gradient (of the last gradient) to `out`; returns the slope along it."""
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
    """s · y, or 0 if it is not safely positive."""
    curvature = float(np.dot(s, y))
    return curvature if curvature > 1e-10 * np.sqrt(np.dot(s, s) * np.dot(y, y)) else 0.0


@dataclass
class Point:
    """A trial step: how far, where, the value, the gradient and the slope along the line."""

    step: float
    weights: Floats
    value: float
    gradient: Floats
    slope: float


def strong_wolfe(
    evaluate: Callable[[Floats], tuple[float, Floats]],
    start: Point,
    direction: Floats,
    step: float,
    vectors: Vectors | None = None,
) -> Point | None:
    """A point that satisfies the strong Wolfe conditions, or the best found, or None.

    By bracketing and cubic interpolation: Nocedal and Wright (2006), Numerical Optimization,
    algorithms 3.5 and 3.6.
    """
    vectors = vectors or Vectors()

    def at(step: float) -> Point:
        weights = vectors.moved(start.weights, direction, step)
        value, gradient = evaluate(weights)
        slope = vectors.dot(gradient, direction)
        if not np.isfinite(value) or not np.isfinite(slope):
            value, slope = np.inf, np.inf
        return Point(step, weights, value, gradient, slope)

    def decreases(point: Point) -> bool:
        return point.value <= start.value + ARMIJO * point.step * start.slope

    low, high = start, None
    for _ in range(MAX_EVALUATIONS):
        point = at(step)
        if not decreases(point) or point.value >= low.value:
            high = point
        elif abs(point.slope) <= -CURVATURE * start.slope:
            return point
        else:
            if point.slope >= 0.0 if high is None else point.slope * (high.step - low.step) >= 0.0:
                high = low
            low = point
        if high is None:
            step = 4.0 * low.step
            continue
        if abs(high.step - low.step) < 1e-12 * max(abs(low.step), abs(high.step)):
            break
        step = _interpolated(low, high)
    return low if low is not start and low.value < start.value else None


def _interpolated(low: Point, high: Point) -> float:
    """The minimiser of the cubic through both ends, kept away from them."""
    width = high.step - low.step
    fallback = low.step + 0.5 * width
    if not np.isfinite(high.value):
        return low.step + 0.1 * width
    d1 = low.slope + high.slope - 3.0 * (low.value - high.value) / (low.step - high.step)
    square = d1 * d1 - low.slope * high.slope
    if square < 0.0:
        return fallback
    d2 = np.copysign(np.sqrt(square), width)
    denominator = high.slope - low.slope + 2.0 * d2
    if denominator == 0.0:
        return fallback
    step = high.step - width * (high.slope + d2 - d1) / denominator
    inside = (step - low.step) / width
    return float(step) if 0.05 <= inside <= 0.95 else low.step + width * min(max(inside, 0.1), 0.9)
