"""Exponentiated gradient on chains: dual variables as scores of labels and transitions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal.oracle import Floats
from chordal.structures import offsets_of

SHARPNESS = 0.5  # K of the first visit to all examples, in units of 1 / cost
RISE = 20.0  # visits after which K grows faster


class ExponentiatedLearner:
    """Each visit moves one example's dual variables towards the scores of its labellings.

    The hinge is the limit K → ∞ of losses log Σ exp(K score) / K, and K grows from visit to visit.
    """

    def __init__(self, oracle: Any) -> None:  # a ChainDual
        self._oracle, n_labels = oracle, oracle.n_labels
        self._centre = np.zeros(oracle.n_weights) if oracle.centre is None else oracle.centre
        self._w = oracle.examples.spread(self._centre)
        edges = np.maximum(oracle.lengths - 1, 0)
        tables = np.minimum(edges, 1) if oracle.tied else edges
        self._offsets = offsets_of(oracle.lengths * n_labels + tables * n_labels**2)
        self._theta = np.zeros(int(self._offsets[-1]))
        highest = float(oracle.costs[0].max(initial=0.0))
        self._visits, self._sharpness = 0, SHARPNESS / highest if highest > 0.0 else SHARPNESS
        self._eta, self._term = np.zeros(oracle.n_examples), np.zeros(oracle.n_examples)

    def visit(self, order: NDArray[np.int64]) -> None:
        """Improve the dual variables of these examples in turn."""
        oracle = self._oracle
        order = np.ascontiguousarray(order, dtype=np.int64)
        if len(order) and not 0 <= order.min() <= order.max() < oracle.n_examples:
            raise IndexError(f"order must name examples 0 to {oracle.n_examples - 1}")
        self._visits += 1
        _kernels.chain_exponentiated(
            oracle.examples.chains,
            oracle.costs[0],
            oracle.costs[1],
            order,
            oracle.l2,
            1.0 if oracle.soft else self._sharpness * self._visits * (1.0 + self._visits / RISE),
            oracle.soft,
            self._w,
            self._theta,
            self._offsets,
            self._eta,
            self._term,
        )

    def state(self) -> tuple[Floats, float]:
        """The weights of the dual variables, and the dual value."""
        oracle, weights = self._oracle, self._oracle.examples.gather(self._w)
        v = weights - self._centre
        dual = float(oracle.sample_weight @ self._term)
        return weights, dual - oracle.l2 * float(self._centre @ v) - 0.5 * oracle.l2 * float(v @ v)
