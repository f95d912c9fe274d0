"""Examples of any structure, learned one by one: potentials, inference and adjoint of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.inference import Inference
from chordal.objectives import Objective
from chordal.oracle._learners import Descent, MistakeLearner
from chordal.oracle._planes import PlaneLearner
from chordal.oracle._protocols import (
    DualLearner,
    GradientRule,
    Learner,
    Mapper,
    Planes,
    ShardFeatures,
    UpdateRule,
)
from chordal.potentials import Floats, Potentials

Ints = NDArray[np.int64]


class StructuredExamples:
    """Labelled examples as an oracle of examples, of dual variables and of planes, whatever
    their structure.

    A step costs what its example costs, and as much as a few sums over all weights: where
    inference is what takes the time, and weights are not millions.

    Parameters
    ----------
    features : ShardFeatures
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
    ) -> None:
        self.features, self.shards = features, shards
        self.objective, self.inference, self._mapper = objective, inference, mapper
        self.n_examples, self.n_weights = len(shards), features.n_weights
        self.l2, self.centre = float(np.max(l2, initial=0.0)), centre
        penalties = np.broadcast_to(l2, self.n_weights)
        self.exempt = np.flatnonzero(penalties == 0.0) if self.l2 > 0.0 else np.zeros(0, np.int64)
        if not ((penalties == 0.0) | (penalties == self.l2)).all():
            raise UnsupportedError(
                "learning from one example after another takes one l2 for all weights but those "
                "that have none; use a solver such as 'lbfgs'"
            )
        self._sums: Any = None

    def learner(self, rule: UpdateRule | GradientRule, start: Floats) -> Learner:
        """A learner by this rule, from these weights on."""
        if isinstance(rule, GradientRule):
            return Descent(self, rule, start)
        return MistakeLearner(self, rule, start)

    def dual_learner(self, rule: str) -> DualLearner:
        """A learner of dual variables; "frank_wolfe" is the rule that any structure has."""
        if rule != "frank_wolfe":
            raise UnsupportedError(
                f"dual variables by the rule {rule!r} are kept for chains alone; use solver "
                "'block_frank_wolfe' or 'one_slack', or for the likelihood 'lbfgs'"
            )
        return PlaneLearner(self)

    def checked(self, order: Ints) -> list[int]:
        """An order of examples, each of which is there."""
        order = np.asarray(order, dtype=np.int64)
        if len(order) and not 0 <= order.min() <= order.max() < self.n_examples:
            raise IndexError(f"order must name examples 0 to {self.n_examples - 1}")
        return [int(i) for i in order]

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

        def loss(shard: Any) -> float:
            potentials = self.features.potentials(shard, expanded)
            return float(self.evaluate(shard, potentials, overwrite=True)[0])

        return sum(self._mapper.map(loss, self.shards)) + self.penalty(weights)

    def planes(self, weights: Floats) -> Planes:
        """The planes that touch the losses at these weights."""
        from scipy.sparse import csr_array, vstack

        values, offsets, slopes = np.empty(self.n_examples), np.empty(self.n_examples), []
        for i in range(self.n_examples):
            values[i], slope = self.loss_gradient(i, weights)
            offsets[i] = values[i] - float(slope @ weights)
            slopes.append(csr_array(slope[None]))
        return Planes(values, offsets, vstack(slopes, format="csr"))

    def potentials(self, i: int, weights: Floats) -> Potentials:
        """The scores of one example."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.features.potentials(self.shards[i], self.features.expand(weights))
        # Tables may forbid what no weight decides.
        if not np.isfinite(found.unary).all() or not (found.tables < np.inf).all():
            raise OverflowError
        return found

    def evaluate(
        self, shard: Any, potentials: Potentials, overwrite: bool = False
    ) -> tuple[float, Potentials]:
        """The weighted loss of one example, and its parts."""
        values, parts = self.objective.evaluate(
            potentials, shard.labels, self.inference, shard.weight, overwrite
        )
        return float(values[0]), parts

    def loss_gradient(self, i: int, weights: Floats) -> tuple[float, Floats]:
        """The weighted loss of one example, and its gradient."""
        potentials = self.potentials(i, weights)
        value, parts = self.evaluate(self.shards[i], potentials, overwrite=True)
        return value, self.adjoint(i, parts)

    def adjoint(self, i: int, parts: Potentials) -> Floats:
        """The gradient of parts of one example."""
        features = self.features
        self._sums = features.zeros(self._sums)
        for block in range(features.n_blocks(1)):
            features.adjoint(self.shards[i], parts, self._sums, block, 1)
        return features.collect(self._sums)
