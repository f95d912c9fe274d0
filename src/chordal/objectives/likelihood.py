"""Maximum likelihood: −log p(y | x)."""

from __future__ import annotations

from typing import ClassVar, final

from chordal.inference import Inference
from chordal.objectives._base import Evaluation, MarginObjective
from chordal.potentials import Floats, Potentials
from chordal.targets import PartialLabels, Target


@final
class Likelihood(MarginObjective):
    """log Z − score(y); its derivative is the marginals minus the gold indicators.

    With soft targets, a distribution q per variable, it is the cross-entropy minus the entropy of
    q: log Z − E_q[score], which is convex. With partially observed labels it is −log P(y is
    possible) = log Z − log Z of the possible labellings. This difference of convex functions is
    **not** convex, so the solution depends on the starting weights.

    Examples
    --------
    >>> from chordal.inference.chain import ChainInference
    >>> from chordal.potentials import Potentials
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([2], n_labels=2), unary=[0, 0, 0, 0], tables=[0, 0, 0, 0])
    >>> values, parts = Likelihood().evaluate(p, [0, 1], ChainInference())
    >>> values.round(4), parts.unary
    (array([1.3863]), array([-0.5,  0.5,  0.5, -0.5]))

    Only the second label is known:

    >>> seen = PartialLabels([True, True, False, True], [2, 2])
    >>> values, parts = Likelihood().evaluate(p, seen, ChainInference())
    >>> values.round(4), parts.unary
    (array([0.6931]), array([ 0. ,  0. ,  0.5, -0.5]))
    """

    needs = frozenset({"marginals", "log_partition"})
    targets: ClassVar[frozenset[str]] = frozenset({"hard", "soft", "partial"})
    curvature_needs: ClassVar[frozenset[str] | None] = frozenset({"marginals_derivative"})
    temperature: ClassVar[int] = 1
    smooth: ClassVar[bool] = True
    minus_gold: ClassVar[bool] = True

    def evaluate(
        self,
        potentials: Potentials,
        labels: Target | None,
        inference: Inference,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Evaluation:
        """−log p of the labels, or of all labellings that partial labels allow."""
        if not isinstance(labels, PartialLabels):
            return super().evaluate(potentials, labels, inference, weight, overwrite)
        clamped = labels.clamped(potentials)
        possible, inside, _ = inference.marginals(clamped, weight, overwrite=True)
        every, parts, _ = inference.marginals(potentials, weight, overwrite)
        parts.unary[:] -= inside.unary
        parts.tables[:] -= inside.tables
        values = every - possible
        return Evaluation(values if weight is None else weight * values, parts)

    def curvature(
        self,
        potentials: Potentials,
        labels: Target | None,
        inference: Inference,
        direction: Potentials,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Potentials:
        """The directional derivative of the parts."""
        if not isinstance(labels, PartialLabels):
            return super().curvature(potentials, labels, inference, direction, weight, overwrite)
        inside = inference.marginals_derivative(labels.clamped(potentials), direction, weight)
        change = inference.marginals_derivative(potentials, direction, weight, overwrite)
        change.unary[:] -= inside.unary
        change.tables[:] -= inside.tables
        return change
