"""The problem of training: what a solver may refuse, which oracle it gets, and sums over shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from chordal._blocks import Runner, aligned_zeros, blocks_of
from chordal._errors import UnsupportedError
from chordal.features import Layout, Spilled, fetch, release
from chordal.inference import Inference
from chordal.objectives import TARGETS, Evaluation, MarginObjective, Objective
from chordal.oracle._protocols import Mapper, SecondOrderOracle
from chordal.oracle.chains import ChainExamples
from chordal.oracle.examples import DualOracle, ExampleOracle, PlaneOracle, StructuredExamples
from chordal.potentials import Floats, Potentials
from chordal.structures import Chain, Structure
from chordal.targets import PartialLabels, add_target

Ints = NDArray[np.int64]

T = TypeVar("T")


class Problem(NamedTuple):
    """What training is about to minimise, as far as it is known before any work.

    Attributes
    ----------
    objective : Objective
    targets : {"hard", "soft", "partial"}
        Whether examples have one labelling each, probabilities, or sets of allowed labels.
    l2 : float or dict by group of weights
    partial : bool
        Some weights stay as they are.
    n_weights : int
    exempt : bool
        Some weights, such as intercepts, have no l2.
    warm : bool
        The first weights are not those that the regularisation pulls to.
    chains : bool
        Examples are chains, as far as is known before they are read.
    parted : bool
        The data are in parts on other machines: only sums over all examples are available.
    """

    objective: Objective
    targets: str = "hard"
    l2: float | Mapping[str, float] = 1.0
    partial: bool = False
    n_weights: int = 0
    exempt: bool = False
    chains: bool = True
    warm: bool = False
    parted: bool = False

    @property
    def one_l2(self) -> bool:
        """Whether all weights have the same l2."""
        return not isinstance(self.l2, Mapping) and not self.exempt

    @property
    def described_targets(self) -> str:
        """The kind of targets, in words."""
        return TARGETS[self.targets]


def missing(oracle: object, asked: type) -> list[str]:
    """Fields and methods of a protocol that an oracle does not have, sorted."""
    bases = [base for base in asked.__mro__ if getattr(base, "_is_protocol", False)]
    names = {name for base in bases for name in {**base.__annotations__, **vars(base)}}
    return sorted(n for n in names if not n.startswith("_") and not hasattr(oracle, n))


def asks_examples(asked: type) -> bool:
    """Whether a protocol is about single examples rather than their sum."""
    return asked in (ExampleOracle, DualOracle, PlaneOracle)


def single_examples(asked: type, features: Layout, objective: Objective) -> bool:
    """Whether a solver that needs this oracle takes even chains one by one, in Python.

    The compiled loops support neither scaled weights nor the losses of single variables, nor
    transitions that share weights.
    """
    if not asks_examples(asked):
        return False
    if features.shares_transitions:
        return True
    if asked not in (DualOracle, PlaneOracle):
        return False
    return features.scale is not None or not isinstance(objective, MarginObjective)


def oracle_for(
    asks: type,
    features: Layout,
    shards: Sequence[Any],
    objective: Objective,
    inference: Inference,
    mapper: Mapper,
    l2: float | Floats = 0.0,
    centre: Floats | None = None,
    cuts: Sequence[int] | None = None,
    without_l1: Ints | None = None,
) -> SummedOracle | StructuredExamples:
    """The oracle for a solver that asks for this protocol.

    Where it asks for single examples, shards must hold one each, those of chains any number.
    """
    loss, penalty = (features, shards, objective, inference, mapper), (l2, centre)
    if not asks_examples(asks):
        return SummedOracle(*loss, *penalty, cuts, without_l1)
    chains = all(isinstance(shard.frame.structure, Chain) for shard in shards)
    if chains and not single_examples(asks, features, objective):
        return ChainExamples(*loss, *penalty, cuts)
    return StructuredExamples(*loss, *penalty, cuts)


def check_questions(
    solver: str, asks: type, objective: Objective, inference: Inference, structure: Structure
) -> None:
    """Refuse an objective whose questions inference cannot answer, before any work."""
    objective.require(inference, structure)
    if SecondOrderOracle in asks.__mro__:
        objective.require_curvature(inference, structure, solver)


def refuse_unbounded(loss: float, gold: float, inference: Inference) -> None:
    """Refuse −log p of known labels below 0, from a log Z that is a lower bound: it has no minimum.

    −log p is log Z minus the gold labels' score. A log Z that is too low at strong interactions
    makes it fall without end.
    """
    if inference.bound == "lower" and loss < -1e-6 * max(1.0, abs(gold)):
        raise UnsupportedError(
            f"training through inference {inference.name!r} runs away: the loss is {loss:.6g}, and "
            "−log p of known labels is never below 0. Its log Z is a lower bound, and too low for "
            "interactions of this strength. Use inference='tree_reweighted', 'junction_tree' on "
            "small graphs, objective='pseudo_likelihood', or a larger l2"
        )


@dataclass(eq=False, repr=False)
class SummedOracle:
    """Σ objective + (l2/2) ‖w − centre‖² over shards of a batch.

    `l2` is one number, or one for each weight: Σ_k l2_k/2 (w_k − centre_k)². `without_l1` names the
    weights that a solver's L1 term leaves alone.

    Shards are taken in waves. Within a wave, tasks first share the shards (potentials, inference,
    parts), then the blocks of weights (adjoint). No two tasks write to the same place, and every
    sum runs in the order of the data. The result is therefore the same, bit for bit, for any
    number of threads.

    For solvers that learn from a part of the examples at a time, `cuts` says where each mini-batch
    of shards begins, and where the last one ends. What is in a mini-batch is decided before
    shards are compiled, and stays; solvers choose the order in which they take them.
    """

    features: Layout
    shards: Sequence[Any]
    objective: Objective
    inference: Inference
    mapper: Mapper
    l2: float | Floats = 0.0
    centre: Floats | None = None
    cuts: Sequence[int] | None = None
    without_l1: Ints | None = None

    def __post_init__(self) -> None:
        shards, self.n_weights = self.shards, self.features.n_weights
        #: Whether values and gradients are estimates from samples.
        self.noisy = self.objective.stochastic
        # Memory for the potentials of a wave, kept: fresh pages cost as much as the sums in them.
        # Waves are of equal length, so that threads are.
        n_waves = max(1, -(-len(shards) // max(14, 4 * self.mapper.n_jobs)))
        wave = max(1, -(-len(shards) // n_waves))
        states = max((shard.frame.structure.n_states for shard in shards), default=0)
        self._memory = [aligned_zeros(states) for _ in range(wave)]
        self._second: list[Floats] = []  # for directions, if they are asked for
        self._kept: dict[str, Any] = {"expanded": None, "sums": None, "gradient": None}
        self._gold: tuple[Ints | slice, Floats] | None = None
        self._gold_pages: Sequence[Any] = ()
        partial = any(isinstance(shard.labels, PartialLabels) for shard in shards)
        if self.objective.minus_gold and not partial:
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
        counts = [shard.frame.structure.n_examples for shard in self.shards]
        n = max(1, sum(counts))
        cuts = [0, len(counts)] if self.cuts is None else self.cuts
        return self._counted([self._part(a, b, sum(counts[a:b]) / n) for a, b in pairwise(cuts)])

    def _part(self, first: int, last: int, share: float) -> SummedOracle:
        part = copy(self)  # waves work in the same memory: batches are taken one after another
        part.shards, part.cuts = self.shards[first:last], None
        part.l2 = share * self.l2
        return part

    def _counted(self, parts: list[SummedOracle]) -> list[SummedOracle]:
        """Mini-batches with their gold counts; those of shards in a file go to one too."""
        if self._gold is None:
            return parts
        counts = (part._gold_counts() for part in parts)
        golds = Spilled.of(counts) if isinstance(self.shards, Spilled) else list(counts)
        for k, part in enumerate(parts):
            part._gold, part._gold_pages = golds[k], golds[k : k + 1]
        return parts

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        """The objective and its gradient."""
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
            gold = float(np.dot(weights[where], counts))
            value -= gold
            gradient[where] -= counts
            release(self._gold_pages)
            refuse_unbounded(value, gold, self.inference)
        return regularised(value, gradient, weights, self.l2, self.centre, self.run)

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
            fetch(self.shards[start + size : start + 2 * size])
            done = self.mapper.map(task, zip(wave, range(size), strict=False))
            parts = [parts_of(result) for result in done]

            def add(
                block: int, wave: Sequence[Any] = wave, parts: list[Potentials] = parts
            ) -> None:
                for shard, part in zip(wave, parts, strict=True):
                    features.adjoint(shard, part, sums, block, n_jobs)

            self.mapper.map(add, range(features.n_blocks(n_jobs)))
            release(wave)
        gradient, kept["gradient"] = kept["gradient"], None
        return features.collect(sums, gradient, self.run)

    def _gold_counts(self) -> tuple[Ints | slice, Floats]:
        """The features of the gold labellings, summed: which are not zero, and how often.

        Weights of −inf have none: they are left out.
        """
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
        return (slice(None), counts) if len(where) == len(counts) else (where, counts[where])


def regularised(
    value: float,
    grad: Floats,
    weights: Floats,
    l2: float | Floats,
    centre: Floats | None,
    run: Runner,
) -> tuple[float, Floats]:
    """Value and gradient with (l2/2) ‖w − centre‖² added, the gradient in place."""
    if isinstance(l2, np.ndarray):
        with np.errstate(invalid="ignore"):  # −inf − (−inf), which has no penalty
            offset = weights if centre is None else weights - centre
        offset = np.where(l2 > 0.0, offset, 0.0)
        pull = l2 * offset
        value += 0.5 * float(np.dot(pull, offset))
        grad += pull
    elif l2 > 0.0:

        def block(part: slice) -> float:
            offset = weights[part] if centre is None else weights[part] - centre[part]
            grad[part] += l2 * offset
            return float(np.dot(offset, offset))

        value += 0.5 * l2 * sum(run(block, blocks_of(len(weights))))
    return value, grad
