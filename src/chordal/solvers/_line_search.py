"""Line search for the strong Wolfe conditions, by bracketing and cubic interpolation.

Nocedal and Wright (2006), Numerical Optimization, algorithms 3.5 and 3.6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chordal.oracle import Floats
from chordal.solvers._base import Vectors

ARMIJO = 1e-4
CURVATURE = 0.9
MAX_EVALUATIONS = 30


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
    """A point that satisfies the strong Wolfe conditions, or the best found, or None."""
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
