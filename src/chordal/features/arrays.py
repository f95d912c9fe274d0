"""Rows of numbered columns, as arrays or SciPy matrices: a weight for every column and output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._blocks import Runner, run_in_turn, unit_of
from chordal._optional import needed
from chordal._sparse import stacked_rows
from chordal._validate import check_number
from chordal.features._base import Condensed, Input, RowFeatures, SeenRows, WeightKeys
from chordal.features.attributes import AttributeFeatures
from chordal.features.batch import Floats, Ints, Occurrences, Rows
from chordal.features.entries import RowEntries, entry_offsets
from chordal.structures import offsets_of

SPARSE = 0.3  # rows with a smaller share of numbers other than zero are better taken as sparse
FEW = 32  # columns, up to which our own product beats that of BLAS

A = TypeVar("A", bound="ArrayInput")


class ArrayInput(Input):
    """Sequences given as arrays or matrices [length, n_columns]."""

    def __init__(self, n_columns: int) -> None:
        self._n_columns = n_columns

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return self._n_columns

    def name(self, column: int) -> str:
        """What users call a column."""
        return f"x{column}"

    def facts(self) -> dict[str, Any]:
        """The number of columns."""
        return {"n_columns": self.n_columns}

    @classmethod
    def from_arrays(
        cls: type[A], facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> A:
        """What a model file holds, checked."""
        check_number("n_columns", facts["n_columns"], integer=True)
        return cls(facts["n_columns"])

    def _check_columns(self, n: int, i: int) -> None:
        if n != self.n_columns:
            raise ValueError(f"X[{i}] must have {self.n_columns} columns, got {n}")


def _not_finite(row: int, lengths: Ints) -> ValueError:
    sequence = int(np.searchsorted(np.cumsum(lengths), row, side="right"))
    position = row - int(lengths[:sequence].sum())
    return ValueError(f"X[{sequence}][{position}] has NaN or infinity; clean or impute it")


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
            raise _not_finite(int(np.argmin(finite)), lengths)
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
        self._check_columns(array.shape[1], i)
        return array

    def features_of(
        self,
        seen: SeenRows,
        n_outputs: int,
        pairs: str = "seen",
        min_freq: int = 0,
        known: WeightKeys | None = None,
    ) -> DenseFeatures:
        """Weights of every column, seen or not."""
        return DenseFeatures(self.n_columns, n_outputs)


@final
class SparseInput(ArrayInput):
    """Sequences given as SciPy sparse matrices or arrays [length, n_columns]."""

    def read(self, X: Sequence[Any], grow: bool) -> Rows:
        """Read a batch of sequences."""
        with needed("scipy", "a sparse matrix"):
            import scipy.sparse as sp

        for i, x in enumerate(X):
            if not sp.issparse(x):
                raise TypeError(f"X[{i}] must be a SciPy sparse matrix like X[0], got {type(x)}")
            self._check_columns(x.shape[1], i)
        lengths = np.array([x.shape[0] for x in X], dtype=np.int64)
        whole = stacked_rows(X, self.n_columns)
        finite = np.isfinite(whole.data)
        if not finite.all():
            row = int(np.searchsorted(whole.indptr, np.argmin(finite), "right")) - 1
            raise _not_finite(row, lengths)
        offsets, ids = whole.indptr.astype(np.int64), whole.indices.astype(np.int32)
        return Rows(lengths, Occurrences(offsets, ids, _values(whole.data)))

    def seen(
        self, rows: Rows, outputs: NDArray[np.int32], n_outputs: int, pairs: str = "seen"
    ) -> SeenRows:
        """How often each column is used."""
        return SeenRows(np.bincount(rows.data.ids, minlength=self.n_columns))

    def features_of(
        self,
        seen: SeenRows,
        n_outputs: int,
        pairs: str = "seen",
        min_freq: int = 0,
        known: WeightKeys | None = None,
    ) -> AttributeFeatures:
        """Weights of every column, used or not."""
        return AttributeFeatures.of_every_pair(n_outputs, seen.counts)


def _values(values: Floats) -> Floats | None:
    """Values of entries; None if all are 1."""
    return None if (values == 1.0).all() else values


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

    def condensed(self, parts: Iterable[Rows]) -> Condensed | None:
        """Rows with few nonzero numbers, as lists of these."""
        counts, n, ones = np.zeros(self.n_columns, dtype=np.int64), 0, True
        for rows in parts:
            counts += np.count_nonzero(rows.data, axis=0)
            n += rows.data.size
            ones = ones and np.count_nonzero(rows.data == 1.0) == np.count_nonzero(rows.data)
        if counts.sum() > SPARSE * n:
            return None
        features = AttributeFeatures.of_every_pair(self.n_outputs, counts)

        def condense(rows: Rows) -> Rows:
            row, column = np.nonzero(rows.data)
            values = None if ones else rows.data[row, column].astype(np.float64)
            offsets = offsets_of(np.bincount(row, minlength=len(rows.data)))
            return Rows(rows.lengths, Occurrences(offsets, column.astype(np.int32), values))

        def spread(weights: Floats) -> Floats:
            keys, out = features.keys(), np.empty(self.n_weights)
            out[keys.column * self.n_outputs + keys.output] = weights
            return out

        return Condensed(features, condense, spread)

    @classmethod
    def from_arrays(
        cls, n_columns: int, n_outputs: int, arrays: Mapping[str, NDArray[Any]]
    ) -> DenseFeatures:
        """Features need no arrays to be known."""
        return cls(n_columns, n_outputs)

    def keys(self) -> WeightKeys:
        """Column and output of every weight."""
        column, output = np.divmod(np.arange(self.n_weights), self.n_outputs)
        return WeightKeys(column, output)

    def entries(self, shards: Sequence[NDArray[Any]]) -> RowEntries:
        """All compiled rows as lists of entries."""
        data = np.concatenate([np.zeros((0, self.n_columns), dtype=np.float32), *shards])
        row, column = np.nonzero(data)
        unit = unit_of(self.n_outputs)
        units = -(-self.n_outputs // unit)
        if self.n_columns * units >= 2**27:
            raise ValueError("too many weights for online learning: use fewer columns")
        keys, none = self.keys(), np.zeros(0, dtype=np.uint32)
        return RowEntries(
            n_outputs=self.n_outputs,
            n_cells=self.n_columns * units * unit,
            first_narrow=self.n_columns * units * unit,
            cells=keys.column * (units * unit) + keys.output,
            wide_offsets=entry_offsets([np.bincount(row, minlength=len(data))]),
            wide_codes=(column * units << 5 | units).astype(np.uint32),
            wide_values=_values(data[row, column].astype(np.float64)),
            narrow_offsets=np.zeros(len(data) + 1, dtype=np.uint32),
            narrow_outputs=none,
            narrow_cells=none,
            narrow_values=none.astype(np.float64),
        )
