"""The plan and the work of a fit: settings, and the solver's problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from chordal.features import Layout, Shard
from chordal.objectives import Objective
from chordal.oracle import Flags
from chordal.potentials import Floats
from chordal.solvers import Solver


class Plan(NamedTuple):
    """The settings of training on the data that were read."""

    solver: Solver
    objective: Objective
    weight: Floats | None  # of examples
    free: Flags | None  # weights that move; None for all
    moved: slice | None  # weights that one number multiplies
    centre: bool  # the regularisation pulls to the weights at the start


class Work(NamedTuple):
    """The solver's problem, and the map from its weights to the model's."""

    layout: Layout
    start: Floats
    penalty: float | Floats
    shards: Sequence[Shard]
    cuts: list[int] | None  # where each mini-batch begins
    spread: Callable[[Floats], Floats]
