"""What solvers may ask of a problem, and what is asked of features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from math import inf
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from chordal._blocks import Runner, run_in_turn
from chordal.potentials import Floats, Potentials

Ints = NDArray[np.int64]

S = TypeVar("S")
T = TypeVar("T")


@runtime_checkable
class Oracle(Protocol):
    """A function of the weights that a solver minimises.

    It may offer `run`, a `Runner` for the solver's own work on long vectors, and `recycle(vector)`,
    which takes back the memory of a gradient that is no longer needed.
    """

    n_weights: int

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        """The objective and its gradient."""
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


@dataclass(frozen=True)
class UpdateRule:
    """How one example changes the weights w, given its gold labelling.

    Attributes
    ----------
    name : str
        "perceptron", "passive_aggressive" and "arow" compare the best labelling with the gold one
        and leave the weights alone where both are equal. See `GradientRule` for "gradient".
    parameters : tuple of float
        Of "passive_aggressive": variant (0, 1, 2), aggressiveness, and 1 for a margin that
        grows with the number of errors. Of "arow": regularisation and the initial variance.
    averaged : bool
        What is learned is the mean of the weights after every example, not the last ones.
    """

    name: str
    parameters: tuple[float, ...] = ()
    averaged: bool = False


@dataclass(frozen=True)
class GradientRule:
    """One step down the loss ℓ of each example, as the oracle's objective defines it.

    With v = w − centre, t = 0, 1, … and k = t + first: η = 1 / (inverse_rate + growth · k^power),
    m ← momentum · m − η ∇ℓ(v), v ← (1 − η · decay) v + m; then v is shortened to `radius`.

    Attributes
    ----------
    decay : float
        λ, the L2 term's share of one example.
    look_ahead : bool
        ∇ℓ is taken where decay and momentum carry v, not at v itself.
    average_after : float
        What is learned is the mean of the weights after each step t that is not below this.
    """

    decay: float = 0.0
    inverse_rate: float = 1.0
    growth: float = 0.0
    power: float = 1.0
    first: float = 1.0
    momentum: float = 0.0
    radius: float = inf
    average_after: float = inf
    look_ahead: bool = False

    name: ClassVar[str] = "gradient"

    @property
    def averaged(self) -> bool:
        return self.average_after < inf

    @property
    def parameters(self) -> tuple[float, ...]:
        """All of them, in the order above."""
        return tuple(float(value) for value in astuple(self))

    def rate(self, step: float) -> float:
        """η of the step t."""
        return 1.0 / (self.inverse_rate + self.growth * (step + self.first) ** self.power)


class Learner(Protocol):
    """Weights that examples change, one after another."""

    def visit(self, order: NDArray[np.int64]) -> float:
        """Learn from these examples in turn; the sum of the losses met on the way.

        Raises
        ------
        OverflowError
            When weights or scores are no longer finite.
        """
        ...

    def weights(self) -> Floats:
        """What has been learned so far, also when a visit was interrupted; a copy."""
        ...


@runtime_checkable
class ExampleOracle(Protocol):
    """Examples that an online solver learns from one by one; a step costs what one costs."""

    n_examples: int
    n_weights: int
    l2: float
    centre: Floats | None  # the L2 term is (l2/2) ‖w − centre‖²; None: zero

    def learner(self, rule: UpdateRule | GradientRule, start: Floats) -> Learner:
        """A learner by this rule, from these weights on."""
        ...

    def penalty(self, weights: Floats) -> float:
        """The regularisation term of all examples."""
        ...


@runtime_checkable
class RegularisedOracle(Protocol):
    """A convex loss, never below zero, plus (l2/2) ‖w − centre‖²: what bounds are made of."""

    n_weights: int
    l2: float
    centre: Floats | None

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        """The objective, with the regularisation, and its gradient or a subgradient."""
        ...


class Planes(NamedTuple):
    """A plane under each example's loss: loss_i(w) ≥ offsets[i] + ⟨slopes[i], w⟩ for all w.

    `values` are the losses at the weights where the planes touch them. Sample weights are in.
    """

    values: Floats
    offsets: Floats
    slopes: Any  # sparse [n_examples, n_weights]


@runtime_checkable
class PlaneOracle(Protocol):
    """Examples whose losses have planes under them, by a loss-augmented argmax each."""

    n_examples: int
    n_weights: int
    l2: float
    centre: Floats | None

    def planes(self, weights: Floats) -> Planes:
        """The planes that touch the losses at these weights."""
        ...


class DualLearner(Protocol):
    """Dual variables of examples, which visits improve one after another."""

    def visit(self, order: NDArray[np.int64]) -> None:
        """Improve the dual variables of these examples in turn.

        Raises
        ------
        OverflowError
            When weights or scores are no longer finite.
        """
        ...

    def state(self) -> tuple[Floats, float]:
        """Weights that the dual variables give, and the dual value reached; also in between."""
        ...


@runtime_checkable
class DualOracle(Protocol):
    """Examples with dual variables of their own; a step costs what one example costs."""

    n_examples: int
    n_weights: int
    l2: float
    centre: Floats | None

    def value(self, weights: Floats) -> float:
        """The regularised objective."""
        ...

    def dual_learner(self, rule: str) -> DualLearner:
        """A learner by the rule "frank_wolfe" or "exponentiated_gradient", at w = centre."""
        ...


class Mapper(Protocol):
    """Runs tasks, in order or at once; results come back in order."""

    n_jobs: int

    def map(self, task: Callable[[S], T], items: Iterable[S]) -> list[T]: ...


class ShardFeatures(Protocol):
    """A linear map from weights to the potentials of shards, and its adjoint in blocks."""

    n_weights: int

    def expand(self, weights: Floats, memory: Any = None, run: Runner = run_in_turn) -> Any: ...
    def potentials(self, shard: Any, w: Any, memory: Floats | None = None) -> Potentials: ...
    def zeros(self, memory: Any = None, run: Runner = run_in_turn) -> Any: ...
    def n_blocks(self, n_jobs: int) -> int: ...
    def adjoint(
        self, shard: Any, parts: Potentials, sums: Any, block: int, n_jobs: int
    ) -> None: ...
    def collect(
        self, sums: Any, out: Floats | None = None, run: Runner = run_in_turn
    ) -> Floats: ...
