"""Long vectors in blocks: what a task works on when threads share the work."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

S = TypeVar("S")
T = TypeVar("T")

#: Runs independent tasks, perhaps at once; results come back in order.
Runner = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]

BLOCK = 1 << 18


def run_in_turn(task: Callable[[S], T], items: Iterable[S]) -> list[T]:
    """Run task(item) for one item after another."""
    return [task(item) for item in items]


def blocks_of(n: int, size: int = BLOCK) -> list[slice]:
    """The blocks of n numbers; they do not depend on the number of threads.

    >>> blocks_of(300_000)
    [slice(0, 262144, None), slice(262144, 300000, None)]
    """
    return [slice(begin, min(begin + size, n)) for begin in range(0, n, size)]
