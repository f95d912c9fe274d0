"""Counts of draws: how often each column was drawn, for each label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal._validate import check_number
from chordal.emissions._base import log_probabilities
from chordal.emissions._counts import CountEmission, log_factorials
from chordal.potentials import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@final
class Multinomial(CountEmission):
    """Counts of columns (words, say) drawn with probabilities p: T(x) = x, η = log p, A = 0.

    How many are drawn is given, not modelled. p = (count + alpha) / (total + alpha · columns).

    Parameters
    ----------
    alpha : float
        Added to every count. With 0, a column never seen with a label forbids it.

    Attributes
    ----------
    probabilities : float64 [n_labels, n_columns]

    Examples
    --------
    >>> family = Multinomial(alpha=0.0)
    >>> rows = family.read([np.array([[1, 1], [2, 0], [1, 3]])], grow=True)
    >>> family.fit(rows.data, np.array([0, 0, 1]), n_labels=2)
    >>> family.probabilities
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """

    def __init__(self, alpha: float = 1.0) -> None:
        check_number("alpha", alpha)
        self.alpha = alpha
        self.probabilities: Floats = np.zeros((0, 0))
        self._totals: NDArray[np.int64] = np.ones(1, dtype=np.int64)  # to sample from

    @classmethod
    def of(cls, probabilities: ArrayLike, n_trials: ArrayLike = 1) -> Multinomial:
        """The family with these probabilities; samples have `n_trials` draws."""
        made = cls(alpha=0.0)
        made._totals = np.atleast_1d(np.asarray(n_trials, dtype=np.int64))
        made._set(np.asarray(probabilities, dtype=np.float64))
        return made

    def _seen(self, data: csr_matrix) -> None:
        self._totals = np.asarray(data.sum(axis=1)).ravel().astype(np.int64)

    def join(self, others: Sequence[Multinomial]) -> None:
        """The totals of all rows."""
        super().join(others)
        self._totals = np.concatenate([own._totals for own in (self, *others)])

    def log_base(self, data: csr_matrix) -> Floats:
        """log of the multinomial coefficient of every row."""
        totals = np.asarray(data.sum(axis=1)).ravel()
        return log_factorials(totals) - self._log_factorials(data)

    def learn(self, sums: Floats, counts: Floats) -> None:
        """Shares of the columns for each label, smoothed by `alpha`."""
        smoothed = sums + self.alpha
        totals = smoothed.sum(axis=1, keepdims=True)
        if not (totals > 0.0).all():
            raise ValueError(
                f"label number {int(np.argmin(totals))} has no counts above 0; "
                "smooth with alpha above 0"
            )
        self._set(smoothed / totals)

    def _set(self, probabilities: Floats) -> None:
        self.probabilities, self._n_columns = probabilities, probabilities.shape[1]
        self.natural = log_probabilities(probabilities)
        self.log_partition = np.zeros(len(probabilities))

    def sample(self, labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
        """Counts for each label; their totals are drawn from those of the training data."""
        totals = rng.choice(self._totals, size=len(labels))
        p = self.probabilities / self.probabilities.sum(axis=1, keepdims=True)
        return rng.multinomial(totals, p[labels])
