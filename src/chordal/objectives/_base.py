"""The base class of objectives, and the formula behind likelihood, softmax-margin, hinge and
perceptron.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._saved import Stateful
from chordal.costs import COSTS, Cost
from chordal.inference import Inference
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure
from chordal.targets import (
    Labels,
    PartialLabels,
    SoftLabels,
    Target,
    add_target,
    kind_of,
    score_of,
)

#: Names of the kinds of targets in messages.
TARGETS = {
    "hard": "one label per variable",
    "soft": "soft targets (a distribution per variable)",
    "partial": "partially observed labels (a set per variable)",
}


class Evaluation(NamedTuple):
    """The objective of each example, and the derivative of the sum by the potentials."""

    values: Floats
    parts: Potentials


class Objective(ABC):
    """A loss of potentials against known labels; it does not see features or weights.

    Subclasses declare these properties, and tests check them:

    - `needs`: the answers that it needs from the inference method.
    - `targets`: the kinds of targets that it supports ("hard", "soft", "partial").
    - `completes`: training completes sets of labels by the best labelling within them.
    - `convex`: it is convex in the potentials, except with partially observed labels.
    - `smooth`: its derivative is continuous, as L-BFGS and similar solvers need.
    - `minus_gold`: hard and soft targets enter only by − score(gold), which is summed once.
    - `relative`: only differences between the scores of a variable's labels matter.
    - `stochastic`: values and parts are estimates from samples.
    - `zero_is_best`: zero weights have the lowest value, so only mistake-driven solvers learn.
    - `curvature_needs`: the answers that second derivatives need; None if there are none.
    """

    needs: frozenset[str] = frozenset()
    cost: Cost | None = None
    targets: ClassVar[frozenset[str]] = frozenset({"hard"})
    completes: ClassVar[bool] = False
    convex: ClassVar[bool]
    smooth: ClassVar[bool]
    minus_gold: ClassVar[bool] = False
    relative: ClassVar[bool] = True
    stochastic: ClassVar[bool] = False
    zero_is_best: ClassVar[bool] = False
    curvature_needs: ClassVar[frozenset[str] | None] = None

    @abstractmethod
    def evaluate(
        self,
        potentials: Potentials,
        labels: Target | None,
        inference: Inference,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Evaluation:
        """The weighted values of the examples, and the derivative of their sum.

        With `overwrite`, the potentials' memory may be reused for the parts. If `minus_gold`,
        labels may be None, and the gold term is omitted.
        """

    def kept_for(self, structures: Iterable[Structure]) -> Stateful | None:
        """The state kept between evaluations on these structures; None if it has no state."""
        return None

    def curvature(
        self,
        potentials: Potentials,
        labels: Target | None,
        inference: Inference,
        direction: Potentials,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Potentials:
        """The directional derivative of the parts.

        With `overwrite`, the memory of potentials and direction may be reused. Labels may be
        None as in `evaluate`.
        """
        raise UnsupportedError(f"objective {self.name!r} has no second derivatives")

    def require_second_derivatives(self, solver: str) -> None:
        """Raise an error for a solver that needs second derivatives if there are none."""
        if self.curvature_needs is None:
            raise UnsupportedError(
                f"solver {solver!r} needs second derivatives, which objective {self.name!r} does "
                "not have; leave solver at 'auto', or use another objective"
            )

    def require_curvature(self, inference: Inference, structure: Structure, solver: str) -> None:
        """The same, and check that the inference method supports them."""
        self.require_second_derivatives(solver)
        assert self.curvature_needs is not None
        missing = self.curvature_needs - inference.answers
        if missing:
            raise UnsupportedError(
                f"solver {solver!r} needs second derivatives of objective {self.name!r}; they need "
                f"{', '.join(sorted(missing))}, which inference {inference.name!r} does not compute"
            )
        for question in self.curvature_needs:
            inference.require(question, structure)

    def require_answers(self, inference: Inference) -> None:
        """Raise an error for an inference method without the answers that are needed."""
        missing = self.needs - inference.answers
        if missing:
            raise UnsupportedError(
                f"objective {self.name!r} needs {', '.join(sorted(missing))}, which inference "
                f"{inference.name!r} does not compute"
            )

    def require(self, inference: Inference, structure: Structure) -> None:
        """Raise an error, before any work, if objective and inference do not fit together."""
        self.require_answers(inference)
        for question in self.needs:
            inference.require(question, structure)

    def require_targets(self, target: Target) -> None:
        """Raise an error, before any work, for kinds of targets that are not supported."""
        kind = kind_of(target)
        if kind not in self.targets and not (kind == "partial" and self.completes):
            raise UnsupportedError(
                f"objective {self.name!r} needs {TARGETS['hard']}, but y has {TARGETS[kind]}; "
                "use objective 'likelihood'"
            )

    def for_labels(self, labels: Sequence[Any], order: NDArray[np.int64]) -> Objective:
        """The same objective for numbered labels: `labels` by number; `order` is the number of each
        class in the order that users see."""
        return self

    def with_class_weight(self, weight: Floats) -> Objective:
        """The same objective with the cost weighted by gold label (float64 [n_labels])."""
        raise UnsupportedError(
            f"class_weight needs a cost of errors, which objective {self.name!r} does not have; "
            "use 'softmax_margin' (the likelihood with a cost) or 'hinge'"
        )

    @property
    def additive(self) -> bool:
        """Whether its dual variables are those of single labels and transitions."""
        return True

    @property
    def name(self) -> str:
        """The name by which users choose it: that of its file."""
        return type(self).__module__.rpartition(".")[2]


class MarginObjective(Objective):
    """softmax_τ over y of [score(y) + cost(y, gold)] − score(gold).

    With `temperature` 1 the softmax is log Σ exp, and its derivative is the marginals. With 0 it is
    the maximum, and its derivative is the indicator of the best labelling.
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
        """Raise an error for what the inference method or the cost does not support."""
        super().require(inference, structure)
        if self.cost is not None:
            self.cost.require(structure)

    def for_labels(self, labels: Sequence[Any], order: NDArray[np.int64]) -> MarginObjective:
        """The same objective; its cost gets the labels."""
        return self if self.cost is None else self._with(self.cost.for_labels(labels, order))

    def with_class_weight(self, weight: Floats) -> Objective:
        """The same objective with its cost weighted by class."""
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
        """The directional derivative of the parts, if the loss is smooth."""
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
    """The gold labelling if the approximate method found only worse ones."""
    missed = value < gold
    if not missed.any():
        return best, value
    of_variable = np.repeat(missed, np.diff(frame.structure.variable_offsets))
    return np.where(of_variable, labels, best).astype(np.int32), np.maximum(value, gold)


def cost_for(cost: str | Cost) -> Cost:
    """The cost of this name, or the one given."""
    return COSTS.resolve(cost)


def hard_labels(objective: Objective, labels: Target | None) -> Labels:
    """Check that there is one label per variable."""
    if labels is None:
        raise ValueError(f"objective {objective.name!r} needs the gold labels: pass y")
    if isinstance(labels, (SoftLabels, PartialLabels)):
        objective.require_targets(labels)
        raise TypeError(
            f"objective {objective.name!r} needs one label per variable, got {labels!r}"
        )
    return labels


def linear_target(objective: Objective, labels: Target | None) -> Labels | SoftLabels | None:
    """Check that the labels are not sets."""
    if labels is not None:
        objective.require_targets(labels)
    if isinstance(labels, PartialLabels):
        raise TypeError(f"objective {objective.name!r} has no linear term for {labels!r}")
    return labels
