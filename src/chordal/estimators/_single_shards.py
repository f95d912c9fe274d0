"""Examples of any structure learned one by one: a shard each, and dense weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.inference import Inference
from chordal.objectives import Objective
from chordal.oracle import Floats, GradientRule, Learner, ShardFeatures, UpdateRule
from chordal.potentials import Potentials


class ShardExamples:
    """An `ExampleOracle` of shards that hold one example each.

    A step touches every weight, so that it suits models with few of them; `ChainExamples` is the
    compiled form for chains, where a step costs what its example costs.

    Parameters
    ----------
    features : ShardFeatures
    shards : list of shards of one example, with gold labels
    objective : Objective
        What the gradient rule goes down.
    inference : Inference
    l2 : float
    centre : array [n_weights], optional
    """

    def __init__(
        self,
        features: ShardFeatures,
        shards: Sequence[Any],
        objective: Objective,
        inference: Inference,
        l2: float = 0.0,
        centre: Floats | None = None,
    ) -> None:
        self.features, self.shards = features, shards
        self.objective, self.inference = objective, inference
        self.l2, self.centre = float(l2), centre
        self.n_examples, self.n_weights = len(shards), features.n_weights

    def learner(self, rule: UpdateRule | GradientRule, start: Floats) -> Learner:
        """A learner by this rule, from these weights on."""
        if isinstance(rule, GradientRule):
            return _Descent(self, rule, start)
        if rule.name != "perceptron":
            raise UnsupportedError(
                f"the rule {rule.name!r} is there for chains alone; use solver "
                "'averaged_perceptron' or 'sgd'"
            )
        return _Perceptron(self, rule, start)

    def penalty(self, weights: Floats) -> float:
        """The regularisation term of all examples."""
        offset = weights if self.centre is None else weights - self.centre
        return 0.5 * self.l2 * float(offset @ offset)

    def slope(self, example: int, weights: Floats) -> tuple[float, Floats]:
        """The loss of an example, and its gradient."""
        shard, features = self.shards[example], self.features
        scores = features.potentials(shard, features.expand(weights))
        if not np.isfinite(scores.unary[scores.unary > -np.inf]).all():
            raise OverflowError
        found = self.objective.evaluate(scores, shard.labels, self.inference, shard.weight)
        return float(found.values.sum()), self.adjoint(shard, found.parts)

    def adjoint(self, shard: Any, parts: Potentials) -> Floats:
        """The gradient of a shard's parts."""
        sums = self.features.zeros()
        for block in range(self.features.n_blocks(1)):
            self.features.adjoint(shard, parts, sums, block, 1)
        return self.features.collect(sums)


class _Perceptron:
    """Gold features are added and predicted ones subtracted, where they differ."""

    def __init__(self, examples: ShardExamples, rule: UpdateRule, start: Floats) -> None:
        self._examples, self._averaged = examples, rule.averaged
        self._weights, self._sum, self._steps = start.copy(), np.zeros_like(start), 0

    def visit(self, order: NDArray[np.int64]) -> float:
        loss = 0.0
        for example in order.tolist():
            shard = self._examples.shards[example]
            weights = self._weights
            features = self._examples.features
            scores = features.potentials(shard, features.expand(weights))
            best = self._examples.inference.map(scores).labels
            wrong = float(np.mean(best != shard.labels)) if len(best) else 0.0
            if wrong:
                parts = scores.zeros()
                parts.add_indicators(shard.labels, weight=shard.weight)
                parts.add_indicators(best, scale=-1.0, weight=shard.weight)
                weights = weights + self._examples.adjoint(shard, parts)
            loss += wrong
            self._weights, self._steps = weights, self._steps + 1
            self._sum = self._sum + weights
        return loss

    def weights(self) -> Floats:
        if self._averaged and self._steps:
            return self._sum / self._steps
        return self._weights.copy()


class _Descent:
    """A step down each example's loss; see `GradientRule` for the symbols."""

    def __init__(self, examples: ShardExamples, rule: GradientRule, start: Floats) -> None:
        self._examples, self._rule = examples, rule
        self._centre = np.zeros_like(start) if examples.centre is None else examples.centre
        self._offset = start - self._centre
        self._velocity, self._sum = np.zeros_like(start), np.zeros_like(start)
        self._steps = self._averaged = 0

    def visit(self, order: NDArray[np.int64]) -> float:
        rule, loss = self._rule, 0.0
        for example in order.tolist():
            rate = rule.rate(self._steps)
            shrunk = (1.0 - rate * rule.decay) * self._offset
            at = shrunk + rule.momentum * self._velocity if rule.look_ahead else self._offset
            value, slope = self._examples.slope(example, at + self._centre)
            velocity = rule.momentum * self._velocity - rate * slope
            offset = shrunk + velocity
            length = float(np.linalg.norm(offset))
            if length > rule.radius:
                offset *= rule.radius / length
            self._offset, self._velocity = offset, velocity
            if self._steps >= rule.average_after:
                self._sum, self._averaged = self._sum + offset, self._averaged + 1
            self._steps += 1
            loss += value
        return loss

    def weights(self) -> Floats:
        if self._averaged:
            return self._centre + self._sum / self._averaged
        return self._centre + self._offset
