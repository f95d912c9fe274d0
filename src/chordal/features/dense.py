"""Dense rows: arrays of numbers, one weight for every column and output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._blocks import Runner, run_in_turn, unit_of
from chordal.features._arrays import ArrayInput
from chordal.features._base import Condensed, Floats, RowFeatures, Rows, WeightKeys
from chordal.features._entries import RowEntries, as_counts
from chordal.features._occurrences import Occurrences
from chordal.features.attribute_features import AttributeFeatures
from chordal.structures import offsets_of

SPARSE = 0.3  # rows with a smaller share of numbers other than zero are better taken as sparse
FEW = 32  # columns, up to which our own product beats that of BLAS


@final
class DenseInput(ArrayInput):
    """Sequences given as arrays [length, n_columns] of float32 or float64."""

    def read(self, X: Sequence[Any], grow: bool) -> Rows:
        """Read a batch of sequences."""
        arrays = [self._array(x, i) for i, x in enumerate(X)]
        lengths = np.array([len(a) for a in arrays], dtype=np.int64)
        if not arrays:
            return Rows(lengths, np.zeros((0, self.n_columns)))
        narrow = all(a.dtype == np.float32 for a in arrays)
        data = np.concatenate(arrays, dtype=np.float32 if narrow else np.float64, casting="unsafe")
        finite = np.isfinite(data).all(axis=1)
        if not finite.all():
            row = int(np.argmin(finite))
            sequence = int(np.searchsorted(np.cumsum(lengths), row, side="right"))
            position = row - int(lengths[:sequence].sum())
            raise ValueError(f"X[{sequence}][{position}] holds NaN or infinity; clean or impute it")
        return Rows(lengths, data)

    def _array(self, x: object, i: int) -> NDArray[Any]:
        expected = f"X[{i}] must be an array [length, {self.n_columns}]"
        try:
            array = np.asarray(x)
        except ValueError:
            raise ValueError(f"{expected}, got rows of different lengths") from None
        if array.dtype.kind not in "fiub":
            kind = type(x).__name__ if array.ndim == 0 else f"dtype {array.dtype}"
            raise TypeError(f"{expected} of numbers, got {kind}")
        if array.ndim != 2:
            raise ValueError(f"{expected}, got {array.ndim} dimensions")
        if array.shape[1] != self.n_columns:
            raise ValueError(f"X[{i}] must have {self.n_columns} columns, got {array.shape[1]}")
        return array

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
        return DenseFeatures(self.n_columns, n_outputs)


@final
class DenseFeatures(RowFeatures):
    """scores = X W and gradient = Xᵀ parts, W [n_columns, n_outputs]; float32 rows stay float32."""

    def __init__(self, n_columns: int, n_outputs: int) -> None:
        self.n_columns, self.n_outputs = n_columns, n_outputs
        self.n_weights = n_columns * n_outputs

    def compile(self, rows: Rows, first: int, last: int) -> NDArray[Any]:
        """Rows first..last as `map` and `adjoint` take them."""
        return np.ascontiguousarray(rows.data[first:last])

    def expand(
        self, weights: Floats, memory: Floats | None = None, run: Runner = run_in_turn
    ) -> Floats:
        """The weights as `map` takes them."""
        return weights.reshape(self.n_columns, self.n_outputs)

    def map(self, rows: NDArray[Any], expanded: Floats, out: Floats) -> None:
        """Set out to the scores of compiled rows."""
        if self.n_columns <= FEW:
            x, weights = rows.ravel(), expanded.ravel()
            _kernels.dense_map(
                x, columns=self.n_columns, outputs=self.n_outputs, weights=weights, out=out
            )
            return
        wide = rows.astype(np.float64, copy=False)
        np.matmul(wide, expanded, out=out.reshape(len(rows), self.n_outputs))

    def zeros(self, memory: Floats | None = None, run: Runner = run_in_turn) -> Floats:
        """An empty gradient."""
        return np.zeros((self.n_columns, self.n_outputs))

    def n_blocks(self, n_jobs: int) -> int:
        """Into how many tasks the adjoint splits."""
        # Not by n_jobs: how a matrix product is cut decides how it rounds.
        return min(8, max(1, self.n_columns // 16))

    def adjoint(
        self, rows: NDArray[Any], parts: Floats, sums: Floats, block: int, n_jobs: int
    ) -> None:
        """Add the gradient of one block of weights."""
        edges = np.linspace(0, self.n_columns, self.n_blocks(n_jobs) + 1).astype(int)
        columns = slice(edges[block], edges[block + 1])
        if self.n_columns <= FEW:
            _kernels.dense_adjoint(
                rows.ravel(),
                columns=self.n_columns,
                outputs=self.n_outputs,
                begin=columns.start,
                parts=parts,
                out=sums[columns].ravel(),
            )
            return
        wide = rows[:, columns].astype(np.float64, copy=False)
        sums[columns] += wide.T @ parts.reshape(len(rows), self.n_outputs)

    def collect(self, sums: Floats, out: Floats, run: Runner = run_in_turn) -> None:
        """Write the finished gradient to out."""
        out[:] = sums.ravel()

    def condensed(self, rows: Rows) -> Condensed | None:
        """Rows that hold few numbers other than zero, as lists of these."""
        data = rows.data
        row, column = np.nonzero(data)
        if len(row) > SPARSE * data.size:
            return None
        values = data[row, column].astype(np.float64)
        offsets = offsets_of(np.bincount(row, minlength=len(data)))
        ids = column.astype(np.int32)
        occurrences = Occurrences(offsets, ids, None if (values == 1.0).all() else values)
        pairs = offsets_of(np.full(self.n_columns, self.n_outputs))
        outputs = np.tile(np.arange(self.n_outputs, dtype=np.int32), self.n_columns)
        counts = np.bincount(column, minlength=self.n_columns)
        features = AttributeFeatures(self.n_columns, self.n_outputs, pairs, outputs, counts)

        def spread(weights: Floats) -> Floats:
            keys, out = features.keys(), np.empty(self.n_weights)
            out[keys.column * self.n_outputs + keys.output] = weights
            return out

        return Condensed(features, Rows(rows.lengths, occurrences), spread)

    @classmethod
    def from_arrays(
        cls, n_columns: int, n_outputs: int, arrays: Mapping[str, NDArray[Any]]
    ) -> DenseFeatures:
        """What a model file holds, checked."""
        return cls(n_columns, n_outputs)

    def keys(self) -> WeightKeys:
        """Column and output of every weight."""
        column, output = np.divmod(np.arange(self.n_weights), self.n_outputs)
        return WeightKeys(column, output)

    def entries(self, shards: Sequence[NDArray[Any]]) -> RowEntries:
        """All compiled rows as lists of entries."""
        data = np.concatenate([np.zeros((0, self.n_columns), dtype=np.float32), *shards])
        row, column = np.nonzero(data)
        values = data[row, column].astype(np.float64)
        unit = unit_of(self.n_outputs)
        units = -(-self.n_outputs // unit)
        if self.n_columns * units >= 2**27:
            raise ValueError("too many weights for online learning: use fewer columns")
        keys, none = self.keys(), np.zeros(0, dtype=np.uint32)
        return RowEntries(
            n_outputs=self.n_outputs,
            n_cells=self.n_columns * units * unit,
            cells=keys.column * (units * unit) + keys.output,
            wide_offsets=as_counts(offsets_of(np.bincount(row, minlength=len(data)))),
            wide_codes=(column * units << 5 | units).astype(np.uint32),
            wide_values=None if (values == 1.0).all() else values,
            narrow_offsets=np.zeros(len(data) + 1, dtype=np.uint32),
            narrow_outputs=none,
            narrow_cells=none,
            narrow_values=none.astype(np.float64),
        )
