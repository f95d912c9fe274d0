"""The perceptron's rule: add the gold features, subtract the predicted ones."""

from __future__ import annotations

from dataclasses import dataclass

from chordal import _kernels
from chordal.oracle.rules._base import Mistake
from chordal.oracle.rules._mistakes import MistakeRule
from chordal.potentials import Floats


@dataclass(frozen=True)
class PerceptronRule(MistakeRule):
    """w += φ(gold) − φ(best); the loss is the share of wrong labels."""

    averaged: bool = True

    def step(self, mistake: Mistake, w: Floats, memory: Floats) -> float:
        w += mistake.weight * mistake.difference
        return mistake.weight * mistake.n_wrong / mistake.n_labels

    def kernel(self) -> _kernels.Perceptron:
        return _kernels.Perceptron()
