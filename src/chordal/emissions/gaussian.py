"""Real numbers: a normal distribution for each label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal._validate import check_choice, check_number
from chordal.emissions._base import Emission, Statistics, check_columns
from chordal.features import DenseInput, Rows
from chordal.potentials import Floats


@final
class Gaussian(Emission):
    """A normal distribution for each label, of independent or of correlated columns.

    Observations are standardised, z = (x − centre) / spread, for numerical precision. T(x) is z and
    the squares (or all products) of its columns. With precision P and mean m, η = (P m, −P/2) and A
    = ½ mᵀP m + ½ log det(2π P⁻¹).

    Parameters
    ----------
    covariance : {"diagonal", "full"}
    smoothing : float
        Added to the variance of every column, as a share of the column's variance over all labels.

    Attributes
    ----------
    means : float64 [n_labels, n_columns]
    covariances : float64 [n_labels, n_columns], or with "full" [n_labels, n_columns, n_columns]

    Examples
    --------
    >>> family = Gaussian(smoothing=0.0)
    >>> rows = family.read([np.array([[1.0], [3.0], [10.0], [14.0]])], grow=True)
    >>> family.fit(rows.data, np.array([0, 0, 1, 1]), n_labels=2)
    >>> family.means.ravel().round(6), family.covariances.ravel().round(6)
    (array([ 2., 12.]), array([1., 4.]))
    """

    sparse: ClassVar[bool] = False

    def __init__(self, covariance: str = "diagonal", smoothing: float = 1e-9) -> None:
        check_choice("covariance", covariance, ["diagonal", "full"])
        check_number("smoothing", smoothing)
        self.covariance, self.smoothing = covariance, smoothing
        self.means: Floats = np.zeros((0, 0))
        self.covariances: Floats = np.zeros((0, 0))
        self._centre: Floats = np.zeros(0)
        self._spread: Floats = np.ones(0)
        self._n_read, self._read_spread = 0, np.zeros(0)  # of the rows that were read first

    @classmethod
    def of(cls, means: ArrayLike, covariances: ArrayLike) -> Gaussian:
        """The family with these means and (co)variances."""
        m, c = np.asarray(means, dtype=np.float64), np.asarray(covariances, dtype=np.float64)
        made = cls("full" if c.ndim == 3 else "diagonal", smoothing=0.0)
        variances = c if c.ndim == 2 else np.diagonal(c, axis1=1, axis2=2)
        made._centre, made._spread = m.mean(axis=0), np.sqrt(variances.mean(axis=0))
        scale = made._spread**2 if c.ndim == 2 else np.outer(made._spread, made._spread)
        made._set((m - made._centre) / made._spread, c / scale)
        return made

    def read(self, X: Sequence[Any], grow: bool) -> Rows:
        """Rows of finite numbers, centred and scaled as they were at first."""
        if grow:
            shape = np.shape(X[0])
            if len(shape) != 2 or shape[1] == 0:
                raise ValueError(
                    f"X[0] must be an array [length, n_features] of numbers, got shape {shape}"
                )
            self._centre, self._spread = np.zeros(shape[1]), np.ones(shape[1])
        rows = DenseInput(len(self._centre)).read(X, grow=False)
        data = rows.data.astype(np.float64)
        if grow and len(data):
            self._n_read = len(data)
            self._know(data.mean(axis=0), data.std(axis=0))
        return Rows(rows.lengths, (data - self._centre) / self._spread)

    def _know(self, centre: Floats, spread: Floats) -> None:
        self._centre, self._read_spread = centre, spread
        self._spread = np.where(spread > 0.0, spread, 1.0)

    def join(self, others: Sequence[Gaussian]) -> None:
        """Mean and spread of all rows."""
        read = [own for own in (self, *others) if own._n_read]
        check_columns([len(own._centre) for own in (self, *others)])
        if not read:
            return
        share = np.array([own._n_read for own in read]) / sum(own._n_read for own in read)
        centres = np.stack([own._centre for own in read])
        within = np.stack([own._read_spread**2 for own in read])
        centre = share @ centres
        self._n_read = sum(own._n_read for own in read)
        self._know(centre, np.sqrt(share @ (within + (centres - centre) ** 2)))

    def statistics(self, data: Floats) -> Statistics:
        """x and x², or the products of all pairs of columns for full covariances."""
        if self.covariance == "diagonal":
            return np.concatenate([data, data**2], axis=1)
        i, j = np.triu_indices(data.shape[1])
        return np.concatenate([data, data[:, i] * data[:, j]], axis=1)

    def names(self) -> list[str]:
        """The columns, standardised: "z0", their squares "z0²" and their products "z0·z1"."""
        d = len(self._centre)
        pairs = [(k, k) for k in range(d)]
        if self.covariance == "full":
            pairs = [(i, j) for i in range(d) for j in range(i, d)]
        products = (f"z{i}²" if i == j else f"z{i}·z{j}" for i, j in pairs)
        return [*(f"z{k}" for k in range(d)), *products]

    def log_base(self, data: Floats) -> Floats:
        """What the scaling of the columns adds to the density."""
        return np.full(len(data), -np.log(self._spread).sum())

    def learn(self, sums: Floats, counts: Floats) -> None:
        """Mean and covariance of each label, smoothed."""
        d = len(self._centre)
        moments = sums / counts[:, None]
        means = moments[:, :d]
        if self.covariance == "diagonal":
            variances = np.maximum(moments[:, d:] - means**2, 0.0) + self.smoothing
            self._set(means, variances)
            return
        i, j = np.triu_indices(d)
        second = np.empty((len(means), d, d))
        second[:, i, j] = second[:, j, i] = moments[:, d:]
        covariances = second - means[:, :, None] * means[:, None, :]
        self._set(means, covariances + self.smoothing * np.eye(d))

    def _set(self, means: Floats, covariances: Floats) -> None:
        """Take means and covariances of z."""
        spread = self._spread
        self.means = means * spread + self._centre
        if self.covariance == "diagonal":
            self._refuse_flat((covariances > 0.0).all(axis=1))
            self.covariances = covariances * spread**2
            precision = 1.0 / covariances
            self.natural = np.concatenate([precision * means, -0.5 * precision], axis=1)
            quadratic = (precision * means**2).sum(axis=1)
            log_det = np.log(2.0 * np.pi * covariances).sum(axis=1)
        else:
            lowest = np.linalg.eigvalsh(covariances)[:, 0]
            self._refuse_flat(lowest > 0.0)
            self.covariances = covariances * np.outer(spread, spread)
            precision = np.linalg.inv(covariances).astype(np.float64)
            linear = np.einsum("kij,kj->ki", precision, means)
            i, j = np.triu_indices(len(spread))
            products = -np.where(i == j, 0.5, 1.0) * precision[:, i, j]
            self.natural = np.concatenate([linear, products], axis=1)
            quadratic = (linear * means).sum(axis=1)
            log_det = np.linalg.slogdet(2.0 * np.pi * covariances)[1]
        self.log_partition = 0.5 * (quadratic + log_det)

    def _refuse_flat(self, spread_out: NDArray[np.bool_] | np.bool_) -> None:
        if not spread_out.all():
            what = "some column is" if self.covariance == "diagonal" else "some columns are"
            raise ValueError(
                f"the observations of label number {int(np.argmin(spread_out))} do not spread: "
                f"{what} constant or depend on each other; raise smoothing, or give more data"
            )

    def sample(self, labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[Any]:
        """A normal vector for each label."""
        noise = rng.normal(size=(len(labels), len(self._centre)))
        if self.covariance == "diagonal":
            return self.means[labels] + noise * np.sqrt(self.covariances[labels])
        roots = np.linalg.cholesky(self.covariances)
        return self.means[labels] + np.einsum("nij,nj->ni", roots[labels], noise)
