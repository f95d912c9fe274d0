"""Maximum likelihood: −log p(y | x)."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from chordal.inference import Inference
from chordal.objectives._base import Evaluation, Objective
from chordal.potentials import Floats, Potentials


@final
class Likelihood(Objective):
    """log Z − score(y); its derivative is the marginals minus the gold indicators.

    Examples
    --------
    >>> from chordal.inference.chain import ChainInference
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([2], n_labels=2), unary=[0, 0, 0, 0], tables=[0, 0, 0, 0])
    >>> values, parts = Likelihood().evaluate(p, [0, 1], ChainInference())
    >>> values.round(4), parts.unary
    (array([1.3863]), array([-0.5,  0.5,  0.5, -0.5]))
    """

    needs: ClassVar[frozenset[str]] = frozenset({"marginals"})
    convex: ClassVar[bool] = True
    minus_gold: ClassVar[bool] = True

    def evaluate(
        self,
        potentials: Potentials,
        labels: NDArray[np.int32] | None,
        inference: Inference,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Evaluation:
        score = 0.0 if labels is None else potentials.score(labels)
        log_partition, parts = inference.marginals(potentials, weight, overwrite)
        if labels is not None:
            parts.add_indicators(labels, scale=-1.0, weight=weight)
        values = log_partition - score
        return Evaluation(values if weight is None else weight * values, parts)
