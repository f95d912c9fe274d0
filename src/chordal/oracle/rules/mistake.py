"""Mistakes: the weights change where the best labelling is not the gold one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._saved import Kept
from chordal.oracle._chain_arrays import Chains
from chordal.oracle.examples import Learner, Mistake, Rule, StructuredExamples
from chordal.potentials import Floats

Ints = NDArray[np.int64]

#: A compiled rule.
Kernel: TypeAlias = "_kernels.Perceptron | _kernels.PassiveAggressive | _kernels.Arow"


@dataclass(frozen=True)
class MistakeRule(Rule):
    """Compares the best labelling with the gold one; weights stay where both are equal.

    Attributes
    ----------
    step : function (mistake, w, memory) -> loss
        Changes the weights, and the number that is kept of each, in place; the loss is infinite
        if it overflows. Called where floating-point overflow is silent.
    kernel : compiled rule, optional
        The same step for chains.
    averaged : bool
    memory : float
        What is kept of each weight at first.
    """

    step: Callable[[Mistake, Floats, Floats], float]
    kernel: Kernel | None = None
    averaged: bool = True
    memory: float = 0.0

    def learner(
        self, examples: StructuredExamples, start: Floats, chains: Chains | None = None
    ) -> Learner:
        """A learner by this rule; compiled for chains, if there is a kernel."""
        if chains is None or self.kernel is None:
            return MistakeLearner(self, examples, start)
        return ChainMistakeLearner(self, self.kernel, examples, chains, start)


class MistakeLearner(Kept):
    """Examples of any structure, one after another."""

    kept: ClassVar[tuple[str, ...]] = ("_w", "_total", "_steps", "_memory")

    def __init__(self, rule: MistakeRule, examples: StructuredExamples, start: Floats) -> None:
        self._rule, self._examples = rule, examples
        self._w, self._total, self._steps = start.copy(), start.copy(), 1
        self._memory = np.full(len(start), rule.memory)

    def visit(self, order: Ints) -> float:
        """Learn from these examples in turn; returns the sum of their losses before each step."""
        total = 0.0
        for _, run in self._examples.visits(order):
            for i in run.tolist():
                total += self._learn(i)
                if not np.isfinite(total):
                    raise OverflowError
                self._total += self._w
                self._steps += 1
        return total

    def _learn(self, i: int) -> float:
        mistake = self._examples.mistake(i, self._w)
        if mistake is None:
            return 0.0
        with np.errstate(over="ignore"):
            return self._rule.step(mistake, self._w, self._memory)

    def weights(self) -> Floats:
        """What has been learned so far."""
        return self._total / self._steps if self._rule.averaged else self._w.copy()


class ChainMistakeLearner(Kept):
    """Chains, in a compiled loop. Its memory holds what the mean over time differs by, too."""

    filled: ClassVar[tuple[str, ...]] = ("_cells", "_memory", "_counts")

    def __init__(
        self,
        rule: MistakeRule,
        kernel: Kernel,
        examples: StructuredExamples,
        chains: Chains,
        start: Floats,
    ) -> None:
        self._rule, self._kernel = rule, kernel
        self._examples, self._chains = examples, chains
        self._cells = chains.spread(start)
        self._memory = chains.spread(np.full(len(start), rule.memory))
        self._counts = np.array([1.0, 0.0])  # steps, from 1, and losses

    def visit(self, order: Ints) -> float:
        """Learn from these sequences in turn; returns the sum of their losses before each step."""
        state = {"w": self._cells, "memory": self._memory, "counts": self._counts}
        self._counts[1] = 0.0
        for block, run in self._examples.visits(order):
            arrays, own = self._chains.within(block, run)
            arrays.visit(self._kernel, own, **state)
        return float(self._counts[1])

    def weights(self) -> Floats:
        """What has been learned so far."""
        weights = self._chains.gather(self._cells)
        if self._rule.averaged:
            weights -= self._chains.gather(self._memory) / self._counts[0]
        return weights
