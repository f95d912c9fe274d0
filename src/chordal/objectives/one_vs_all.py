"""One-vs-all hinge: a hinge between the gold label and each other one."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from chordal.objectives._single import SingleVariableObjective, per_variable
from chordal.potentials import Floats
from chordal.structures import Structure


@final
class OneVsAll(SingleVariableObjective):
    """Σ over labels y that are not gold of max(0, 1 − (score(gold) − score(y))).

    For single variables. Every label that violates the margin counts; "crammer_singer" counts only
    the worst.

    References
    ----------
    Weston and Watkins (1999), Support vector machines for multi-class pattern recognition.

    Examples
    --------
    >>> from chordal.inference.exhaustive import ExhaustiveInference
    >>> from chordal.potentials import Potentials
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([1], n_labels=3), unary=[2, 1.5, 1.25], tables=[])
    >>> OneVsAll().evaluate(p, [0], ExhaustiveInference()).values
    array([0.75])
    """

    smooth: ClassVar[bool] = False

    def losses(self, structure: Structure, scores: Floats, gold: Floats) -> tuple[Floats, Floats]:
        """The hinge of every label against the gold one."""
        counts = structure.label_counts
        of_gold = per_variable(structure, np.where(gold == 1.0, scores, 0.0))
        short = np.where(gold == 1.0, 0.0, 1.0 - np.repeat(of_gold, counts) + scores)
        near = (short > 0.0).astype(np.float64)
        slope = near - gold * np.repeat(per_variable(structure, near), counts)
        return per_variable(structure, np.maximum(short, 0.0)), slope
