"""Execution: where the tasks of an evaluation run. One file is one way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from numbers import Integral
from typing import TypeVar

from chordal._registry import Registry

S = TypeVar("S")
T = TypeVar("T")
E = TypeVar("E", bound="Execution")


class Execution:
    """Runs independent tasks; results come back in the order of the items.

    As it stands, each runs where it is asked for. Subclasses run them elsewhere, or at once.
    """

    def __init__(self, n_jobs: int = 1) -> None:
        self.n_jobs = 1

    def map(self, task: Callable[[S], T], items: Iterable[S]) -> list[T]:
        """Run task(item) for every item."""
        return [task(item) for item in items]

    def __enter__(self: E) -> E:
        """Hold what the execution needs until the block ends."""
        return self

    def __exit__(self, *error: object) -> None:
        """Release what the execution holds."""


EXECUTION = Registry("chordal.execution", Execution, "execution")


#: More would help nobody, and a system may refuse them.
MOST_THREADS = 512


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
        return min(int(n_jobs), MOST_THREADS)  # True is 1, also for PyTorch
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, (cores or 1) + 1 + int(n_jobs))


def execution_for(n_jobs: int) -> Execution:
    """Run tasks in this many threads; one thread needs no pool."""
    return EXECUTION.resolve("threads" if n_jobs > 1 else "serial", n_jobs=n_jobs)


def one_blas_thread() -> AbstractContextManager[object]:
    """Holds BLAS to one thread inside a `with` block, where threadpoolctl is installed.

    Idle threads of BLAS spin, and take cores from ours.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:  # it comes with scikit-learn; without it, BLAS keeps its threads
        return nullcontext()
    return threadpool_limits(1, user_api="blas")


__all__ = ["EXECUTION", "Execution", "effective_n_jobs", "execution_for", "one_blas_thread"]
