"""Solvers: they minimise an oracle. One file is one solver."""

from chordal.solvers._auto import SOLVERS, choose_solver
from chordal.solvers._base import Callback, Iteration, Run, Solution, Solver, number

__all__ = [
    "SOLVERS",
    "Callback",
    "Iteration",
    "Run",
    "Solution",
    "Solver",
    "choose_solver",
    "number",
]
