"""The perceptron's loss: the score of the best labelling minus that of the gold one."""

from __future__ import annotations

from typing import ClassVar, final

from chordal.objectives._base import MarginObjective


@final
class Perceptron(MarginObjective):
    """max score(y) − score(gold): zero if the gold labelling is the best.

    It is also zero for zero weights, so a solver that seeks the minimum learns nothing. Use
    "averaged_perceptron" or "sgd", which update after each mistake.

    References
    ----------
    Collins (2002), Discriminative training methods for hidden Markov models.
    """

    needs = frozenset({"map"})
    temperature: ClassVar[int] = 0
    smooth: ClassVar[bool] = False
    zero_is_best: ClassVar[bool] = True
    minus_gold: ClassVar[bool] = True
