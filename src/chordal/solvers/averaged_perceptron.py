"""Averaged perceptron: add the gold features, subtract the predicted ones, average over time."""

from __future__ import annotations

from typing import ClassVar, final

from chordal import _kernels
from chordal.oracle import Floats
from chordal.oracle.examples import Mistake
from chordal.oracle.rules.mistake import MistakeRule
from chordal.solvers._online import MistakeDriven


@final
class AveragedPerceptron(MistakeDriven):
    """The structured perceptron; its result is the mean of the weights over all examples.

    If the best labelling ŷ is not the gold one, w += φ(y) − φ(ŷ). The loss of an example is its
    share of wrong labels; `l2` is not used. It is fast and has nothing to tune. Its probabilities
    are not calibrated: `predict_marginals` is overconfident.

    References
    ----------
    Collins (2002), Discriminative training methods for hidden Markov models.
    """

    objectives: ClassVar[tuple[str, ...]] = ("perceptron",)

    def _rule(self) -> MistakeRule:
        return MistakeRule(self._step, _kernels.Perceptron())

    def _step(self, mistake: Mistake, w: Floats, memory: Floats) -> float:
        w += mistake.weight * mistake.difference
        return mistake.weight * mistake.n_wrong / mistake.n_labels
