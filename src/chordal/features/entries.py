"""Rows as lists of entries that point to cells of weights: of one shard, and of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from chordal._blocks import unit_of
from chordal.features.batch import Floats, Ints, joined
from chordal.structures import offsets_of

Counts = NDArray[np.uint32]


@dataclass(frozen=True)
class AttributeRows:
    """Compiled rows of one shard: wide entries by row and by column, narrow entries by segment."""

    n_rows: int
    wide_offsets: Counts
    wide_codes: Counts
    wide_values: Floats | None
    column_offsets: Counts
    column_codes: Counts  # of columns that are used, rising
    column_rows: Counts
    column_values: Floats | None
    cells: Counts
    weights: Counts
    narrow_values: Floats | None
    segments: Ints


@dataclass(frozen=True)
class RowEntries:
    """Rows as lists of entries, for online solvers.

    A *wide* entry adds a row of cells, value by value, to the outputs from 0 on: its code is
    offset << 5 | size, both in units. A *narrow* entry adds one cell to one output. Weight k
    lies in cell `cells[k]`; the other cells are padding. Values are None when all are 1.
    """

    n_outputs: int
    n_cells: int
    first_narrow: int  # cells from here on belong to narrow entries
    cells: Ints  # [n_weights]
    wide_offsets: Counts  # [n_rows + 1]
    wide_codes: Counts
    wide_values: Floats | None
    narrow_offsets: Counts  # [n_rows + 1]
    narrow_outputs: Counts
    narrow_cells: Counts
    narrow_values: Floats | None

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.wide_offsets) - 1

    @classmethod
    def of_attributes(
        cls, shards: Sequence[AttributeRows], n_outputs: int, wide: Ints, padded: int, n_narrow: int
    ) -> RowEntries:
        """The rows of all shards; `wide` weights lie in these of the `padded` first cells, narrow
        ones behind them.
        """
        if padded + n_narrow >= 2**32:
            raise ValueError("too many weights for an online solver: raise min_freq")
        n = np.uint32(n_outputs)
        rows = [shard.cells // n for shard in shards]
        orders = [np.argsort(row, kind="stable") for row in rows]

        def by_row(arrays: Sequence[Any], dtype: DTypeLike = np.uint32) -> NDArray[Any]:
            return joined((a[order] for a, order in zip(arrays, orders, strict=True)), dtype)

        in_rows = [np.bincount(r, minlength=s.n_rows) for r, s in zip(rows, shards, strict=True)]
        ones = all(shard.wide_values is None for shard in shards)
        return cls(
            n_outputs=n_outputs,
            n_cells=padded + n_narrow,
            first_narrow=padded,
            cells=np.concatenate([wide, padded + np.arange(n_narrow)]),
            wide_offsets=entry_offsets(np.diff(shard.wide_offsets) for shard in shards),
            wide_codes=joined((shard.wide_codes for shard in shards), np.uint32),
            wide_values=None if ones else joined((s.wide_values for s in shards), float),
            narrow_offsets=entry_offsets(in_rows),
            narrow_outputs=by_row([shard.cells % n for shard in shards]),
            narrow_cells=by_row([shard.weights for shard in shards]) + np.uint32(padded),
            narrow_values=None if ones else by_row([s.narrow_values for s in shards], float),
        )

    def without_weights(self, base: int = 0) -> RowEntries:
        """The entries alone, with narrow cells counted from `base` cells before."""
        nothing = np.zeros(0, dtype=np.int64)
        return replace(self, cells=nothing, narrow_cells=self.narrow_cells + np.uint32(base))

    def of_output(self, output: int, n_outputs: int) -> RowEntries:
        """Entries of one output as those of one among several; a row of weights is padded to a
        unit, which has room for them.
        """
        return replace(
            self,
            n_outputs=n_outputs,
            cells=np.where(self.cells < self.first_narrow, self.cells + output, self.cells),
            narrow_outputs=self.narrow_outputs + np.uint32(output),
        )

    def with_wide_row(self, rows: Ints, outputs: Ints) -> RowEntries:
        """The same with one more wide row of weights, for `outputs`, which `rows` hold.

        Its cells come after all others, and so do its weights.
        """
        unit = unit_of(self.n_outputs)
        units = -(-self.n_outputs // unit)
        start = -(-self.n_cells // unit)
        if start + units >= 2**27:
            raise ValueError("too many weights for an online solver: raise min_freq")
        at, values = self.wide_offsets[rows + 1].astype(np.int64), self.wide_values
        counts = np.diff(self.wide_offsets) + np.bincount(rows, minlength=self.n_rows)
        return replace(
            self,
            n_cells=(start + units) * unit,
            cells=np.concatenate([self.cells, start * unit + outputs]),
            wide_offsets=entry_offsets([counts]),
            wide_codes=np.insert(self.wide_codes, at, np.uint32(start << 5 | units)),
            wide_values=None if values is None else np.insert(values, at, 1.0),
        )

    def beside(self, other: RowEntries) -> RowEntries:
        """The same rows with the entries of `other` behind their own; its cells come after all
        others, and so do its weights.
        """
        unit = unit_of(self.n_outputs)
        start = -(-self.n_cells // unit)
        if start * unit + other.n_cells >= 2**27 * unit:
            raise ValueError("too many weights for an online solver: raise min_freq")
        wide = _Merger(self.wide_offsets, other.wide_offsets)
        narrow = _Merger(self.narrow_offsets, other.narrow_offsets)
        moved = other.narrow_cells + np.uint32(start * unit)
        return RowEntries(
            n_outputs=self.n_outputs,
            n_cells=start * unit + other.n_cells,
            first_narrow=self.first_narrow,
            cells=np.concatenate([self.cells, start * unit + other.cells]),
            wide_offsets=wide.offsets,
            wide_codes=wide.merged(self.wide_codes, other.wide_codes + np.uint32(start << 5)),
            wide_values=wide.values(self.wide_values, other.wide_values),
            narrow_offsets=narrow.offsets,
            narrow_outputs=narrow.merged(self.narrow_outputs, other.narrow_outputs),
            narrow_cells=narrow.merged(self.narrow_cells, moved),
            narrow_values=narrow.values(self.narrow_values, other.narrow_values),
        )


class _Merger:
    """Where the entries of two lists of rows go when each row holds both."""

    def __init__(self, first: Counts, second: Counts) -> None:
        before, after = first.astype(np.int64), second.astype(np.int64)
        self.offsets = entry_offsets([np.diff(before) + np.diff(after)])
        self._first = np.arange(before[-1]) + np.repeat(after[:-1], np.diff(before))
        self._second = np.arange(after[-1]) + np.repeat(before[1:], np.diff(after))

    def merged(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        """What the entries have, row by row."""
        out = np.empty(len(first) + len(second), dtype=first.dtype)
        out[self._first], out[self._second] = first, second
        return out

    def values(self, first: Floats | None, second: Floats | None) -> Floats | None:
        """The same of values, which are None when all are 1."""
        if first is None and second is None:
            return None
        ones = np.ones(len(self._first) if first is None else len(self._second))
        return self.merged(ones if first is None else first, ones if second is None else second)


def entry_offsets(counts: Iterable[NDArray[np.integer]]) -> Counts:
    """Offsets of the entries of rows, from how many each row has, shard after shard."""
    offsets = offsets_of(joined(counts))
    if offsets[-1] >= 2**32:
        raise ValueError("too many observations for an online solver: train on fewer sequences")
    return offsets.astype(np.uint32)


def packed_flags(cells: Ints, n_cells: int) -> NDArray[np.uint8]:
    """For each four cells, which of them hold a weight, as bits.

    >>> packed_flags(np.array([0, 3, 5]), 8)
    array([9, 2], dtype=uint8)
    """
    flags = np.zeros(n_cells, dtype=np.uint8)
    flags[cells] = 1
    return np.packbits(flags.reshape(-1, 4), axis=1, bitorder="little").ravel()
