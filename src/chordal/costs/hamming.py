"""Hamming cost: the number of wrong labels."""

from __future__ import annotations

from typing import final

import numpy as np

from chordal.costs._base import Cost, Floats, Labels, Prices, shares
from chordal.costs.weighted_hamming import WeightedHamming
from chordal.potentials import Potentials
from chordal.structures import Structure


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
        """Add the cost of an error to all labels except the gold ones."""
        structure = potentials.structure
        price: float | np.ndarray = 1.0
        if self.normalize:
            price = np.repeat(shares(structure), np.diff(structure.variable_offsets))
            potentials.unary += np.repeat(price, structure.label_counts)
        else:
            potentials.unary += 1.0
        potentials.unary[structure.state_offsets[:-1] + labels] -= price
        return potentials

    @property
    def in_units(self) -> bool:
        """Always: an error is one unit."""
        return True

    def prices(self, structure: Structure, labels: Labels) -> Prices:
        """One unit for each label except the gold one."""
        of_state = np.ones(structure.n_states, dtype=np.int64)
        of_state[structure.state_offsets[:-1] + labels] = 0
        unit = shares(structure) if self.normalize else np.ones(structure.n_examples)
        return Prices(of_state, unit)

    def with_class_weight(self, weight: Floats) -> WeightedHamming:
        """A `WeightedHamming` cost, with the weight of the gold label as the cost."""
        costs = np.repeat(weight[:, None], len(weight), axis=1)
        np.fill_diagonal(costs, 0.0)
        return WeightedHamming(costs, self.normalize)
