"""Softmax-margin: the likelihood with the cost of each labelling added to its score."""

from __future__ import annotations

from typing import ClassVar, final

from chordal.costs import Cost
from chordal.objectives._base import MarginObjective, cost_for


@final
class SoftmaxMargin(MarginObjective):
    """log Σ exp[score(y) + cost(y, gold)] − score(gold).

    The larger the cost of an error, the larger the probability that the gold label needs.

    Parameters
    ----------
    cost : str or Cost, default="hamming"

    References
    ----------
    Gimpel and Smith (2010), Softmax-margin CRFs: training log-linear models with cost functions.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> from chordal.costs.weighted_hamming import WeightedHamming
    >>> X, y = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"]]], [["D", "N", "V"], ["D", "N"]]
    >>> missed_verbs = WeightedHamming({"V": 5.0})
    >>> ChainCRF(objective=SoftmaxMargin(missed_verbs)).fit(X, y).predict(X)
    [['D', 'N', 'V'], ['D', 'N']]
    """

    needs = frozenset({"marginals", "log_partition"})
    curvature_needs: ClassVar[frozenset[str] | None] = frozenset({"marginals_derivative"})
    temperature: ClassVar[int] = 1
    smooth: ClassVar[bool] = True

    def __init__(self, cost: str | Cost = "hamming") -> None:
        self.cost = cost_for(cost)
