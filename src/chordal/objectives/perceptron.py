"""The perceptron's loss: the lead of the best labelling over the gold one."""

from __future__ import annotations

from typing import ClassVar, final

from chordal.objectives._base import MarginObjective


@final
class Perceptron(MarginObjective):
    """max score(y) − score(gold): zero where the gold labelling is the best.

    References
    ----------
    Collins (2002), Discriminative training methods for hidden Markov models.
    """

    needs = frozenset({"map"})
    temperature: ClassVar[int] = 0
    smooth: ClassVar[bool] = False
    minus_gold: ClassVar[bool] = True
