"""Averaged perceptron: add the gold features, subtract the predicted ones, average over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from chordal import _kernels
from chordal.oracle import Floats
from chordal.oracle.rules import Mistake, MistakeRule
from chordal.solvers._online import MistakeDriven


@dataclass(frozen=True)
class PerceptronRule(MistakeRule):
    """w += φ(gold) − φ(best); the loss is the share of wrong labels."""

    averaged: bool = True

    def step(self, mistake: Mistake, w: Floats, memory: Floats) -> float:
        """Change the weights after a mistake; the loss."""
        w += mistake.weight * mistake.difference
        return mistake.weight * mistake.n_wrong / mistake.n_labels

    def kernel(self) -> _kernels.Perceptron:
        """The rule as the compiled loop takes it."""
        return _kernels.Perceptron()


@final
class AveragedPerceptron(MistakeDriven):
    """The structured perceptron, whose result is the mean of the weights after every example.

    Where the best labelling ŷ is not the gold one, w += φ(y) − φ(ŷ). The loss of an example is
    its share of wrong labels; `l2` has no part in it. Fast, without a parameter to tune, and
    without probabilities that mean anything: `predict_marginals` of such a model is overconfident.

    References
    ----------
    Collins (2002), Discriminative training methods for hidden Markov models.
    """

    objectives: ClassVar[tuple[str, ...]] = ("perceptron",)

    def _rule(self) -> PerceptronRule:
        return PerceptronRule()
