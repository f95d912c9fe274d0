"""The structured hinge: the gold labelling should lead every other by its cost."""

from __future__ import annotations

from typing import ClassVar, final

from chordal.costs import Cost
from chordal.objectives._margin import MarginObjective, cost_for


@final
class Hinge(MarginObjective):
    """max [score(y) + cost(y, gold)] − score(gold), the loss of structured support vector machines.

    Parameters
    ----------
    cost : str or Cost

    References
    ----------
    Taskar, Guestrin and Koller (2003), Max-margin Markov networks; Tsochantaridis et al. (2005),
    Large margin methods for structured and interdependent output variables.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"map"})
    temperature: ClassVar[int] = 0

    def __init__(self, cost: str | Cost = "hamming") -> None:
        self.cost = cost_for(cost)
