"""Solvers: they minimise an oracle. One file is one solver."""

from chordal._registry import Registry
from chordal.solvers._base import Callback, Iteration, Run, Solution, Solver
from chordal.solvers._history import Pair, two_loop
from chordal.solvers._schedule import StepSchedule

SOLVERS = Registry("chordal.solvers", Solver, "solver")

__all__ = [
    "SOLVERS",
    "Callback",
    "Iteration",
    "Pair",
    "Run",
    "Solution",
    "Solver",
    "StepSchedule",
    "two_loop",
]
