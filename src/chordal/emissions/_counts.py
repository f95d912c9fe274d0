"""What families of counts share: how they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from chordal._optional import needed
from chordal._sparse import stacked_rows
from chordal._validate import is_sparse
from chordal.emissions._base import Emission, Statistics, check_columns
from chordal.features import DenseInput, Rows
from chordal.potentials import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

E = TypeVar("E", bound="CountEmission")


def log_factorials(counts: Floats) -> Floats:
    """log x! of each count."""
    with needed("scipy", "an emission of counts"):
        from scipy.special import gammaln

    return np.asarray(gammaln(counts + 1.0))


class CountEmission(Emission):
    """Observations are rows of counts; T(x) is the counts themselves."""

    sparse: ClassVar[bool] = True
    _n_columns: int = 0

    def read(self, X: Sequence[Any], grow: bool) -> Rows:
        """Rows of counts, dense or sparse; other numbers are refused."""

        with needed("scipy", f"emission {self.name!r}"):
            import scipy.sparse as sp

        if grow:
            shape = X[0].shape if is_sparse(X[0]) else np.shape(X[0])
            if len(shape) != 2:
                raise ValueError(
                    f"X[0] must be an array [length, n_features] of counts, got shape {shape}"
                )
            self._n_columns = shape[1]
        dense = [x.toarray() if is_sparse(x) and x.shape[0] == 0 else x for x in X]
        if any(is_sparse(x) for x in dense):
            for i, x in enumerate(X):
                if np.ndim(x) != 2 or x.shape[1] != self._n_columns:
                    raise ValueError(f"X[{i}] must have {self._n_columns} columns")
            lengths = np.array([x.shape[0] for x in X], dtype=np.int64)
            data = stacked_rows(X, self._n_columns)
        else:
            rows = DenseInput(self._n_columns).read(dense, grow=False)
            lengths, data = rows.lengths, sp.csr_matrix(rows.data.astype(np.float64))
        data.eliminate_zeros()
        bad = np.flatnonzero(~((data.data > 0.0) & (data.data % 1.0 == 0.0)))
        if len(bad):
            row = int(np.searchsorted(data.indptr, bad[0], side="right")) - 1
            i = int(np.searchsorted(np.cumsum(lengths), row, side="right"))
            t = row - int(lengths[:i].sum())
            raise ValueError(
                f"X[{i}][{t}] must hold counts (0, 1, 2, …) for emission {self.name!r}, "
                f"got {data.data[bad[0]]}"
            )
        if grow:
            self._seen(data)
        return Rows(lengths, data)

    def _seen(self, data: csr_matrix) -> None:
        """Learn from all rows, before labels."""

    def join(self: E, others: Sequence[E]) -> None:
        """All have the same columns."""
        check_columns([own._n_columns for own in (self, *others)])

    def statistics(self, data: csr_matrix) -> Statistics:
        """The counts themselves."""
        return data

    def _log_factorials(self, data: csr_matrix) -> Floats:
        """Σ log x! of every row."""
        logs = data.copy()
        logs.data = log_factorials(logs.data)
        return np.asarray(logs.sum(axis=1)).ravel()
