"""Execution: where the tasks of an evaluation run. One file is one way."""

from chordal._registry import Registry
from chordal.execution._base import Execution, effective_n_jobs

EXECUTION = Registry("chordal.execution", Execution, "execution")


def execution_for(n_jobs: int) -> Execution:
    """So many threads; one needs no pool."""
    return EXECUTION.resolve("threads" if n_jobs > 1 else "serial", n_jobs=n_jobs)


__all__ = ["EXECUTION", "Execution", "effective_n_jobs", "execution_for"]
