"""A problem in which some weights stay as they are."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from chordal._blocks import Runner, run_in_turn
from chordal.oracle._protocols import BatchOracle, DataOracle, Oracle, SecondOrderOracle
from chordal.potentials import Floats

Flags = NDArray[np.bool_]


class PartialOracle:
    """The same function of fewer weights: the others keep their starting values.

    It has the second derivatives and the batches that the whole function has.

    Parameters
    ----------
    oracle : Oracle
    start : array [n_weights]
        All weights at the beginning.
    free : bool [n_weights], optional
        Which weights move; by default all.
    scaled : slice, optional
        Weights that move together: they are their starting values times one number, which is
        the last of the weights that a solver sees. They count as not free.

    Examples
    --------
    >>> class Square:
    ...     n_weights = 3
    ...     def value_grad(self, weights):
    ...         return float(weights @ weights), 2.0 * weights
    >>> part = PartialOracle(Square(), np.array([1.0, 2.0, 3.0]), np.array([False, False, True]))
    >>> part.value_grad(np.array([4.0]))
    (21.0, array([8.]))
    """

    def __init__(
        self, oracle: Oracle, start: Floats, free: Flags | None = None, scaled: slice | None = None
    ) -> None:
        self._oracle, self._all = oracle, start.copy()
        free = np.ones(len(start), dtype=bool) if free is None else free.copy()
        if scaled is not None:
            free[scaled] = False
        self._scaled, self._mask, self._free = scaled, free, np.flatnonzero(free)
        self.start = start[self._free]
        if scaled is not None:
            self.start = np.append(self.start, 1.0)
        self.n_weights = len(self.start)
        self.noisy, self.without_l1 = False, None
        self.run: Runner = run_in_turn  # for the solver's own work on long vectors
        if isinstance(oracle, DataOracle):
            self.noisy, self.run = oracle.noisy, oracle.run
            if oracle.without_l1 is not None:
                self.without_l1 = np.flatnonzero(np.isin(self._free, oracle.without_l1))

    def recycle(self, vector: Floats) -> None:
        """Parts of gradients are copies: their memory is of no use."""

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        """The objective, and its gradient in the weights that move."""
        value, gradient = self._oracle.value_grad(self.whole(weights))
        return value, self.part(gradient)

    def hess_vec(self, weights: Floats, direction: Floats) -> Floats:
        """The Hessian times a direction."""
        oracle = cast(SecondOrderOracle, self._oracle)
        return self.part(oracle.hess_vec(self.whole(weights), self._spread(direction)))

    def hessian(self, weights: Floats) -> Floats:
        """The Hessian in the weights that move."""
        matrix = cast(SecondOrderOracle, self._oracle).hessian(self.whole(weights))
        rows = np.stack([self.part(row) for row in matrix])
        return np.stack([self.part(column) for column in rows.T])

    def batches(self) -> list[PartialOracle]:
        """The same part of each batch's function."""
        parts = cast(BatchOracle, self._oracle).batches()
        return [PartialOracle(part, self._all, self._mask, self._scaled) for part in parts]

    def whole(self, weights: Floats) -> Floats:
        """All weights."""
        out = self._all.copy()
        out[self._free] = weights[: len(self._free)]
        if self._scaled is not None:
            out[self._scaled] *= weights[-1]
        return out

    def part(self, gradient: Floats) -> Floats:
        """The gradient in the weights that move."""
        own = gradient[self._free]
        if self._scaled is None:
            return own
        return np.append(own, np.dot(gradient[self._scaled], self._all[self._scaled]))

    def _spread(self, direction: Floats) -> Floats:
        """A direction of the weights that move, as one of all weights."""
        out = np.zeros_like(self._all)
        out[self._free] = direction[: len(self._free)]
        if self._scaled is not None:
            out[self._scaled] = direction[-1] * self._all[self._scaled]
        return out
