"""Pseudo-likelihood: every label given the gold labels around it."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from chordal import _kernels
from chordal._validate import check_weight
from chordal.inference import Inference
from chordal.objectives._base import Evaluation, Objective, hard_labels
from chordal.potentials import Floats, Potentials
from chordal.targets import Target


@final
class PseudoLikelihood(Objective):
    """Σ over variables of −log p(y_v | the gold labels of its neighbours).

    It needs no inference. A clique costs the sum of its variables' label counts instead of their
    product: on a chain of length T with L labels, T·L instead of T·L². With enough data it finds
    the weights of the likelihood. With little data it relies too much on neighbours, because they
    are never wrong in training.

    References
    ----------
    Besag (1975), Statistical analysis of non-lattice data.

    Examples
    --------
    >>> from chordal.inference.chain import ChainInference
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([2], n_labels=2), unary=[0, 0, 0, 0], tables=[1, 0, 0, 1])
    >>> values, parts = PseudoLikelihood().evaluate(p, [0, 0], ChainInference())
    >>> values.round(4), parts.unary.round(4)
    (array([0.6265]), array([-0.2689,  0.2689, -0.2689,  0.2689]))
    """

    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = True

    def evaluate(
        self,
        potentials: Potentials,
        labels: Target | None,
        inference: Inference,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Evaluation:
        """The sum of −log p of each variable, given all others."""
        s = potentials.structure
        check_weight(weight, s.n_examples)
        gold = potentials.checked_labels(hard_labels(self, labels))
        # The kernel is done with a variable's scores before it writes their derivative.
        unary = potentials.unary if overwrite else np.empty_like(potentials.unary)
        parts = potentials.like(unary, np.zeros_like(potentials.tables))
        values = np.empty(s.n_examples)
        _kernels.pseudo_likelihood(
            potentials.scores, parts.writable, gold, weight=weight, values=values
        )
        return Evaluation(values if weight is None else weight * values, parts)
