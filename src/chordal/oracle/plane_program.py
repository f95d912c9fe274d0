"""The quadratic program of planes under the losses of many examples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal.oracle.plane_model import PlaneModel, best_mixture
from chordal.potentials import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array

INNER = 4  # passes over the examples at a time
MAX_INNER = 25  # times INNER passes until z moves
NEARNESS = 1.0  # the gap with (κ/2) ‖v − z‖² at which z moves, as a share of the program's own
HASTE = 0.02  # κ as a share of the mean square of the slopes
MAX_ROUNDS = 2000  # moves of z
PATIENCE = 30  # moves of z before planes of the sum are tried, where weights are few
FEW = 500_000
MAX_PLANES = 60  # of the sum
WHOLE = 1e-11  # a smaller gap, relatively, is rounding

Ints = NDArray[np.int64]

_Bounds = tuple[Floats, float, float, Floats]  # v, its value, a lower bound, dual variables


class PlaneProgram:
    """min (l2/2) ‖v‖² + Σ_i max(0, max_k b_k + ⟨a_k, v⟩) over the planes k of every example i.

    Where l2 is small beside the squares of the slopes, steps are taken on the program plus
    (κ/2) ‖v − z‖², and z moves after a few passes. The dual variables are valid for the program
    without this term, too. See Lin, Mairal and Harchaoui (2015), A universal catalyst for
    first-order optimization.

    Parameters
    ----------
    l2 : float
    slopes : CSR array [n_planes, n_weights]
    offsets : float64 [n_planes]
    owner : int64 [n_planes]
        The example of each plane, in rising order.
    """

    def __init__(self, l2: float, slopes: csr_array, offsets: Floats, owner: Ints) -> None:
        self._l2, self._slopes, self._offsets = l2, slopes, offsets
        self._turned = slopes.T  # made once: it is asked for at every step
        _, first = np.unique(owner, return_index=True)
        self._first, self._examples = first, np.append(first, len(owner))
        self._owner, self._sizes = owner, np.diff(self._examples)
        self._planes = _kernels.Planes(
            example_offsets=self._examples,
            row_offsets=slopes.indptr.astype(np.int64),
            cells=slopes.indices.astype(np.int32),
            values=slopes.data,
            offsets=offsets,
            n_weights=slopes.shape[1],
        )
        curvature = float(slopes.data @ slopes.data) / len(offsets)
        self.kappa = HASTE * curvature if HASTE * curvature > l2 else 0.0

    def solve(
        self, alpha: Floats, v: Floats, target: float, random: np.random.Generator
    ) -> tuple[Floats, float, Floats]:
        """v at the minimum, a lower bound of it, and the dual variables, from those given on.

        The bound is below the program's value at v by `target` at most, if rounding lets it.
        """
        l2, kappa = self._l2, self.kappa
        root = np.sqrt(l2 / (l2 + kappa))
        alpha, before, z = alpha.copy(), v, v
        best, (lowest, highest) = v, self._bounds(alpha, v, 0.0, v)
        for n_rounds in range(MAX_ROUNDS):
            v = self._near(z, alpha, max(NEARNESS * (lowest - highest), 0.0), random)
            z = v + (1.0 - root) / (1.0 + root) * (v - before)
            before = v
            value, dual = self._bounds(alpha, v, 0.0, v)
            highest = max(highest, dual)
            if value < lowest:
                best, lowest = v, value
            if lowest - highest <= max(target, WHOLE * abs(lowest)):
                break
            if n_rounds == PATIENCE and len(v) <= FEW:
                found = self._by_planes_of_the_sum(alpha, best, target)
                if found[1] < lowest:
                    best, lowest = found[:2]
                return best, max(highest, found[2]), found[3]
        return best, highest, alpha

    def weights(self, alpha: Floats) -> Floats:
        """v of dual variables, which is their minimum at the best of them."""
        return np.asarray(-(self._turned @ alpha) / self._l2)

    def _by_planes_of_the_sum(self, alpha: Floats, v: Floats, target: float) -> _Bounds:
        """Start at these dual variables and v; as `solve`, by planes under the sum of all examples.

        The sum of every example's highest plane is itself a plane. A few such planes are enough
        where steps on single examples are short, as with a column that has almost no l2.
        """
        n_planes = len(self._offsets)
        model = PlaneModel(self._l2, len(v), n_planes)
        model.add(float(alpha @ self._offsets), self._turned @ alpha, alpha)
        best, lowest, highest, at = v, np.inf, -np.inf, v
        for _ in range(MAX_ROUNDS):
            heights = self._offsets + self._slopes @ at
            chosen = self._highest(heights)
            value = float(heights @ chosen) + 0.5 * self._l2 * float(at @ at)
            if value < lowest:
                best, lowest = at, value
            offset, slope = float(self._offsets @ chosen), self._turned @ chosen
            if len(model.offsets) >= MAX_PLANES:
                model.merge()
            model.add(offset, slope, chosen)
            mixture = best_mixture(model.gram / self._l2, model.offsets, model.alpha)
            dual = model.take(mixture, MAX_PLANES)
            if dual > highest:
                highest, alpha = dual, model.origin()
            if lowest - highest <= max(target, WHOLE * abs(lowest)):
                break
            at = model.near(best, lowest - dual)
        return best, lowest, highest, alpha

    def _highest(self, heights: Floats) -> Floats:
        """1 for the highest plane of every example, where it is above 0."""
        top = np.maximum.reduceat(heights, self._first)
        first = np.flatnonzero((heights > 0.0) & (heights == np.repeat(top, self._sizes)))
        chosen = np.zeros(len(heights))
        _, keep = np.unique(self._owner[first], return_index=True)
        chosen[first[keep]] = 1.0
        return chosen

    def _near(self, z: Floats, alpha: Floats, target: float, random: np.random.Generator) -> Floats:
        """The minimum with (κ/2) ‖v − z‖² added, up to a gap of `target`; changes α."""
        l2, n = self._l2 + self.kappa, len(self._examples) - 1
        v = (self.kappa * z - self._turned @ alpha) / l2
        for _ in range(MAX_INNER):
            order = np.concatenate([random.permutation(n) for _ in range(INNER)])
            self._planes.ascend(l2, order, alpha=alpha, v=v)
            value, dual = self._bounds(alpha, v, self.kappa, z)
            if value - dual <= target:
                break
        return v

    def _bounds(self, alpha: Floats, v: Floats, kappa: float, z: Floats) -> tuple[float, float]:
        """The program's value at v with (κ/2) ‖v − z‖² added, and the dual value of α."""
        heights = np.maximum.reduceat(self._offsets + self._slopes @ v, self._first)
        away, l2 = v - z, self._l2 + kappa
        value = float(np.maximum(heights, 0.0).sum()) + 0.5 * self._l2 * float(v @ v)
        value += 0.5 * kappa * float(away @ away)
        pull = kappa * z - self._turned @ alpha
        dual = float(alpha @ self._offsets) + 0.5 * kappa * float(z @ z)
        return value, dual - 0.5 / l2 * float(pull @ pull)
