"""Examples for online learning as lists of all labellings: the definition of their losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal.potentials import Floats


@dataclass(frozen=True)
class Listed:
    """One example: the features of every labelling, how wrong each is, and which is gold."""

    features: Floats  # [n_labellings, n_weights]
    wrong: NDArray[np.int64]  # [n_labellings] wrong labels; 0 for gold alone
    length: int  # labels in a labelling
    weight: float = 1.0
    cost: Floats | None = None  # [n_labellings] added to scores by the gradient rule

    @property
    def gold(self) -> Floats:
        """The features of the gold labelling."""
        return np.asarray(self.features[int(np.argmin(self.wrong))])


class Mistake(NamedTuple):
    """What the best labelling of an example has wrong, as rules ask for it."""

    n_wrong: int
    n_labels: int
    lead: float  # score(best) − score(gold)
    difference: Floats  # φ(gold) − φ(best)
    weight: float


class ListedExamples:
    """An `ExampleOracle` that lists all labellings: slow, and plain enough to be believed.

    Parameters
    ----------
    examples : list of Listed
    l2 : float
        The regularisation is (l2/2) ‖w − centre‖².
    centre : array [n_weights], optional
    temperature : {1, 0}
        The loss that gradients go down is the softmax (1) or maximum (0) of score + cost, less
        the gold score.
    interrupt_at : int, optional
        Press Ctrl-C instead of the visit with this number, counted from 1.
    """

    def __init__(
        self,
        examples: Sequence[Listed],
        l2: float = 0.0,
        centre: Floats | None = None,
        interrupt_at: int | None = None,
        temperature: int = 1,
    ) -> None:
        self.examples, self.l2, self.interrupt_at = examples, l2, interrupt_at
        self.temperature = temperature
        self.n_examples, self.n_weights = len(examples), examples[0].features.shape[1]
        self.centre = np.zeros(self.n_weights) if centre is None else centre
        self.exempt = np.zeros(0, dtype=np.int64)
        self.limits = np.array([0, self.n_examples])
        self.n_visits = 0

    def learner(self, rule: Any, start: Floats) -> Any:
        """A learner by this rule, in Python, from these weights on."""
        return rule.learner(self, start)

    def visits(self, order: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The order as it is, in one block."""
        yield 0, np.asarray(order)

    def mistake(self, i: int, weights: Floats) -> Mistake | None:
        """What the best labelling of one example has wrong; None if nothing."""
        example = self._visited(i)
        best = int(np.argmax(example.features @ weights))
        if example.wrong[best] == 0:
            return None
        difference = example.gold - example.features[best]
        lead = -float(difference @ weights)
        wrong = int(example.wrong[best])
        return Mistake(wrong, example.length, lead, difference, example.weight)

    def loss_gradient(self, i: int, weights: Floats) -> tuple[float, Floats]:
        """The weighted loss of one example, and its gradient."""
        return _loss(self._visited(i), weights, self.temperature)

    def _visited(self, i: int) -> Listed:
        self.n_visits += 1
        if self.n_visits == self.interrupt_at:
            raise KeyboardInterrupt
        return self.examples[i]

    def penalty(self, weights: Floats) -> float:
        """(l2/2) ‖w − centre‖²."""
        return 0.5 * self.l2 * float(((weights - self.centre) ** 2).sum())

    def value_and_gradient(self, weights: Floats) -> tuple[float, Floats]:
        """The regularised objective."""
        value, gradient = self.penalty(weights), self.l2 * (weights - self.centre)
        for example in self.examples:
            loss, slope = _loss(example, weights, self.temperature)
            value, gradient = value + loss, gradient + slope
        return value, gradient


def _loss(example: Listed, weights: Floats, temperature: int) -> tuple[float, Floats]:
    """softmax (or, at temperature 0, max) of score + cost less the gold score, and its slope."""
    scores = example.features @ weights
    if example.cost is not None:
        scores = scores + example.cost
    top = scores.max()
    chances = np.exp(scores - top) if temperature else np.arange(len(scores)) == scores.argmax()
    expected = chances @ example.features / chances.sum()
    loss = float(top + np.log(chances.sum()) - example.gold @ weights)
    return example.weight * loss, example.weight * (expected - example.gold)
