"""Long vectors: their blocks, which threads share, and their memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

S = TypeVar("S")
T = TypeVar("T")

#: Runs independent tasks, perhaps at once; results come back in order.
Runner = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]

BLOCK = 1 << 18
CACHE_LINE = 64  # bytes


def run_in_turn(task: Callable[[S], T], items: Iterable[S]) -> list[T]:
    """Run task(item) for one item after another."""
    return [task(item) for item in items]


def blocks_of(n: int, size: int = BLOCK) -> list[slice]:
    """The blocks of n numbers; they do not depend on the number of threads.

    >>> blocks_of(300_000)
    [slice(0, 262144, None), slice(262144, 300000, None)]
    """
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]


def aligned_zeros(n: int) -> NDArray[np.float64]:
    """n zeros from the beginning of a cache line on.

    Vectors of numbers then lie within lines. Where every second one lay across two, sums into
    rows of weights took three times as long.

    >>> aligned_zeros(5).ctypes.data % CACHE_LINE
    0
    """
    size = np.dtype(np.float64).itemsize
    room = np.zeros(n + CACHE_LINE // size - 1)
    skipped = -room.ctypes.data % CACHE_LINE // size
    return room[skipped : skipped + n]


MAX_UNITS = 31  # of a wide row: five bits of its code


def unit_of(n_outputs: int) -> int:
    """The unit, in cells, in which a wide row of weights is measured.

    >>> unit_of(22), unit_of(500)
    (4, 20)
    """
    return 4 * -(-n_outputs // (4 * MAX_UNITS))
