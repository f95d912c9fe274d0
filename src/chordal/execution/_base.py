"""What runs the tasks of an evaluation."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from numbers import Integral
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


class Execution(ABC):
    """Runs independent tasks; results come back in the order of the items."""

    n_jobs: int

    @abstractmethod
    def map(self, task: Callable[[S], T], items: Iterable[S]) -> list[T]:
        """Run task(item) for every item."""

    def __enter__(self) -> Execution:
        return self

    @abstractmethod
    def __exit__(self, *error: object) -> None:
        """Release what the execution holds."""


def effective_n_jobs(n_jobs: int | None) -> int:
    """How many threads n_jobs asks for, as joblib counts: None is 1, −1 all cores, −2 all but one.

    >>> effective_n_jobs(None), effective_n_jobs(3)
    (1, 3)
    """
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, Integral):
        raise ValueError(f"n_jobs must be an integer or None, got {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; use None or 1 for one thread, -1 for all cores")
    if n_jobs > 0:
        return n_jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) + 1 + n_jobs)
