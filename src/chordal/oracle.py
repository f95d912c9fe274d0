"""The oracle: all that a solver may ask about a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import astuple, dataclass
from itertools import pairwise
from math import inf
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from chordal._blocks import Runner, blocks_of, run_in_turn
from chordal.inference import Inference
from chordal.objectives import Evaluation, Objective
from chordal.potentials import Floats as Floats
from chordal.potentials import Potentials
from chordal.targets import PartialLabels, add_target

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

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


class SummedOracle:
    """Σ objective + (l2/2) ‖w − centre‖² over shards of a batch.

    `l2` is one number, or one for each weight: Σ_k l2_k/2 (w_k − centre_k)². `without_l1` names the
    weights that a solver's L1 term leaves alone.

    Shards are taken in waves. Within a wave, tasks first share the shards (potentials,
    inference, parts), then the blocks of weights (adjoint); no two write to the same place, and
    every sum runs in the order of the data. The result is therefore the same, bit for bit,
    whatever the number of threads.

    For solvers that learn from a part of the examples at a time, `cuts` says where each mini-batch
    of shards begins, and where the last one ends. What is in a mini-batch is decided before
    shards are compiled, and stays; solvers choose the order in which they take them.
    """

    def __init__(
        self,
        features: ShardFeatures,
        shards: Sequence[Any],
        objective: Objective,
        inference: Inference,
        mapper: Mapper,
        l2: float | Floats = 0.0,
        centre: Floats | None = None,
        cuts: Sequence[int] | None = None,
        without_l1: Ints | None = None,
    ) -> None:
        self.features, self.shards = features, shards
        self.objective, self.inference, self.mapper = objective, inference, mapper
        self.l2, self.centre, self.without_l1 = l2, centre, without_l1
        self.n_weights = features.n_weights
        #: The objective's name where values and gradients are estimates from samples, else None.
        self.estimated = objective.name if objective.stochastic else None
        self._cuts = [0, len(shards)] if cuts is None else list(cuts)
        # Memory for the potentials of a wave, kept: fresh pages cost as much as the sums in them.
        # Waves are of equal length, so that threads are.
        n_waves = max(1, -(-len(shards) // max(14, 4 * mapper.n_jobs)))
        wave = max(1, -(-len(shards) // n_waves))
        states = max((shard.frame.structure.n_states for shard in shards), default=0)
        self._memory = [np.empty(states) for _ in range(wave)]
        self._second: list[Floats] = []  # for directions, if they are asked for
        self._kept: dict[str, Any] = {"expanded": None, "sums": None, "gradient": None}
        self._gold: tuple[Ints, Floats] | None = None
        partial = any(isinstance(shard.labels, PartialLabels) for shard in shards)
        if objective.minus_gold and not partial:
            self._gold = self._gold_counts()

    @property
    def run(self) -> Runner:
        """For the solver's own work on long vectors."""
        return self.mapper.map

    def recycle(self, vector: Floats) -> None:
        """Take back the memory of a gradient: fresh pages are dear."""
        self._kept["gradient"] = vector

    def batches(self) -> list[SummedOracle]:
        """An oracle for each mini-batch, with a share of the penalty by its number of examples."""
        sizes = [sum(s.frame.structure.n_examples for s in self.shards[a:b]) for a, b in self._runs]
        shares = [size / max(1, sum(sizes)) for size in sizes]
        return [self._part(*run, share) for run, share in zip(self._runs, shares, strict=True)]

    @property
    def _runs(self) -> list[tuple[int, int]]:
        return list(pairwise(self._cuts))

    def _part(self, first: int, last: int, share: float) -> SummedOracle:
        part = copy(self)  # waves work in the same memory: batches are taken one after another
        part.shards, part._cuts = self.shards[first:last], [0, last - first]
        part.l2 = share * self.l2
        if self._gold is not None:
            part._gold = part._gold_counts()
        return part

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        features, kept = self.features, self._kept
        expanded = kept["expanded"] = features.expand(weights, kept["expanded"], self.run)

        def evaluate(task: tuple[Any, int]) -> Evaluation:
            shard, place = task
            potentials = features.potentials(shard, expanded, self._memory[place])
            labels = shard.labels if self._gold is None else None
            return self.objective.evaluate(
                potentials, labels, self.inference, shard.weight, overwrite=True
            )

        value = 0.0

        def parts_of(evaluation: Evaluation) -> Potentials:
            nonlocal value
            value += float(evaluation.values.sum())
            return evaluation.parts

        gradient = self._summed(evaluate, parts_of)
        if self._gold is not None:
            where, counts = self._gold
            value -= float(np.dot(weights[where], counts))
            gradient[where] -= counts
        return self._regularised(value, gradient, weights)

    def hess_vec(self, weights: Floats, direction: Floats) -> Floats:
        """The Hessian at the weights times the direction."""
        features = self.features
        expanded, turned = features.expand(weights), features.expand(direction)
        if not self._second:
            self._second += [np.empty_like(memory) for memory in self._memory]

        def change(task: tuple[Any, int]) -> Potentials:
            shard, place = task
            potentials = features.potentials(shard, expanded, self._memory[place])
            towards = features.potentials(shard, turned, self._second[place])
            labels = shard.labels if self._gold is None else None
            return self.objective.curvature(
                potentials, labels, self.inference, towards, shard.weight, overwrite=True
            )

        product = self._summed(change, lambda parts: parts)
        if np.any(self.l2):
            product += self.l2 * direction
        return product

    def hessian(self, weights: Floats) -> Floats:
        """The Hessian, a column at a time."""
        columns = np.empty((self.n_weights, self.n_weights))
        unit = np.zeros(self.n_weights)
        for k in range(self.n_weights):
            unit[k] = 1.0
            columns[k] = self.hess_vec(weights, unit)
            unit[k] = 0.0
        return 0.5 * (columns + columns.T)

    def _summed(
        self, task: Callable[[tuple[Any, int]], T], parts_of: Callable[[T], Potentials]
    ) -> Floats:
        """Σ adjoint(parts) over the shards; `parts_of` is called once for each, in their order."""
        features, n_jobs, size = self.features, self.mapper.n_jobs, len(self._memory)
        kept = self._kept
        sums = kept["sums"] = features.zeros(kept["sums"], self.run)
        for start in range(0, len(self.shards), size):
            wave = self.shards[start : start + size]
            done = self.mapper.map(task, zip(wave, range(size), strict=False))
            parts = [parts_of(result) for result in done]

            def add(block: int, wave: Any = wave, parts: list[Potentials] = parts) -> None:
                for shard, part in zip(wave, parts, strict=True):
                    features.adjoint(shard, part, sums, block, n_jobs)

            self.mapper.map(add, range(features.n_blocks(n_jobs)))
        gradient, kept["gradient"] = kept["gradient"], None
        return features.collect(sums, gradient, self.run)

    def _gold_counts(self) -> tuple[Ints, Floats]:
        """The features of the gold labellings, summed: which are not zero, and how often."""
        features = self.features
        sums = features.zeros()
        for shard in self.shards:
            frame = shard.frame
            parts = frame.like(np.zeros(frame.structure.n_states), np.zeros(len(frame.tables)))
            add_target(parts, shard.labels, weight=shard.weight)
            for block in range(features.n_blocks(1)):
                features.adjoint(shard, parts, sums, block, 1)
        counts = features.collect(sums)
        where = np.flatnonzero(counts)
        return where, counts[where]

    def _regularised(self, value: float, grad: Floats, weights: Floats) -> tuple[float, Floats]:
        if isinstance(self.l2, np.ndarray):
            with np.errstate(invalid="ignore"):  # −inf − (−inf), which has no penalty
                offset = weights if self.centre is None else weights - self.centre
            offset = np.where(self.l2 > 0.0, offset, 0.0)
            pull = self.l2 * offset
            value += 0.5 * float(np.dot(pull, offset))
            grad += pull
        elif self.l2 > 0.0:
            l2 = self.l2

            def block(part: slice) -> float:
                offset = weights[part] if self.centre is None else weights[part] - self.centre[part]
                grad[part] += l2 * offset
                return float(np.dot(offset, offset))

            value += 0.5 * l2 * sum(self.run(block, blocks_of(len(weights))))
        return value, grad


class PartialOracle:
    """The same function of fewer weights: the others keep their starting values.

    Parameters
    ----------
    oracle : Oracle
    start : array [n_weights]
        All weights at the beginning.
    free : bool [n_weights], optional
        Which weights move; by default all.
    scaled : slice, optional
        Weights that move together: they are their starting values times one number, which is
        the last of the weights that a solver sees. They count as not free.

    Examples
    --------
    >>> class Square:
    ...     n_weights = 3
    ...     def value_grad(self, weights):
    ...         return float(weights @ weights), 2.0 * weights
    >>> part = PartialOracle(Square(), np.array([1.0, 2.0, 3.0]), np.array([False, False, True]))
    >>> part.value_grad(np.array([4.0]))
    (21.0, array([8.]))
    """

    def __init__(
        self,
        oracle: Oracle,
        start: Floats,
        free: Flags | None = None,
        scaled: slice | None = None,
    ) -> None:
        self._oracle, self._all = oracle, start.copy()
        free = np.ones(len(start), dtype=bool) if free is None else free.copy()
        if scaled is not None:
            free[scaled] = False
        self._scaled, self._mask, self._free = scaled, free, np.flatnonzero(free)
        self.start = start[self._free]
        if scaled is not None:
            self.start = np.append(self.start, 1.0)
        self.n_weights = len(self.start)

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        value, gradient = self._oracle.value_grad(self.whole(weights))
        return value, self.part(gradient)

    # What only some functions have: where the whole one does not, these raise AttributeError.

    @property
    def hess_vec(self) -> Callable[[Floats, Floats], Floats]:
        """The Hessian times a direction."""
        product = self._of_whole("hess_vec")
        return lambda weights, direction: self.part(
            product(self.whole(weights), self._spread(direction))
        )

    @property
    def hessian(self) -> Callable[[Floats], Floats]:
        """The Hessian in the weights that move."""
        matrix = self._of_whole("hessian")

        def restricted(weights: Floats) -> Floats:
            rows = np.stack([self.part(row) for row in matrix(self.whole(weights))])
            return np.stack([self.part(column) for column in rows.T])

        return restricted

    @property
    def batches(self) -> Callable[[], list[PartialOracle]]:
        """The same part of each batch's function."""
        parts = self._of_whole("batches")
        return lambda: [PartialOracle(p, self._all, self._mask, self._scaled) for p in parts()]

    def _of_whole(self, name: str) -> Any:
        return getattr(self._oracle, name)

    def whole(self, weights: Floats) -> Floats:
        """All weights."""
        out = self._all.copy()
        out[self._free] = weights[: len(self._free)]
        if self._scaled is not None:
            out[self._scaled] *= weights[-1]
        return out

    def part(self, gradient: Floats) -> Floats:
        """The gradient in the weights that move."""
        own = gradient[self._free]
        if self._scaled is None:
            return own
        return np.append(own, np.dot(gradient[self._scaled], self._all[self._scaled]))

    def _spread(self, direction: Floats) -> Floats:
        """A direction of the weights that move, as one of all weights."""
        out = np.zeros_like(self._all)
        out[self._free] = direction[: len(self._free)]
        if self._scaled is not None:
            out[self._scaled] = direction[-1] * self._all[self._scaled]
        return out
