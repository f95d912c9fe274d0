"""Sparse rows: SciPy matrices, one weight for every column and output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from chordal.features._arrays import ArrayInput
from chordal.features._base import RowFeatures, Rows, WeightKeys
from chordal.features._occurrences import Occurrences
from chordal.features.attribute_features import AttributeFeatures


@final
class SparseInput(ArrayInput):
    """Sequences given as SciPy sparse matrices or arrays [length, n_columns]."""

    def read(self, X: Sequence[Any], grow: bool) -> Rows:
        """Read a batch of sequences."""
        import scipy.sparse as sp

        for i, x in enumerate(X):
            if not sp.issparse(x):
                raise TypeError(f"X[{i}] must be a SciPy sparse matrix like X[0], got {type(x)}")
            if x.shape[1] != self.n_columns:
                raise ValueError(f"X[{i}] must have {self.n_columns} columns, got {x.shape[1]}")
        lengths = np.array([x.shape[0] for x in X], dtype=np.int64)
        blocks = [sp.csr_matrix(x) for x in X] or [sp.csr_matrix((0, self.n_columns))]
        whole = sp.vstack(blocks, format="csr").astype(np.float64)
        whole.sum_duplicates()
        if not np.isfinite(whole.data).all():
            entry = np.argmin(np.isfinite(whole.data))
            row = int(np.searchsorted(whole.indptr, entry, "right")) - 1
            sequence = int(np.searchsorted(np.cumsum(lengths), row, side="right"))
            position = row - int(lengths[:sequence].sum())
            raise ValueError(f"X[{sequence}][{position}] holds NaN or infinity; clean or impute it")
        ones = bool((whole.data == 1.0).all())
        return Rows(
            lengths,
            Occurrences(
                whole.indptr.astype(np.int64),
                whole.indices.astype(np.int32),
                None if ones else whole.data,
            ),
        )

    def features(
        self,
        rows: Rows,
        outputs: NDArray[np.int32],
        n_outputs: int,
        pairs: str = "seen",
        min_freq: int = 0,
        known: WeightKeys | None = None,
    ) -> RowFeatures:
        """The linear map for training rows with these outputs."""
        # Every column, used or not, so that weights do not depend on how the data were stored.
        n = self.n_columns
        return AttributeFeatures(
            n,
            n_outputs,
            np.arange(n + 1, dtype=np.int64) * n_outputs,
            np.tile(np.arange(n_outputs, dtype=np.int32), n),
            np.bincount(rows.data.ids, minlength=n),
        )
