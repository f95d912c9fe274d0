"""The oracle: all that a solver may ask about a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from math import inf
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

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
        without_l1: Ints | None = None,
    ) -> None:
        self.features, self.shards = features, shards
        self.objective, self.inference, self.mapper = objective, inference, mapper
        self.l2, self.centre, self.without_l1 = l2, centre, without_l1
        self.n_weights = features.n_weights
        #: The objective's name where values and gradients are estimates from samples, else None.
        self.estimated = objective.name if objective.stochastic else None
        # Memory for the potentials of a wave, kept: fresh pages cost as much as the sums in them.
        # Waves are of equal length, so that threads are.
        n_waves = max(1, -(-len(shards) // max(14, 4 * mapper.n_jobs)))
        wave = max(1, -(-len(shards) // n_waves))
        states = max((shard.frame.structure.n_states for shard in shards), default=0)
        self._memory = [np.empty(states) for _ in range(wave)]
        self._spare: list[Floats] = []
        self._expanded: Any = None
        self._sums: Any = None
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
        self._spare = [vector]

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        features, n_jobs = self.features, self.mapper.n_jobs
        expanded = self._expanded = features.expand(weights, self._expanded, self.run)
        sums = self._sums = features.zeros(self._sums, self.run)
        value = 0.0

        def evaluate(task: tuple[Any, Floats]) -> Evaluation:
            shard, memory = task
            potentials = features.potentials(shard, expanded, memory)
            labels = shard.labels if self._gold is None else None
            return self.objective.evaluate(
                potentials, labels, self.inference, shard.weight, overwrite=True
            )

        for start in range(0, len(self.shards), len(self._memory)):
            wave = self.shards[start : start + len(self._memory)]
            done = self.mapper.map(evaluate, zip(wave, self._memory, strict=False))

            def add(block: int, wave: Any = wave, done: list[Evaluation] = done) -> None:
                for shard, evaluation in zip(wave, done, strict=True):
                    features.adjoint(shard, evaluation.parts, sums, block, n_jobs)

            self.mapper.map(add, range(features.n_blocks(n_jobs)))
            for evaluation in done:  # one by one: a wave's size depends on n_jobs
                value += float(evaluation.values.sum())
        gradient = self._spare.pop() if self._spare else np.empty(self.n_weights)
        features.collect(sums, gradient, self.run)
        if self._gold is not None:
            where, counts = self._gold
            value -= float(np.dot(weights[where], counts))
            gradient[where] -= counts
        return self._regularised(value, gradient, weights)

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
        self._scaled = scaled
        if scaled is not None:
            free[scaled] = False
        self._free = np.flatnonzero(free)
        self.start = start[self._free]
        if scaled is not None:
            self.start = np.append(self.start, 1.0)
        self.n_weights = len(self.start)

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        value, gradient = self._oracle.value_grad(self.whole(weights))
        return value, self.part(gradient)

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
