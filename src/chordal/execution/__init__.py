"""Execution: where the tasks of an evaluation run. One file is one way."""

from __future__ import annotations

import os
from numbers import Integral

from chordal._registry import Registry
from chordal.execution._base import Execution

EXECUTION = Registry("chordal.execution", Execution, "execution")


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


def execution_for(n_jobs: int) -> Execution:
    """So many threads; one needs no pool."""
    return EXECUTION.resolve("threads" if n_jobs > 1 else "serial", n_jobs=n_jobs)


__all__ = ["EXECUTION", "Execution", "effective_n_jobs", "execution_for"]
