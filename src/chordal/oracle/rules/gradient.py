"""The gradient rule: every example takes the weights one step down its loss."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import inf
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._errors import UnsupportedError
from chordal._saved import Kept
from chordal.costs import cost_matrix
from chordal.objectives import MarginObjective, Objective
from chordal.oracle._chain_arrays import Chains
from chordal.oracle.examples import Learner, Rule, StructuredExamples
from chordal.potentials import Floats

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class GradientRule(Rule):
    """One step down the loss ℓ of each example, as the oracle's objective defines it.

    With v = w − centre, t = 0, 1, … and k = t + first, a step is::

        η = 1 / (inverse_rate + growth · k^power)
        m ← momentum · m − η ∇ℓ(v)
        v ← (1 − η · decay) v + m

    Then v is scaled down to length `radius`, if it is longer.

    Attributes
    ----------
    decay : float
        λ, the L2 term's share of one example.
    look_ahead : bool
        ∇ℓ is taken where decay and momentum carry v, not at v itself.
    average_after : float
        The result is the mean of the weights after each step t from this one on.
    """

    decay: float = 0.0
    inverse_rate: float = 1.0
    growth: float = 0.0
    power: float = 1.0
    first: float = 1.0
    momentum: float = 0.0
    radius: float = inf
    average_after: float = inf
    look_ahead: bool = False

    @property
    def averaged(self) -> bool:  # type: ignore[override]
        """Whether what is learned is a mean."""
        return self.average_after < inf

    def rate(self, step: float) -> float:
        """η of the step t."""
        return 1.0 / (self.inverse_rate + self.growth * (step + self.first) ** self.power)

    def learner(
        self, examples: StructuredExamples, start: Floats, chains: Chains | None = None
    ) -> Learner:
        """A learner by this rule; compiled for chains, where the loss is one the loop knows."""
        if len(examples.exempt) and self.radius < inf:
            raise UnsupportedError(
                "projection shortens all weights, and cannot go with weights that have no l2; "
                "leave projection out, or regularise all weights"
            )
        loss = None if chains is None else _chain_loss(examples.objective, chains.n_labels)
        if chains is None or loss is None:
            return Descent(self, examples, start)
        return ChainDescent(self, loss, examples, chains, start)


class Descent(Kept):
    """Examples of any structure, one after another."""

    kept: ClassVar[tuple[str, ...]] = ("_v", "_velocity", "_total", "_averaged", "_step")

    def __init__(self, rule: GradientRule, examples: StructuredExamples, start: Floats) -> None:
        self._rule, self._examples = rule, examples
        self._centre = np.zeros(len(start)) if examples.centre is None else examples.centre
        self._v, self._velocity = start - self._centre, np.zeros(len(start))
        self._total, self._averaged, self._step = np.zeros(len(start)), 0, 0

    def visit(self, order: Ints) -> float:
        """Learn from these examples in turn; returns the sum of their losses before each step."""
        total = 0.0
        for _, run in self._examples.visits(order):
            for i in run.tolist():
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
        if rule.radius < inf:
            length = float(np.linalg.norm(self._v))
            self._v *= rule.radius / max(length, rule.radius)
        if self._step >= rule.average_after:
            self._total += self._v
            self._averaged += 1
        self._step += 1
        return loss

    def weights(self) -> Floats:
        """What has been learned so far."""
        v = self._total / self._averaged if self._averaged else self._v
        return np.asarray(v + self._centre)


class ChainDescent(Kept):
    """Chains, in a compiled loop."""

    filled: ClassVar[tuple[str, ...]] = ("_cells", "_velocity", "_total", "_counts")

    def __init__(
        self,
        rule: GradientRule,
        loss: _kernels.ChainLoss,
        examples: StructuredExamples,
        chains: Chains,
        start: Floats,
    ) -> None:
        self._examples, self._chains, centre = examples, chains, examples.centre
        self._centre, self._loss = centre, loss
        self._rule = _kernels.Gradient(**asdict(rule))
        self._cells = chains.spread(start if centre is None else start - centre)
        # Arrays that the rule has no use for are empty here, and None for the kernel.
        n = len(self._cells)
        self._velocity = np.zeros(n if rule.momentum else 0)
        self._total = np.zeros(n if rule.averaged else 0)
        self._counts = np.zeros(3)  # steps, losses, steps averaged
        self._arrays = _kernels.Descent(
            w=self._cells,
            velocity=self._velocity if rule.momentum else None,
            total=self._total if rule.averaged else None,
            fixed=None if centre is None else chains.spread(centre),
            exempt=chains.cell_of_weight[examples.exempt],
            counts=self._counts,
        )

    def visit(self, order: Ints) -> float:
        """Learn from these sequences in turn; returns the sum of their losses before each step."""
        self._counts[1] = 0.0
        for block, run in self._examples.visits(order):
            arrays, own = self._chains.within(block, run)
            arrays.descend(self._rule, self._loss, own, self._arrays)
        return float(self._counts[1])

    def weights(self) -> Floats:
        """What has been learned so far."""
        if len(self._total) and self._counts[2] > 0.0:
            weights = self._chains.gather(self._total) / self._counts[2]
        else:
            weights = self._chains.gather(self._cells)
        if self._centre is not None:
            weights += self._centre
        return weights


def _chain_loss(objective: Objective, n_labels: int) -> _kernels.ChainLoss | None:
    """softmax over y of [score(y) + cost(y)] − score(gold), as the compiled loop knows it.

    None for losses of another form, and costs that are not of single positions.
    """
    if not isinstance(objective, MarginObjective) or not objective.additive or objective.relaxed:
        return None
    soft = bool(objective.temperature)
    if objective.cost is None:
        return _kernels.ChainLoss(soft, None, False)
    try:
        values, normalised = cost_matrix(objective.cost, n_labels)
    except UnsupportedError:
        return None
    return _kernels.ChainLoss(soft, values.ravel(), normalised)
