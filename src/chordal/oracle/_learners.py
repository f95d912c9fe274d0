"""Rules by which single examples change the weights, where the compiled loops do not go."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.oracle._protocols import GradientRule, UpdateRule
from chordal.potentials import Floats

Ints = NDArray[np.int64]


class Descent:
    """Weights that examples take down their losses; see `GradientRule`."""

    def __init__(self, examples: Any, rule: GradientRule, start: Floats) -> None:
        self._examples, self._rule = examples, rule
        self._centre = np.zeros(len(start)) if examples.centre is None else examples.centre
        self._v, self._velocity = start - self._centre, np.zeros(len(start))
        self._total, self._averaged, self._step = np.zeros(len(start)), 0, 0
        if len(examples.exempt) and rule.radius < np.inf:
            raise UnsupportedError(
                "projection shortens all weights, and cannot go with weights that have no l2; "
                "leave projection out, or regularise all weights"
            )

    def visit(self, order: Ints) -> float:
        """Learn from these examples in turn; the sum of the losses met on the way."""
        total = 0.0
        for i in self._examples.checked(order):
            total += self._learn(i)
            if not np.isfinite(total):
                raise OverflowError
        return total

    def _learn(self, i: int) -> float:
        rule, v = self._rule, self._v
        rate = rule.rate(self._step)
        shrunk = (1.0 - rate * rule.decay) * v
        shrunk[self._examples.exempt] = v[self._examples.exempt]
        carried = rule.momentum * self._velocity
        at = shrunk + carried if rule.look_ahead else v
        loss, slope = self._examples.loss_gradient(i, self._centre + at)
        self._velocity = carried - rate * slope
        self._v = shrunk + self._velocity
        if rule.radius < np.inf:
            length = float(np.linalg.norm(self._v))
            self._v *= rule.radius / max(length, rule.radius)
        if self._step >= rule.average_after:
            self._total += self._v
            self._averaged += 1
        self._step += 1
        return float(loss)

    def weights(self) -> Floats:
        """What has been learned so far."""
        v = self._total / self._averaged if self._averaged else self._v
        return np.asarray(v + self._centre)


class MistakeLearner:
    """Weights that change where the best labelling is wrong; see `UpdateRule`."""

    def __init__(self, examples: Any, rule: UpdateRule, start: Floats) -> None:
        self._examples, self._rule = examples, rule
        self._w, self._total, self._steps = start.copy(), start.copy(), 1
        variance = rule.parameters[1] if rule.name == "arow" else 0.0
        self._variance = np.full(len(start), variance)

    def visit(self, order: Ints) -> float:
        """Learn from these examples in turn; the sum of the losses met on the way."""
        total = 0.0
        for i in self._examples.checked(order):
            total += self._learn(i)
            if not np.isfinite(total):
                raise OverflowError
            self._total += self._w
            self._steps += 1
        return total

    def weights(self) -> Floats:
        """What has been learned so far."""
        return self._total / self._steps if self._rule.averaged else self._w.copy()

    def _learn(self, i: int) -> float:
        shard = self._examples.shards[i]
        potentials = self._examples.potentials(i, self._w)
        best = self._examples.inference.map(potentials).labels
        n_wrong = int((best != shard.labels).sum())
        if n_wrong == 0:
            return 0.0
        parts = potentials.zeros()
        parts.add_indicators(shard.labels)
        parts.add_indicators(best, -1.0)
        lead = float((potentials.score(best) - potentials.score(shard.labels))[0])
        difference = self._examples.adjoint(i, parts)
        weight = 1.0 if shard.weight is None else float(shard.weight[0])
        if self._rule.name == "perceptron":
            self._w += weight * difference
            return weight * n_wrong / len(best)
        with np.errstate(over="ignore"):
            if self._rule.name == "arow":
                return self._confident(lead + n_wrong, difference, weight)
            return self._aggressive(lead, n_wrong, difference, weight)

    def _aggressive(self, lead: float, n_wrong: int, difference: Floats, weight: float) -> float:
        variant, most, sensitive = self._rule.parameters
        loss = lead + (np.sqrt(n_wrong) if sensitive else 1.0)
        norm = float(difference @ difference)
        if norm == 0.0 or not np.isfinite(norm):
            return 0.0 if norm == 0.0 else np.inf
        step = loss / norm if variant < 2 else loss / (norm + 0.5 / most)
        if variant == 1:
            step = min(most, step)
        self._w += weight * step * difference
        return float(weight * loss)

    def _confident(self, loss: float, difference: Floats, weight: float) -> float:
        r, x = self._rule.parameters[0], weight * difference
        spread = float(x @ (self._variance * x))
        if not np.isfinite(spread):
            return np.inf
        self._w += loss / (r + spread) * self._variance * x
        self._variance /= 1.0 + self._variance * x * x / r
        return weight * loss
