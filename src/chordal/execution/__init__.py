"""Execution: where the tasks of an evaluation run. One file is one way."""

from chordal._registry import Registry
from chordal.execution._base import Execution, effective_n_jobs

EXECUTION = Registry("chordal.execution", Execution, "execution")

__all__ = ["EXECUTION", "Execution", "effective_n_jobs"]
