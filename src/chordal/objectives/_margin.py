"""The one formula behind likelihood, softmax-margin, hinge and perceptron."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from chordal.costs import COSTS, Cost
from chordal.inference import Inference
from chordal.objectives._base import Evaluation, Objective
from chordal.potentials import Floats, Potentials


class MarginObjective(Objective):
    """softmax_τ over y of [score(y) + cost(y, gold)] − score(gold).

    With `temperature` 1 the softmax is log Σ exp and its derivative marginals; with 0 it is the
    maximum, and its derivative the indicators of the best labelling.
    """

    temperature: ClassVar[int]
    convex: ClassVar[bool] = True

    cost: Cost | None = None

    def evaluate(
        self,
        potentials: Potentials,
        labels: NDArray[np.int32] | None,
        inference: Inference,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Evaluation:
        gold = 0.0 if labels is None else potentials.score(labels)
        if self.cost is not None and labels is not None:
            potentials, overwrite = self._with_cost(potentials, labels, overwrite), True
        if self.temperature:
            value, parts = inference.marginals(potentials, weight, overwrite)
        else:
            best, value = inference.map(potentials)
            parts = potentials.zeros()
            parts.add_indicators(best, weight=weight)
        if labels is not None:
            parts.add_indicators(labels, scale=-1.0, weight=weight)
        values = value - gold
        return Evaluation(values if weight is None else weight * values, parts)

    def curvature(
        self,
        potentials: Potentials,
        labels: NDArray[np.int32] | None,
        inference: Inference,
        direction: Potentials,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Potentials:
        if not self.temperature:
            return super().curvature(potentials, labels, inference, direction, weight, overwrite)
        if self.cost is not None and labels is not None:
            potentials = self._with_cost(potentials, labels, overwrite)
        return inference.marginals_derivative(potentials, direction, weight, overwrite)

    def _with_cost(
        self, potentials: Potentials, labels: NDArray[np.int32], overwrite: bool
    ) -> Potentials:
        if self.cost is None:
            return potentials
        if not overwrite:
            potentials = potentials.like(potentials.unary.copy(), potentials.tables)
        return self.cost.add(potentials, labels)


def cost_for(cost: str | Cost) -> Cost:
    """The cost of this name, or the one given."""
    return COSTS.resolve(cost)
