"""Hamming cost: how many labels are wrong."""

from __future__ import annotations

from typing import final

import numpy as np

from chordal.costs._base import Cost, Labels
from chordal.potentials import Potentials


@final
class Hamming(Cost):
    """Each wrong label costs one, or with `normalize` one over the number of variables.

    Examples
    --------
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([3], n_labels=2), np.zeros(6), np.zeros(4))
    >>> Hamming(normalize=True).of(p, np.array([0, 1, 1]), np.array([0, 0, 1])).round(3)
    array([0.333])
    """

    def __init__(self, normalize: bool = False) -> None:
        self.normalize = normalize

    def add(self, potentials: Potentials, labels: Labels) -> Potentials:
        structure = potentials.structure
        price: float | np.ndarray = 1.0
        if self.normalize:
            sizes = np.diff(structure.variable_offsets)
            price = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
            potentials.unary += np.repeat(price, structure.label_counts)
        else:
            potentials.unary += 1.0
        potentials.unary[structure.state_offsets[:-1] + labels] -= price
        return potentials
