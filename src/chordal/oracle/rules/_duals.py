"""What rules of dual variables share: the dual value, and the highest so far."""

from __future__ import annotations

import numpy as np

from chordal.oracle._chain_arrays import Chains
from chordal.oracle.rules._base import Examples
from chordal.potentials import Floats


class DualState:
    """The highest dual value so far, from linear terms L and sums G: w = centre + G / l2.

    With `chains`, weights and sums are in their cells.
    """

    def __init__(self, examples: Examples, chains: Chains | None = None) -> None:
        centre = np.zeros(examples.n_weights) if examples.centre is None else examples.centre
        self.centre = centre if chains is None else chains.spread(centre)
        self._l2, self._highest = examples.l2, -np.inf

    def reach(self, weights: Floats, linear: float) -> float:
        """The same for weights in place of the sum G."""
        return self.reach_by(self._l2 * (weights - self.centre), linear)

    def reach_by(self, G: Floats, linear: float) -> float:
        """The highest value so far, with L − ⟨centre, G⟩ − ‖G‖² / (2 l2) among them."""
        value = linear - float(self.centre @ G) - 0.5 * float(G @ G) / self._l2
        self._highest = max(self._highest, value)
        return self._highest
