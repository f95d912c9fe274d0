"""The one formula behind likelihood, softmax-margin, hinge and perceptron."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from chordal.costs import COSTS, Cost
from chordal.inference import Inference
from chordal.objectives._base import Evaluation, Objective
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure
from chordal.targets import Labels, PartialLabels, SoftLabels, Target, add_target, score_of


class MarginObjective(Objective):
    """softmax_τ over y of [score(y) + cost(y, gold)] − score(gold).

    With `temperature` 1 the softmax is log Σ exp and its derivative marginals; with 0 it is the
    maximum, and its derivative the indicators of the best labelling.
    """

    temperature: ClassVar[int]
    convex: ClassVar[bool] = True

    relaxed: bool = False  # at temperature 0: the maximum over a relaxation

    def evaluate(
        self,
        potentials: Potentials,
        labels: Target | None,
        inference: Inference,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Evaluation:
        """The loss and its derivative, from scores with costs added."""
        known = linear_target(self, labels)
        gold = 0.0 if known is None else score_of(potentials, known)
        frame = potentials
        if self.cost is not None:
            potentials, overwrite = self._with_cost(potentials, labels, overwrite), True
        if self.temperature:
            value, parts, _ = inference.marginals(potentials, weight, overwrite)
        elif self.relaxed:
            value, parts, _ = inference.relaxed_map(potentials, weight)
        else:
            best, value = inference.map(potentials)[:2]
            if known is not None and not inference.exact_on(frame.structure):
                best, value = _not_below(best, value, hard_labels(self, known), gold, frame)
            parts = frame.zeros()
            parts.add_indicators(best, weight=weight)
        parts = parts.tied_as(frame)
        if known is not None:
            add_target(parts, known, scale=-1.0, weight=weight)
        values = value - gold
        return Evaluation(values if weight is None else weight * values, parts)

    def require(self, inference: Inference, structure: Structure) -> None:
        """Refuse what the inference or the cost cannot do."""
        super().require(inference, structure)
        if self.cost is not None:
            self.cost.require(structure)

    def for_labels(self, labels: Sequence[Any], order: NDArray[np.int64]) -> MarginObjective:
        """The same with its cost told the labels."""
        return self if self.cost is None else self._with(self.cost.for_labels(labels, order))

    def with_class_weight(self, weight: Floats) -> Objective:
        """The same with its cost weighted by class."""
        if self.cost is None:
            return super().with_class_weight(weight)
        return self._with(self.cost.with_class_weight(weight))

    def _with(self, cost: Cost) -> MarginObjective:
        changed = copy.copy(self)
        changed.cost = cost
        return changed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.cost is None else f'cost={self.cost!r}'})"

    def curvature(
        self,
        potentials: Potentials,
        labels: Target | None,
        inference: Inference,
        direction: Potentials,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Potentials:
        """How the parts change along a direction, where the loss is smooth."""
        if not self.temperature:
            return super().curvature(potentials, labels, inference, direction, weight, overwrite)
        frame = potentials
        if self.cost is not None:
            potentials = self._with_cost(potentials, labels, overwrite)
            direction = direction.untied_as(potentials)
        change = inference.marginals_derivative(potentials, direction, weight, overwrite)
        return change.tied_as(frame)

    def _with_cost(
        self, potentials: Potentials, labels: Target | None, overwrite: bool
    ) -> Potentials:
        if self.cost is None:
            return potentials
        if not overwrite:
            potentials = potentials.like(potentials.unary.copy(), potentials.tables)
        return self.cost.add(potentials, hard_labels(self, labels))


def _not_below(
    best: Labels, value: Floats, labels: Labels, gold: Floats | float, frame: Potentials
) -> tuple[Labels, Floats]:
    """The gold labelling where an approximate method has found none that is as good."""
    missed = value < gold
    if not missed.any():
        return best, value
    of_variable = np.repeat(missed, np.diff(frame.structure.variable_offsets))
    return np.where(of_variable, labels, best).astype(np.int32), np.maximum(value, gold)


def cost_for(cost: str | Cost) -> Cost:
    """The cost of this name, or the one given."""
    return COSTS.resolve(cost)


def hard_labels(objective: Objective, labels: Target | None) -> Labels:
    """The labels, which must be one per variable."""
    if labels is None:
        raise ValueError(f"objective {objective.name!r} needs the gold labels")
    if isinstance(labels, (SoftLabels, PartialLabels)):
        objective.require_targets(labels)
        raise TypeError(f"objective {objective.name!r} is asked for a cost of {labels!r}")
    return labels


def linear_target(objective: Objective, labels: Target | None) -> Labels | SoftLabels | None:
    """The labels, which must not be sets."""
    if labels is not None:
        objective.require_targets(labels)
    if isinstance(labels, PartialLabels):
        raise TypeError(f"objective {objective.name!r} has no linear term for {labels!r}")
    return labels
