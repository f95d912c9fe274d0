"""One-vs-rest hinge: every label against the rest."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from chordal.objectives._single import SingleVariableObjective, per_variable
from chordal.potentials import Floats
from chordal.structures import Structure


@final
class OneVsRest(SingleVariableObjective):
    """Σ over labels of max(0, 1 − score) for the gold one and max(0, 1 + score) for others.

    For single variables: one binary support vector machine per label.

    References
    ----------
    Rifkin and Klautau (2004), In defense of one-vs-all classification.

    Examples
    --------
    >>> from chordal.inference.exhaustive import ExhaustiveInference
    >>> from chordal.potentials import Potentials
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([1], n_labels=3), unary=[2, -2, 0], tables=[])
    >>> OneVsRest().evaluate(p, [0], ExhaustiveInference()).values
    array([1.])
    """

    relative: ClassVar[bool] = False
    smooth: ClassVar[bool] = False

    def losses(self, structure: Structure, scores: Floats, gold: Floats) -> tuple[Floats, Floats]:
        """The hinge of every label on its own."""
        side = 2.0 * gold - 1.0
        short = 1.0 - side * scores
        return per_variable(structure, np.maximum(short, 0.0)), -side * (short > 0.0)
