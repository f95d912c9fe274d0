"""The perceptron's loss: the lead of the best labelling over the gold one."""

from __future__ import annotations

from typing import ClassVar, final

from chordal.objectives._base import MarginObjective


@final
class Perceptron(MarginObjective):
    """max score(y) − score(gold): zero where the gold labelling is the best.

    It is zero for weights of zero, too: solvers that look for the minimum would learn nothing.
    "averaged_perceptron" and "sgd" learn from one mistake after another.

    References
    ----------
    Collins (2002), Discriminative training methods for hidden Markov models.
    """

    needs = frozenset({"map"})
    temperature: ClassVar[int] = 0
    smooth: ClassVar[bool] = False
    zero_is_best: ClassVar[bool] = True
    minus_gold: ClassVar[bool] = True
