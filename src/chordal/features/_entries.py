"""Rows as lists of entries that point to cells of weights: what online learning updates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chordal._blocks import unit_of
from chordal.structures import offsets_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Counts = NDArray[np.uint32]


@dataclass(frozen=True)
class RowEntries:
    """What each row holds, as lists of entries.

    A *wide* entry adds a row of cells, value by value, to the outputs from 0 on: its code is
    offset << 5 | size, both in units. A *narrow* entry adds one cell to one output. Weight k
    lies in cell `cells[k]`; the other cells are padding. Values are None when all are 1.
    """

    n_outputs: int
    n_cells: int
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

    def of_output(self, output: int, n_outputs: int) -> RowEntries:
        """Entries of one output as those of one among several; a row of weights is padded to a
        unit, which has room for them.
        """
        wide = np.zeros(self.n_cells, dtype=bool)
        for code in np.unique(self.wide_codes):
            unit = unit_of(self.n_outputs)
            wide[(int(code) >> 5) * unit : ((int(code) >> 5) + (int(code) & 31)) * unit] = True
        return replace(
            self,
            n_outputs=n_outputs,
            cells=np.where(wide[self.cells], self.cells + output, self.cells),
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
            raise ValueError("too many weights for online learning: raise min_freq")
        at = self.wide_offsets[rows + 1].astype(np.int64)
        offsets = self.wide_offsets.astype(np.int64)
        offsets[1:] += np.cumsum(np.bincount(rows, minlength=self.n_rows))
        values = self.wide_values
        return replace(
            self,
            n_cells=(start + units) * unit,
            cells=np.concatenate([self.cells, start * unit + outputs]),
            wide_offsets=as_counts(offsets),
            wide_codes=np.insert(self.wide_codes, at, np.uint32(start << 5 | units)),
            wide_values=None if values is None else np.insert(values, at, 1.0),
        )


def as_counts(offsets: Ints) -> Counts:
    """Offsets as the kernels take them."""
    if len(offsets) and offsets[-1] >= 2**32:
        raise ValueError("too many observations for online learning: train on fewer sequences")
    return offsets.astype(np.uint32)


def joined_offsets(parts: Sequence[NDArray[np.uint32]]) -> Counts:
    """Offsets of lists that are put one after another."""
    sizes = [np.diff(part.astype(np.int64)) for part in parts]
    return as_counts(offsets_of(np.concatenate([np.zeros(0, dtype=np.int64), *sizes])))


def by_row(row_of_entry: NDArray[np.uint32], n_rows: int) -> tuple[Counts, Ints]:
    """Offsets of each row's entries, and the order that brings them together."""
    counts = np.bincount(row_of_entry, minlength=n_rows)
    return as_counts(offsets_of(counts)), np.argsort(row_of_entry, kind="stable")


def packed_flags(cells: Ints, n_cells: int) -> NDArray[np.uint8]:
    """For each four cells, which of them hold a weight, as bits.

    >>> packed_flags(np.array([0, 3, 5]), 8)
    array([9, 2], dtype=uint8)
    """
    flags = np.zeros(n_cells, dtype=np.uint8)
    flags[cells] = 1
    return np.packbits(flags.reshape(-1, 4), axis=1, bitorder="little").ravel()
