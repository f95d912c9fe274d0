"""The structured hinge: the gold labelling should beat every other by its cost."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar, final

import numpy as np

from chordal._errors import UnsupportedError
from chordal._validate import check_choice
from chordal.costs import Cost
from chordal.inference import Inference
from chordal.objectives._base import Evaluation, MarginObjective, cost_for, hard_labels
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure
from chordal.targets import Target


@final
class Hinge(MarginObjective):
    """max over y of [score(y) + cost(y, gold)] − score(gold): structured support vector machines.

    Parameters
    ----------
    cost : str or Cost, default="hamming"
        The cost of a wrong labelling; see `chordal.costs`.
    scaling : {"margin", "slack"}, default="margin"
        "margin": max [score(y) + cost(y, gold)] − score(gold); the required margin grows with the
        cost. "slack": max cost(y, gold) · [1 + score(y) − score(gold)]; the required margin is one,
        and its violation is multiplied by the cost. So very wrong labellings need no larger margin.
        "slack" needs costs in whole units per variable, because it finds the best labelling at
        every cost. On chains its time grows with the square of the length.
    relaxed : bool, default=False
        Whether to take the maximum over a relaxation (`Inference.relaxed_map`), which contains all
        labellings. See the notes.

    Notes
    -----
    Labels may be sets: this is a latent structured support vector machine. The loss is that of a
    completion, one label of each set. Training alternates between fitting the weights and
    completing the sets by their best labelling (the concave–convex procedure). A new completion is
    used only if it lowers the loss of its example, so the objective never rises. The first
    completion comes from a short fit of the likelihood, which sums over the sets. It adds fixed
    noise, to separate labels that only occur together. The result is a local minimum;
    `fit_report_.completions` has the objective after each round.

    On graphs with loops the exact maximum is often infeasible, and there are two approximations. An
    approximate `map` *under-generates*: it misses labellings, so the loss is too low, and training
    may stop too early. A relaxation *over-generates*: it also requires a margin over fractional
    labellings. The loss is then an upper bound and stays convex; training prefers weights for which
    the relaxation is integral, which suits the same relaxation at prediction. Finley and Joachims
    (2008) found the second safer.

    References
    ----------
    Yu and Joachims (2009), Learning structural SVMs with latent variables;
    Taskar, Guestrin and Koller (2003), Max-margin Markov networks; Tsochantaridis et al. (2005),
    Large margin methods for structured and interdependent output variables; Finley and Joachims
    (2008), Training structural SVMs when exact inference is intractable.

    Examples
    --------
    >>> from chordal.inference.chain import ChainInference
    >>> from chordal.potentials import Potentials
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([2], n_labels=2), unary=[0, 0, 0, 0.5], tables=[0, 0, 0, 0])
    >>> [Hinge(scaling=s).evaluate(p, [0, 0], ChainInference()).values for s in ("margin", "slack")]
    [array([2.5]), array([3.])]
    """

    needs = frozenset({"map"})
    temperature: ClassVar[int] = 0
    smooth: ClassVar[bool] = False
    completes: ClassVar[bool] = True

    def __init__(
        self, cost: str | Cost = "hamming", scaling: str = "margin", relaxed: bool = False
    ) -> None:
        check_choice("scaling", scaling, ["margin", "slack"])
        if relaxed and scaling == "slack":
            raise ValueError("relaxed=True needs scaling='margin'")
        self.cost: Cost = cost_for(cost)
        self.scaling, self.relaxed = scaling, bool(relaxed)
        if scaling == "slack":
            self.needs = frozenset({"map_by_cost"})
        elif relaxed:
            self.needs = frozenset({"relaxed_map"})

    @property
    def additive(self) -> bool:
        """Whether the loss is a maximum of sums over labels and transitions."""
        return self.scaling == "margin"

    def require(self, inference: Inference, structure: Structure) -> None:
        """Raise an error for slack scaling with costs that are not in whole units."""
        if self.scaling == "slack" and not self.cost.in_units:
            raise UnsupportedError(
                f"objective 'hinge' with scaling='slack' needs costs in whole units per variable, "
                f"but cost {self.cost.name!r} is not; use 'hamming', or "
                "'weighted_hamming' with whole numbers"
            )
        super().require(inference, structure)

    def evaluate(
        self,
        potentials: Potentials,
        labels: Target | None,
        inference: Inference,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Evaluation:
        """The hinge loss and its derivative, by margin or slack scaling."""
        if self.scaling == "margin":
            return super().evaluate(potentials, labels, inference, weight, overwrite)
        gold = hard_labels(self, labels)
        structure = potentials.structure
        prices = self.cost.prices(structure, gold)
        found = inference.map_by_cost(potentials, prices.of_state)
        levels = np.diff(found.offsets)
        k = np.arange(len(found.score)) - np.repeat(found.offsets[:-1], levels)
        lead = 1.0 + found.score - np.repeat(potentials.score(gold), levels)
        loss, wrong = np.zeros(len(k)), k > 0
        loss[wrong] = k[wrong] * np.repeat(prices.unit, levels)[wrong] * lead[wrong]
        values = np.maximum.reduceat(loss, found.offsets[:-1])
        best = [int(np.argmax(loss[a:b])) for a, b in pairwise(found.offsets)]
        cost = np.array(best, dtype=np.int64)
        factor = cost * prices.unit * (1.0 if weight is None else weight)
        parts = potentials.zeros()
        parts.add_indicators(found.at(structure, cost), weight=factor)
        parts.add_indicators(gold, scale=-1.0, weight=factor)
        return Evaluation(values if weight is None else weight * values, parts)

    def __repr__(self) -> str:
        relaxed = ", relaxed=True" if self.relaxed else ""
        return f"Hinge(cost={self.cost!r}, scaling={self.scaling!r}{relaxed})"
