"""One task after another, in the calling thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar, final

from chordal.execution._base import Execution

S = TypeVar("S")
T = TypeVar("T")


@final
class Serial(Execution):
    """Runs each task where it is asked for.

    >>> Serial().map(abs, [-1, 2])
    [1, 2]
    """

    def __init__(self, n_jobs: int = 1) -> None:
        self.n_jobs = 1

    def map(self, task: Callable[[S], T], items: Iterable[S]) -> list[T]:
        """One task after another."""
        return [task(item) for item in items]

    def __enter__(self) -> Serial:
        return self

    def __exit__(self, *error: object) -> None:
        pass
