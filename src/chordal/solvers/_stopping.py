"""When a run on a smooth objective may end, and whether its end is a minimum."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

SMALL_GRADIENT = 0.002  # its norm by the value at the end, as a share of that at the start
SMALL_GAIN = 0.01  # of the value: what the gradient promises at most
NOTHING = 1e-8  # of the value at the start


class Slope(NamedTuple):
    """The value of an objective somewhere, and the norm of its gradient, NaN if not known."""

    value: float
    gradient: float


def is_minimum(now: Slope, first: Slope, length: float, l2: float = 0.0) -> bool:
    """Whether a run ends near the minimum, judged from the start, the end and the length of w.

    Either the gradient, as a share of the value, is small compared with the start. The norm alone
    does not tell, since with large features both fall by orders of magnitude. Or there is little to
    gain, a small share of the value, or next to nothing of the value at the start. The gain is
    estimated as the gradient times the length. If all weights of a convex loss have the penalty
    `l2`, it is at most ‖gradient‖² / (2 l2).
    """
    if np.isnan(now.gradient):
        return True
    value, before = abs(now.value), abs(first.value)
    if now.gradient * max(value, before) <= SMALL_GRADIENT * first.gradient * value:
        return True
    gain = now.gradient * max(1.0, length)
    if l2 > 0.0:
        gain = min(gain, 0.5 * now.gradient**2 / l2)
    return gain <= max(SMALL_GAIN * value, NOTHING * before)


def fallen(history: list[float], value: float, window: int) -> float:
    """How far the value fell in the last n iterations; infinity if there were fewer."""
    return history[-window] - value if len(history) >= window else inf
