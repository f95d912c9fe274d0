"""What a training objective is: a value, and its derivative in the potentials; and the one formula
behind likelihood, softmax-margin, hinge and perceptron.
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

#: What kinds of targets are called in messages.
TARGETS = {
    "hard": "one label per variable",
    "soft": "soft targets (a distribution per variable)",
    "partial": "partially observed labels (a set per variable)",
}


class Evaluation(NamedTuple):
    """The objective of each example, and the derivative of their sum in the potentials."""

    values: Floats
    parts: Potentials


class Objective(ABC):
    """A loss of potentials against what is known of the labels; sees no features and no weights.

    `needs` names what it asks of the inference method; `targets` the kinds of targets it takes
    ("hard", "soft", "partial"); `completes` that training completes sets of labels for it, by the
    best labelling within them; `convex` claims convexity in the potentials, with partially
    observed labels apart; `smooth` claims a derivative without jumps, which solvers such as L-BFGS
    need; `minus_gold` says that hard and soft targets enter by − score(gold)
    alone, which is linear, so that it can be summed once for all evaluations; `relative` that
    only differences between the scores of a variable's labels matter; `stochastic` that values and
    parts are estimates from samples; `zero_is_best` that no weights have a lower value than zeros,
    so that only steps of single mistakes learn; `curvature_needs` names what second derivatives
    ask of the inference method, and is None where there are none. Claims are tested.
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
        """Weighted values of the examples and the derivative of their sum.

        With `overwrite`, the potentials' memory may be reused for the parts. If `minus_gold`,
        labels may be None, and the gold term is left out.
        """

    def kept_for(self, structures: Iterable[Structure]) -> Stateful | None:
        """What it has for its next evaluations on these structures; None: it keeps nothing."""
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
        """How the parts change when the potentials move in the direction.

        With `overwrite`, the memory of potentials and direction may be reused. Labels may be
        None as in `evaluate`.
        """
        raise UnsupportedError(f"objective {self.name!r} has no second derivatives")

    def require_second_derivatives(self, solver: str) -> None:
        """Refuse a solver that needs second derivatives where there are none."""
        if self.curvature_needs is None:
            raise UnsupportedError(
                f"solver {solver!r} needs second derivatives, which objective {self.name!r} does "
                "not have; leave solver at 'auto', or use another objective"
            )

    def require_curvature(self, inference: Inference, structure: Structure, solver: str) -> None:
        """The same, and what they ask of inference; before any work."""
        self.require_second_derivatives(solver)
        assert self.curvature_needs is not None
        missing = self.curvature_needs - inference.answers
        if missing:
            raise UnsupportedError(
                f"solver {solver!r} needs second derivatives of objective {self.name!r}; they take "
                f"{', '.join(sorted(missing))}, which inference {inference.name!r} does not answer"
            )
        for question in self.curvature_needs:
            inference.require(question, structure)

    def require_answers(self, inference: Inference) -> None:
        """Refuse a method that does not answer what the objective asks, on any structure."""
        missing = self.needs - inference.answers
        if missing:
            raise UnsupportedError(
                f"objective {self.name!r} needs {', '.join(sorted(missing))}, which inference "
                f"{inference.name!r} does not answer"
            )

    def require(self, inference: Inference, structure: Structure) -> None:
        """Refuse a pair that cannot work, before any work."""
        self.require_answers(inference)
        for question in self.needs:
            inference.require(question, structure)

    def require_targets(self, target: Target) -> None:
        """Refuse targets of a kind that the objective has no use for, before any work."""
        kind = kind_of(target)
        if kind not in self.targets and not (kind == "partial" and self.completes):
            raise UnsupportedError(
                f"objective {self.name!r} needs {TARGETS['hard']}, and y has {TARGETS[kind]}; "
                "objective 'likelihood' takes them"
            )

    def for_labels(self, labels: Sequence[Any], order: NDArray[np.int64]) -> Objective:
        """The same objective for labels with numbers: `labels` by number, `order` the number of
        each class in the order in which users see them."""
        return self

    def with_class_weight(self, weight: Floats) -> Objective:
        """The same objective with errors weighed by the gold label (float64 [n_labels])."""
        raise UnsupportedError(
            f"class_weight weighs the cost of errors, and objective {self.name!r} has none; "
            "'softmax_margin' (the likelihood with a cost) and 'hinge' have"
        )

    @property
    def additive(self) -> bool:
        """Whether its dual variables are those of single labels and transitions."""
        return True

    @property
    def name(self) -> str:
        """The name of its file, by which it is chosen."""
        return type(self).__module__.rpartition(".")[2]


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
