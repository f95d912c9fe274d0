"""What solvers may ask of a problem, and what is asked of features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from chordal._blocks import Runner
from chordal.oracle.rules._base import DualLearner, DualRule, Learner, Rule
from chordal.potentials import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]

S = TypeVar("S")
T = TypeVar("T")


@runtime_checkable
class Oracle(Protocol):
    """A function of the weights that a solver minimises."""

    n_weights: int

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        """The objective and its gradient."""
        ...


@runtime_checkable
class DataOracle(Oracle, Protocol):
    """A function of data in memory, which also helps with work on long vectors."""

    noisy: bool  # values and gradients are estimates from samples
    without_l1: Ints | None  # weights that an L1 term leaves alone

    @property
    def run(self) -> Runner:
        """Runs the solver's own work on blocks of long vectors."""
        ...

    def recycle(self, vector: Floats) -> None:
        """Take back the memory of a gradient that is no longer needed."""
        ...


@runtime_checkable
class SecondOrderOracle(Oracle, Protocol):
    """A function with second derivatives."""

    def hess_vec(self, weights: Floats, direction: Floats) -> Floats:
        """The Hessian at the weights times the direction."""
        ...

    def hessian(self, weights: Floats) -> Floats:
        """The Hessian [n_weights, n_weights]; for few weights."""
        ...


@runtime_checkable
class BatchOracle(Oracle, Protocol):
    """A function that is a sum over batches of examples."""

    def batches(self) -> Sequence[Oracle]:
        """The functions of the batches, each with its share of the penalty; this is their sum."""
        ...


@runtime_checkable
class SecondOrderBatchOracle(SecondOrderOracle, BatchOracle, Protocol):
    """A sum over batches of examples, each with second derivatives."""


class Penalised(Protocol):
    """A loss plus (l2/2) ‖w − centre‖²; a centre of None is zero."""

    n_weights: int
    l2: float
    centre: Floats | None


@runtime_checkable
class ExampleOracle(Penalised, Protocol):
    """Examples that an online solver learns from one by one; a step costs what one costs."""

    n_examples: int

    def learner(self, rule: Rule, start: Floats) -> Learner:
        """A learner by this rule, from these weights on."""
        ...

    def penalty(self, weights: Floats) -> float:
        """The regularisation term of all examples."""
        ...


@runtime_checkable
class RegularisedOracle(Penalised, Protocol):
    """A convex loss, never below zero, with its penalty: what bounds are made of."""

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        """The objective, with the regularisation, and its gradient or a subgradient."""
        ...


class Planes(NamedTuple):
    """A plane under each example's loss: loss_i(w) ≥ offsets[i] + ⟨slopes[i], w⟩ for all w.

    `values` are the losses at the weights where the planes touch them. Sample weights are in.
    """

    values: Floats
    offsets: Floats
    slopes: csr_array  # [n_examples, n_weights]


@runtime_checkable
class PlaneOracle(Penalised, Protocol):
    """Examples whose losses have planes under them, by a loss-augmented argmax each."""

    n_examples: int

    def planes(self, weights: Floats) -> Planes:
        """The planes that touch the losses at these weights."""
        ...


@runtime_checkable
class DualOracle(Penalised, Protocol):
    """Examples with dual variables of their own; a step costs what one example costs."""

    n_examples: int

    def value(self, weights: Floats) -> float:
        """The regularised objective."""
        ...

    def dual_learner(self, rule: DualRule) -> DualLearner:
        """A learner by this rule, at w = centre."""
        ...


class Mapper(Protocol):
    """Runs tasks, in order or at once; results come back in order."""

    n_jobs: int

    def map(self, task: Callable[[S], T], items: Iterable[S]) -> list[T]:
        """Run task(item) for every item."""
        ...
