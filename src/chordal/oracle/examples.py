"""Examples learned one by one: what solvers may ask of them, and what a rule does with each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._optional import needed
from chordal._saved import Stateful
from chordal.features import Layout, Sums, fetch, release
from chordal.inference import Inference
from chordal.objectives import Objective
from chordal.oracle._chain_arrays import ChainDuals, Chains
from chordal.oracle._protocols import Mapper, Penalised
from chordal.potentials import Floats, Potentials
from chordal.targets import Labels

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]


class Mistake(NamedTuple):
    """What the best labelling of an example has wrong."""

    n_wrong: int
    n_labels: int
    lead: float  # score(best) − score(gold)
    difference: Floats  # φ(gold) − φ(best)
    weight: float  # of the example


class Learner(Stateful, Protocol):
    """Weights that examples change, one after another."""

    def visit(self, order: Ints) -> float:
        """Learn from these examples in turn; returns the sum of their losses before each step.

        Raises
        ------
        OverflowError
            When weights or scores are no longer finite.
        """

    def weights(self) -> Floats:
        """What has been learned so far, also when a visit was interrupted; a copy."""


class DualLearner(Stateful, Protocol):
    """Dual variables of examples, which visits improve one after another."""

    def visit(self, order: Ints) -> None:
        """Improve the dual variables of these examples in turn; raises as `Learner.visit`."""

    def state(self) -> tuple[Floats, float]:
        """Weights that the dual variables give, and the dual value reached; also in between."""


class Rule(ABC):
    """How one example changes the weights."""

    averaged: bool  # what is learned is a mean over time, not the last weights

    @abstractmethod
    def learner(
        self, examples: StructuredExamples, start: Floats, chains: Chains | None = None
    ) -> Learner:
        """A learner by this rule, from these weights on, for any structure.

        If the examples are `chains`, it may be a compiled loop.
        """


class DualRule(ABC):
    """How an example's dual variables are improved."""

    @abstractmethod
    def learner(self, examples: StructuredExamples, duals: ChainDuals | None = None) -> DualLearner:
        """As `Rule.learner`, from w = centre."""


@runtime_checkable
class ExampleOracle(Penalised, Protocol):
    """Examples that an online solver learns from one by one; a step costs what one costs."""

    n_examples: int
    limits: Ints  # where each block of examples begins, and where the last one ends
    exempt: Ints  # weights that have no regularisation though others have

    def learner(self, rule: Rule, start: Floats) -> Learner:
        """A learner by this rule, from these weights on."""

    def penalty(self, weights: Floats) -> float:
        """The regularisation term of all examples."""


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


@runtime_checkable
class DualOracle(Penalised, Protocol):
    """Every example has its dual variables; a step costs what one example costs."""

    n_examples: int

    def value(self, weights: Floats) -> float:
        """The regularised objective."""

    def dual_learner(self, rule: DualRule) -> DualLearner:
        """A learner by this rule, at w = centre."""


class StructuredExamples:
    """Labelled examples as an oracle of examples, of dual variables and of planes, whatever
    their structure.

    A step costs what its example costs, and as much as a few sums over all weights: where
    inference is what takes the time, and weights are not millions.

    Parameters
    ----------
    features : Layout
    shards : list of shards with one example each
        With gold labels, one per variable.
    objective : Objective
        What gradients go down, and what has planes under it.
    inference : Inference
    mapper : Mapper
        Runs what concerns all examples at once.
    l2 : float or array [n_weights]
        The regularisation is (l2/2) ‖w − centre‖². In an array, weights may be exempt by 0; all
        others have the same.
    centre : array [n_weights], optional
    cuts : list of int, optional
        Where each block of shards begins, and where the last one ends: few blocks are in memory if
        the shards lie in a file. One block by default.
    """

    compiled: Chains | None = None  # the examples as compiled loops take them, if they are chains

    def __init__(
        self,
        features: Layout,
        shards: Sequence[Any],
        objective: Objective,
        inference: Inference,
        mapper: Mapper,
        l2: float | Floats = 0.0,
        centre: Floats | None = None,
        cuts: Sequence[int] | None = None,
    ) -> None:
        self.features, self.n_weights = features, features.n_weights
        self.objective, self.inference, self._mapper = objective, inference, mapper
        self.l2, self.centre = float(np.max(l2, initial=0.0)), centre
        penalties = np.broadcast_to(l2, self.n_weights)
        self.exempt = np.flatnonzero(penalties == 0.0) if self.l2 > 0.0 else np.zeros(0, np.int64)
        if not ((penalties == 0.0) | (penalties == self.l2)).all():
            raise UnsupportedError(
                "online solvers need one l2 for all weights, or 0 for some "
                "of them; use a solver such as 'lbfgs'"
            )
        self._sums: Sums | None = None
        self._take(shards, [0, len(shards)] if cuts is None else cuts)

    def _take(self, shards: Sequence[Any], cuts: Sequence[int]) -> None:
        self.shards, self.n_examples, self.limits = shards, len(shards), np.array(cuts)

    def _pages(self, block: int) -> Sequence[Any]:
        """What holds the arrays of a block."""
        return self.shards[self.limits[block] : self.limits[block + 1]]

    def learner(self, rule: Rule, start: Floats) -> Learner:
        """A learner by this rule, from these weights on."""
        return rule.learner(self, start, self.compiled)

    def dual_learner(self, rule: DualRule) -> DualLearner:
        """A learner of dual variables by this rule, at w = centre."""
        self.require_one_l2()
        return rule.learner(self, self.duals)

    @cached_property
    def duals(self) -> ChainDuals | None:
        """What compiled rules of dual variables take."""
        return None if self.compiled is None else ChainDuals(self.compiled, self.objective)

    def require_one_l2(self) -> None:
        """Refuse weights without regularisation, for which there is no dual."""
        if len(self.exempt):
            raise UnsupportedError(
                "solvers with dual variables of examples need one l2 > 0 for all weights; "
                "use a solver such as 'lbfgs'"
            )

    def checked(self, order: Ints) -> Ints:
        """An order of examples, each of which is there."""
        order = np.ascontiguousarray(order, dtype=np.int64)
        if len(order) and not 0 <= order.min() <= order.max() < self.n_examples:
            raise IndexError(f"order must name examples 0 to {self.n_examples - 1}")
        return order

    def visits(self, order: Ints) -> Iterator[tuple[int, Ints]]:
        """This order in runs of examples of one block, each with the number of the block.

        The next block is read ahead, and those behind leave memory.
        """
        order = self.checked(order)
        block = np.searchsorted(self.limits, order, side="right") - 1
        cuts = [0, *np.flatnonzero(np.diff(block)) + 1, len(order)]
        runs = [(int(block[a]), order[a:b]) for a, b in pairwise(cuts) if a < b]
        for k, (own, some) in enumerate(runs):
            for after, _ in runs[k + 1 : k + 2]:
                fetch(self._pages(after))
            yield own, some
            release(self._pages(own))

    def penalty(self, weights: Floats) -> float:
        """(l2/2) ‖w − centre‖²."""
        offset = weights if self.centre is None else weights - self.centre
        if len(self.exempt):
            offset = np.delete(offset, self.exempt)
        with np.errstate(over="ignore"):
            return 0.5 * self.l2 * float(np.dot(offset, offset))

    def value(self, weights: Floats) -> float:
        """The regularised objective."""
        expanded = self.features.expand(weights)

        def loss(i: int) -> float:
            potentials = self.features.potentials(self.shards[i], expanded)
            return self.evaluate(i, potentials, overwrite=True)[0]

        return sum(self._mapper.map(loss, range(self.n_examples))) + self.penalty(weights)

    def planes(self, weights: Floats) -> Planes:
        """The planes that touch the losses at these weights."""
        with needed("scipy", "a solver of cutting planes"):
            from scipy.sparse import csr_array, vstack

        self.require_one_l2()
        values, offsets, slopes = np.empty(self.n_examples), np.empty(self.n_examples), []
        for i in range(self.n_examples):
            values[i], slope = self.loss_gradient(i, weights)
            offsets[i] = values[i] - float(slope @ weights)
            slopes.append(csr_array(slope[None]))
        return Planes(values, offsets, vstack(slopes, format="csr"))

    def gold(self, i: int) -> tuple[Labels, Floats | None]:
        """The gold labels of one example, and its weight, if it has one."""
        return self.shards[i].labels, self.shards[i].weight

    def potentials(self, i: int, weights: Floats) -> Potentials:
        """The scores of one example."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.features.potentials(self.shards[i], self.features.expand(weights))
        # Tables may forbid what no weight decides.
        if not np.isfinite(found.unary).all() or not (found.tables < np.inf).all():
            raise OverflowError
        return found

    def evaluate(
        self, i: int, potentials: Potentials, overwrite: bool = False
    ) -> tuple[float, Potentials]:
        """The weighted loss of one example with these scores, and its parts."""
        labels, weight = self.gold(i)
        values, parts = self.objective.evaluate(
            potentials, labels, self.inference, weight, overwrite
        )
        return float(values[0]), parts

    def loss_gradient(self, i: int, weights: Floats) -> tuple[float, Floats]:
        """The weighted loss of one example, and its gradient."""
        value, parts = self.evaluate(i, self.potentials(i, weights), overwrite=True)
        return value, self.adjoint(i, parts)

    def mistake(self, i: int, weights: Floats) -> Mistake | None:
        """What the best labelling of one example has wrong; None if nothing."""
        potentials, (gold, weight) = self.potentials(i, weights), self.gold(i)
        best = self.inference.map(potentials).labels
        n_wrong = int((best != gold).sum())
        if n_wrong == 0:
            return None
        parts = potentials.zeros()
        parts.add_indicators(gold)
        parts.add_indicators(best, -1.0)
        lead = float((potentials.score(best) - potentials.score(gold))[0])
        own = 1.0 if weight is None else float(weight[0])
        return Mistake(n_wrong, len(best), lead, self.adjoint(i, parts), own)

    def adjoint(self, i: int, parts: Potentials) -> Floats:
        """The gradient of parts of one example."""
        features = self.features
        self._sums = features.zeros(self._sums)
        for block in range(features.n_blocks(1)):
            features.adjoint(self.shards[i], parts, self._sums, block, 1)
        return features.collect(self._sums)
