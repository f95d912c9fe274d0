"""Block-coordinate Frank–Wolfe on chains: dual variables as marginals, and how it is hastened."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal.oracle import Floats
from chordal.structures import offsets_of

SNAPSHOT_CELLS = 256  # of weights for which a mean over time costs about one step
INNER = 4  # visits to all examples until the centre moves
HASTE = 0.1  # κ as a share of the mean curvature of single examples
EMPHASIS = 5.0  # the mean over time weighs visit j by about j to this power


class Marginals:
    """Dual variables of all examples, as marginals; at first those of the gold labellings.

    Of labels in padded rows; of transitions, few of which are not zero, as lists of keys and
    values with room to grow. `linear` is the expected cost of every example.
    """

    def __init__(self, oracle: Any) -> None:  # a ChainDual
        self.labels = oracle.gold_indicators()
        self.keys, self.room = oracle.gold_transitions()
        self.values = np.ones(len(self.keys))
        self.used = np.diff(self.room).astype(np.int32)
        self.linear = np.zeros(oracle.n_examples)

    def make_room(self, more: NDArray[np.int64]) -> None:
        """Let every list grow by so many transitions."""
        needed, room = self.used + more, np.diff(self.room)
        if (needed <= room).all():
            return
        at = self._places()
        keys, values = self.keys[at], self.values[at]
        self.room = offsets_of(np.maximum(room, needed + needed // 2))
        self.keys = np.zeros(self.room[-1], dtype=np.uint32)
        self.values = np.zeros(self.room[-1])
        at = self._places()
        self.keys[at], self.values[at] = keys, values

    def _places(self) -> NDArray[np.int64]:
        used = self.used.astype(np.int64)
        inner = np.arange(used.sum()) - np.repeat(offsets_of(used)[:-1], used)
        return np.repeat(self.room[:-1], used) + inner


class FrankWolfeLearner:
    """Each visit moves one example's dual variables by the step that raises the dual most.

    Where l2 is small beside the curvature of single examples, their best steps are short, and all
    have to be visited very often. They are then taken on the objective plus (κ/2) ‖w − z‖²,
    which is the same problem with l2 + κ and another centre, and z moves on after a few visits
    to all: x + β (x − the x before), x being the mean weights since (Lin, Mairal and Harchaoui
    (2015), A universal catalyst for first-order optimization). The dual variables serve the
    problem as it is, and so do their means over time, which `state` gives.
    """

    def __init__(self, oracle: Any) -> None:  # a ChainDual
        self._oracle, examples = oracle, oracle.examples
        self._edges = np.maximum(oracle.lengths - 1, 0)
        self._marginals = Marginals(oracle)
        # All in cells: w = centre + G / (l2 + κ), G = Σ ω ψ; means over the last visit and all.
        self._aim = examples.spread(
            np.zeros(oracle.n_weights) if oracle.centre is None else oracle.centre
        )
        self._w, self._centre, self._x = self._aim.copy(), self._aim.copy(), self._aim.copy()
        self._recent, self._mean = self._w.copy(), self._w.copy()
        self._mean_G, self._mean_linear = np.zeros_like(self._w), 0.0
        self._sums = np.zeros(6)  # steps, snapshots, Σ ω ℓ, its mean, curvature, moves
        self._kappa, self._visits, self._dual = 0.0, 0, 0.0

    def visit(self, order: NDArray[np.int64]) -> None:
        """Improve the dual variables of these examples in turn."""
        oracle, m = self._oracle, self._marginals
        order = np.ascontiguousarray(order, dtype=np.int64)
        if len(order) and not 0 <= order.min() <= order.max() < oracle.n_examples:
            raise IndexError(f"order must name examples 0 to {oracle.n_examples - 1}")
        m.make_room(np.bincount(order, minlength=oracle.n_examples) * self._edges)
        gram = (oracle.gram, oracle.gram_offsets)
        arrays = _kernels.FrankWolfe(
            *(self._w, self._recent, m.linear, m.labels, m.room, m.used, m.keys, m.values),
            *(self._sums, *gram),
        )
        every = max(1, min(len(self._w) // SNAPSHOT_CELLS, len(order) // 4))
        self._sums[1] = 0.0  # snapshots: the mean begins anew
        l2 = oracle.l2 + self._kappa
        _kernels.chain_frank_wolfe(oracle.examples.chains, *oracle.costs, order, l2, every, arrays)
        self._sums[2] = float(oracle.sample_weight @ m.linear)  # without the rounding of steps
        if self._sums[1] > 0.0:
            self._take_mean()
        if self._visits % INNER == 0:
            self._move_centre()

    def state(self) -> tuple[Floats, float]:
        """The mean weights, and the highest dual value so far."""
        G = (self._oracle.l2 + self._kappa) * (self._w - self._centre)
        self._dual = max(self._dual, self._dual_value(G, float(self._sums[2])))
        weights = self._mean if self._visits else self._w
        return self._oracle.examples.gather(weights), self._dual

    def _take_mean(self) -> None:
        self._visits += 1
        share = (EMPHASIS + 1.0) / (EMPHASIS + self._visits)
        G = (self._oracle.l2 + self._kappa) * (self._recent - self._centre)
        self._mean += share * (self._recent - self._mean)
        self._mean_G += share * (G - self._mean_G)
        self._mean_linear += share * (float(self._sums[3]) - self._mean_linear)
        for pair in ((G, float(self._sums[3])), (self._mean_G, self._mean_linear)):
            self._dual = max(self._dual, self._dual_value(*pair))

    def _dual_value(self, G: Floats, linear: float) -> float:
        return linear - float(self._aim @ G) - 0.5 * float(G @ G) / self._oracle.l2

    def _move_centre(self) -> None:
        """Let z go on; κ is chosen once, after the first visits have shown the curvature."""
        l2, old = self._oracle.l2, self._oracle.l2 + self._kappa
        if self._kappa == 0.0:
            kappa = HASTE * self._sums[4] / max(self._sums[5], 1.0)
            if kappa <= l2:  # nothing to gain
                return
            self._kappa = kappa
        root = np.sqrt(l2 / (l2 + self._kappa))
        z = self._recent + (1.0 - root) / (1.0 + root) * (self._recent - self._x)
        G, self._x = old * (self._w - self._centre), self._recent.copy()
        self._centre = (l2 * self._aim + self._kappa * z) / (l2 + self._kappa)
        self._w[:] = self._centre + G / (l2 + self._kappa)
