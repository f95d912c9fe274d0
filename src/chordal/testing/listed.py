"""The definition of every online update rule, in plain NumPy on lists of all labellings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
        self.n_visits = 0

    def learner(self, rule: Any, start: Floats) -> ListedLearner:
        """A learner by this rule, from these weights on."""
        return ListedLearner(self, rule, start)

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


class ListedLearner:
    """Follows an update rule to the letter."""

    def __init__(self, oracle: ListedExamples, rule: Any, start: Floats) -> None:
        self._oracle, self._rule = oracle, rule
        self._w = np.array(start, dtype=np.float64)
        self._sum = self._w.copy()  # of the weights after every example, and the first ones
        self._variance = np.full(len(start), rule.parameters[1] if rule.name == "arow" else 0.0)
        self._velocity = np.zeros_like(self._w)
        self._step = self._averaged = 0

    def visit(self, order: NDArray[np.int64]) -> float:
        """Learn from these examples in turn; the sum of the losses met on the way."""
        total = 0.0
        for n in order:
            self._oracle.n_visits += 1
            if self._oracle.n_visits == self._oracle.interrupt_at:
                raise KeyboardInterrupt
            example = self._oracle.examples[n]
            total += getattr(self, "_" + self._rule.name)(example)
            if self._rule.name != "gradient":
                self._sum += self._w
            elif self._step >= self._rule.average_after:
                self._sum = self._sum * bool(self._averaged) + self._w
                self._averaged += 1
            self._step += 1
        return total

    def weights(self) -> Floats:
        """What has been learned so far."""
        if self._rule.name == "gradient":
            return self._sum / self._averaged if self._averaged else self._w.copy()
        mean = self._sum / (self._step + 1)
        return mean if self._rule.averaged else self._w.copy()

    def _best(self, example: Listed) -> tuple[int, float, Floats]:
        """Wrong labels of the best labelling, its lead over gold, and gold − best features."""
        best = int(np.argmax(example.features @ self._w))
        difference = example.gold - example.features[best]
        return int(example.wrong[best]), -float(difference @ self._w), difference

    def _perceptron(self, example: Listed) -> float:
        wrong, _, difference = self._best(example)
        self._w += example.weight * difference
        return example.weight * wrong / max(example.length, 1)

    def _passive_aggressive(self, example: Listed) -> float:
        wrong, lead, difference = self._best(example)
        norm = float(difference @ difference)
        if wrong == 0 or norm == 0.0:
            return 0.0
        variant, most, sensitive = self._rule.parameters
        loss = lead + (np.sqrt(wrong) if sensitive else 1.0)
        step = {0: loss / norm, 1: min(most, loss / norm), 2: loss / (norm + 0.5 / most)}[variant]
        self._w += example.weight * step * difference
        return float(example.weight * loss)

    def _arow(self, example: Listed) -> float:
        wrong, lead, difference = self._best(example)
        if wrong == 0:
            return 0.0
        r, x, loss = self._rule.parameters[0], example.weight * difference, lead + wrong
        self._w += loss / (r + x @ (self._variance * x)) * self._variance * x
        self._variance = 1.0 / (1.0 / self._variance + x * x / r)
        return example.weight * loss

    def _gradient(self, example: Listed) -> float:
        rule, centre = self._rule, self._oracle.centre
        rate = rule.rate(self._step)
        offset = self._w - centre
        shrunk = (1.0 - rate * rule.decay) * offset
        carried = rule.momentum * self._velocity
        at = centre + (shrunk + carried if rule.look_ahead else offset)
        loss, slope = _loss(example, at, self._oracle.temperature)
        self._velocity = carried - rate * slope
        moved = shrunk + self._velocity
        length = float(np.linalg.norm(moved))
        self._w = centre + moved * (rule.radius / length if length > rule.radius else 1.0)
        return loss


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
