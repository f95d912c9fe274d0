"""Maximum likelihood: −log p(y | x)."""

from __future__ import annotations

from typing import ClassVar, final

from chordal.objectives._margin import MarginObjective


@final
class Likelihood(MarginObjective):
    """log Z − score(y); its derivative is the marginals minus the gold indicators.

    Examples
    --------
    >>> from chordal.inference.chain import ChainInference
    >>> from chordal.potentials import Potentials
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([2], n_labels=2), unary=[0, 0, 0, 0], tables=[0, 0, 0, 0])
    >>> values, parts = Likelihood().evaluate(p, [0, 1], ChainInference())
    >>> values.round(4), parts.unary
    (array([1.3863]), array([-0.5,  0.5,  0.5, -0.5]))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"marginals"})
    curvature_needs: ClassVar[frozenset[str] | None] = frozenset({"marginals_derivative"})
    temperature: ClassVar[int] = 1
    minus_gold: ClassVar[bool] = True
