"""Crammer and Singer's hinge: the gold label should beat every other by one."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from chordal.objectives._single import SingleVariableObjective, per_variable
from chordal.potentials import Floats
from chordal.structures import Structure


@final
class CrammerSinger(SingleVariableObjective):
    """max over labels of [score + 1 if it is not gold] − score(gold), for single variables.

    It equals the structured hinge with Hamming cost on a structure without cliques, and needs no
    inference.

    References
    ----------
    Crammer and Singer (2001), On the algorithmic implementation of multiclass kernel-based
    vector machines.

    Examples
    --------
    >>> from chordal.inference.exhaustive import ExhaustiveInference
    >>> from chordal.potentials import Potentials
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([1], n_labels=3), unary=[2, -2, 1.5], tables=[])
    >>> CrammerSinger().evaluate(p, [0], ExhaustiveInference()).values
    array([0.5])
    """

    smooth: ClassVar[bool] = False

    def losses(self, structure: Structure, scores: Floats, gold: Floats) -> tuple[Floats, Floats]:
        """By how much the best other label violates the margin."""
        counts = structure.label_counts
        if len(counts) == 0:
            return np.zeros(0), np.zeros(0)
        told = scores + 1.0 - gold
        best = np.maximum.reduceat(told, structure.state_offsets[:-1])
        variable = np.repeat(np.arange(len(counts)), counts)
        first = np.flatnonzero(told == best[variable])  # of equal labels the smallest
        _, keep = np.unique(variable[first], return_index=True)
        slope = -gold
        slope[first[keep]] += 1.0
        of_gold = per_variable(structure, np.where(gold == 1.0, scores, 0.0))
        return best - of_gold, slope
