"""Counts: a Poisson distribution for each label and column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal._validate import check_number
from chordal.emissions._base import log_probabilities
from chordal.emissions._counts import CountEmission
from chordal.potentials import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@final
class Poisson(CountEmission):
    """Counts with a rate λ for each label and column: T(x) = x, η = log λ, A = Σ λ.

    Parameters
    ----------
    alpha : float
        Number of pseudo-rows, with the mean of all labels, added to each label. With 0, a column
        that is always 0 with a label forbids it elsewhere.

    Attributes
    ----------
    rates : float64 [n_labels, n_columns]

    Examples
    --------
    >>> family = Poisson(alpha=0.0)
    >>> rows = family.read([np.array([[1, 0], [3, 2], [8, 0]])], grow=True)
    >>> family.fit(rows.data, np.array([0, 0, 1]), n_labels=2)
    >>> family.rates
    array([[2., 1.],
           [8., 0.]])
    """

    def __init__(self, alpha: float = 1.0) -> None:
        check_number("alpha", alpha)
        self.alpha = alpha
        self.rates: Floats = np.zeros((0, 0))
        self._mean: Floats = np.zeros(0)
        self._n_read = 0

    @classmethod
    def of(cls, rates: ArrayLike) -> Poisson:
        """The family with these rates."""
        made = cls(alpha=0.0)
        made._set(np.asarray(rates, dtype=np.float64))
        return made

    def _seen(self, data: csr_matrix) -> None:
        self._n_read = data.shape[0]
        self._mean = np.asarray(data.sum(axis=0)).ravel() / max(self._n_read, 1)

    def join(self, others: Sequence[Poisson]) -> None:
        """The mean of all rows."""
        super().join(others)
        read = (self, *others)
        n = sum(own._n_read for own in read)
        total = np.sum([own._n_read * own._mean for own in read], axis=0)
        self._mean, self._n_read = total / max(n, 1), n

    def log_base(self, data: csr_matrix) -> Floats:
        """−Σ log x! of every row."""
        return -self._log_factorials(data)

    def learn(self, sums: Floats, counts: Floats) -> None:
        """Rates of each label, smoothed towards the mean of all."""
        self._set((sums + self.alpha * self._mean) / (counts + self.alpha)[:, None])

    def _set(self, rates: Floats) -> None:
        self.rates, self._n_columns = rates, rates.shape[1]
        self.natural = log_probabilities(rates)
        self.log_partition = rates.sum(axis=1)

    def sample(self, labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
        """Independent counts at the rates of each label."""
        return rng.poisson(self.rates[labels])
