"""What solvers may ask of a function; `examples` has what they may ask of single examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from chordal._blocks import Runner
from chordal.potentials import Floats

Ints = NDArray[np.int64]

S = TypeVar("S")
T = TypeVar("T")


@runtime_checkable
class Oracle(Protocol):
    """A function of the weights that a solver minimises."""

    n_weights: int

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        """The objective and its gradient."""


@runtime_checkable
class DataOracle(Oracle, Protocol):
    """A function of data in memory, which also helps with work on long vectors."""

    noisy: bool  # values and gradients are estimates from samples
    without_l1: Ints | None  # weights that an L1 term leaves alone

    @property
    def run(self) -> Runner:
        """Runs the solver's own work on blocks of long vectors."""

    def recycle(self, vector: Floats) -> None:
        """Take back the memory of a gradient that is no longer needed."""


@runtime_checkable
class SecondOrderOracle(Oracle, Protocol):
    """A function with second derivatives."""

    def hess_vec(self, weights: Floats, direction: Floats) -> Floats:
        """The Hessian at the weights times the direction."""

    def hessian(self, weights: Floats) -> Floats:
        """The Hessian [n_weights, n_weights]; for few weights."""


@runtime_checkable
class BatchOracle(Oracle, Protocol):
    """A function that is a sum over batches of examples."""

    def batches(self) -> Sequence[Oracle]:
        """The functions of the batches, each with its share of the penalty; this is their sum."""


@runtime_checkable
class SecondOrderBatchOracle(SecondOrderOracle, BatchOracle, Protocol):
    """A sum over batches of examples, each with second derivatives."""


class Penalised(Protocol):
    """A loss plus (l2/2) ‖w − centre‖²; a centre of None is zero."""

    n_weights: int
    l2: float
    centre: Floats | None


@runtime_checkable
class RegularisedOracle(Penalised, Protocol):
    """A convex loss, never below zero, with its penalty: what bounds are made of."""

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        """The objective, with the regularisation, and its gradient or a subgradient."""


class Mapper(Protocol):
    """Runs tasks, in order or at once; results come back in order."""

    n_jobs: int

    def map(self, task: Callable[[S], T], items: Iterable[S]) -> list[T]:
        """Run task(item) for every item."""
