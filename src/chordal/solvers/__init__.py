"""Solvers: optimisers of a training objective. Each file is one solver."""

from chordal._registry import Registry
from chordal.solvers._base import Run, Solver, number
from chordal.solvers._keeping import Keeper
from chordal.solvers._solution import Callback, Iteration, Solution

SOLVERS = Registry("chordal.solvers", Solver, "solver")

__all__ = ["SOLVERS", "Callback", "Iteration", "Keeper", "Run", "Solution", "Solver", "number"]
