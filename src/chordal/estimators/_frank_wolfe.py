"""Block-coordinate Frank–Wolfe on chains: dual variables as marginals, and how it is hastened."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal.oracle import Floats
from chordal.structures import offsets_of

SNAPSHOT_CELLS = 64  # of weights per step between two snapshots for a mean over time
INNER = 4  # visits to all examples until the centre moves
HASTE = 0.1  # κ as a share of the mean curvature of single examples
EMPHASIS = 5.0  # the mean over time weighs visit j by about j to this power


class Marginals:
    """Marginals of all examples, few of which are not zero: lists of keys and values.

    At first an example has these keys, as many as `sizes` says, with the value 1.
    """

    def __init__(self, keys: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
        self._sizes, self._room = sizes, offsets_of(sizes)
        self._used = sizes.astype(np.int32)
        self._keys, self._values = keys.astype(np.uint32), np.ones(len(keys))
        self._merge()

    def lists(self) -> _kernels.DualLists:
        """What a kernel changes."""
        return _kernels.DualLists(self._room, self._used, self._keys, self._values)

    def make_room(self, visits: NDArray[np.int64]) -> None:
        """Let every list grow by its first size, so many times."""
        needed, room = self._used + visits * self._sizes, np.diff(self._room)
        if (needed <= room).all():
            return
        at = self._places()
        keys, values = self._keys[at], self._values[at]
        self._room = offsets_of(np.maximum(room, needed + needed // 2))
        self._keys = np.zeros(self._room[-1], dtype=np.uint32)
        self._values = np.zeros(self._room[-1])
        at = self._places()
        self._keys[at], self._values[at] = keys, values

    def _places(self) -> NDArray[np.int64]:
        used = self._used.astype(np.int64)
        inner = np.arange(used.sum()) - np.repeat(offsets_of(used)[:-1], used)
        return np.repeat(self._room[:-1], used) + inner

    def _merge(self) -> None:
        """A key that an example has twice, such as a tied transition, counts twice."""
        example = np.repeat(np.arange(len(self._sizes)), self._sizes)
        order = np.lexsort((self._keys, example))
        both = np.stack([example[order], self._keys[order]])
        first = np.flatnonzero(np.append(True, (np.diff(both) != 0).any(axis=0))[: len(order)])
        values = np.add.reduceat(np.ones(len(order)), first) if len(first) else self._values
        counts = np.bincount(example[order][first], minlength=len(self._sizes))
        self._used = counts.astype(np.int32)
        at = self._places()
        self._keys[at], self._values[at] = self._keys[order][first], values


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
        labels, transitions = oracle.gold_keys()
        self._labels = Marginals(labels, oracle.lengths)
        self._transitions = Marginals(transitions, np.maximum(oracle.lengths - 1, 0))
        self._linear = np.zeros(oracle.n_examples)  # the expected cost of every example
        # All in cells: w = centre + G / (l2 + κ), G = Σ ω ψ; means over the last visit and all.
        # Each spread by itself: the kernel works on whole cache lines of w and recent.
        centre = np.zeros(oracle.n_weights) if oracle.centre is None else oracle.centre
        self._w, self._recent = examples.spread(centre), examples.spread(centre)
        self._aim = self._centre = self._x = self._w.copy()
        self._mean = self._w.copy()
        self._mean_G, self._mean_linear = np.zeros_like(self._w), 0.0
        self._sums = np.zeros(6)  # steps, snapshots, Σ ω ℓ, its mean, curvature, moves
        self._kappa, self._visits, self._dual = 0.0, 0, 0.0

    def visit(self, order: NDArray[np.int64]) -> None:
        """Improve the dual variables of these examples in turn."""
        oracle = self._oracle
        order = np.ascontiguousarray(order, dtype=np.int64)
        if len(order) and not 0 <= order.min() <= order.max() < oracle.n_examples:
            raise IndexError(f"order must name examples 0 to {oracle.n_examples - 1}")
        visits = np.bincount(order, minlength=oracle.n_examples)
        self._labels.make_room(visits)
        self._transitions.make_room(visits)
        arrays = _kernels.FrankWolfe(
            *(self._w, self._recent, self._linear, self._labels.lists(), self._transitions.lists()),
            *(self._sums, oracle.gram, oracle.gram_offsets),
        )
        every = max(1, min(len(self._w) // SNAPSHOT_CELLS, len(order) // 4))
        self._sums[1] = 0.0  # snapshots: the mean begins anew
        l2 = oracle.l2 + self._kappa
        _kernels.chain_frank_wolfe(
            oracle.examples.chains, oracle.costs[0], oracle.costs[1], order, l2, every, arrays
        )
        self._sums[2] = float(oracle.sample_weight @ self._linear)  # without the rounding of steps
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
