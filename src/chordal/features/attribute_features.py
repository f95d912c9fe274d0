"""Weights of attributes: for pairs of an attribute and an output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from chordal import _kernels
from chordal._blocks import BLOCK, Runner, aligned_zeros, blocks_of, run_in_turn, unit_of
from chordal.features._base import Condensed, Floats, Ints, RowFeatures, Rows, WeightKeys
from chordal.features._entries import RowEntries, by_row, joined_offsets
from chordal.features._occurrences import Occurrences, check_dtypes
from chordal.structures import offsets_of

N_SEGMENTS = 4  # of the narrow weights: the adjoint's tasks


@dataclass(frozen=True)
class AttributeRows:
    """Compiled rows of one shard: wide entries by row and by column, narrow entries by segment."""

    n_rows: int
    wide_offsets: NDArray[np.uint32]
    wide_codes: NDArray[np.uint32]
    wide_values: Floats | None
    column_offsets: NDArray[np.uint32]
    column_codes: NDArray[np.uint32]  # of columns that are used, rising
    column_rows: NDArray[np.uint32]
    column_values: Floats | None
    cells: NDArray[np.uint32]
    weights: NDArray[np.uint32]
    narrow_values: Floats | None
    segments: Ints


@final
class AttributeFeatures(RowFeatures):
    """Weights for (attribute, output) pairs: those seen in training, or all.

    Attributes seen with many outputs are *wide*: in the compiled loops they have a row of weights
    up to their last output, and only their pairs in the weight vector. The rest are *narrow*:
    single pairs. Wide rows come longest first, frequent first; narrow weights come in the order
    in which their attributes first appear, so that a pass over the data meets them in sequence.
    """

    def __init__(
        self,
        n_attributes: int,
        n_outputs: int,
        offsets: Ints,
        outputs: NDArray[Any],
        counts: Ints,
        scale: Floats | None = None,  # what each attribute's value is multiplied by
    ) -> None:
        self.n_outputs = n_outputs
        self._pair_offsets, self._pair_outputs, self._counts = offsets, outputs, counts
        self._unit = unit_of(n_outputs)
        n_pairs = np.diff(offsets)
        is_wide = n_pairs >= max(3, n_outputs // 8)
        wide = np.flatnonzero(is_wide)
        units = outputs[offsets[wide + 1] - 1].astype(np.int64) // self._unit + 1
        order = np.lexsort((-counts[wide], -units))
        wide, units = wide[order], units[order]
        wide_starts = offsets_of(units)
        if wide_starts[-1] >= 2**27 or offsets[-1] >= 2**32:
            raise ValueError("too many weights: raise min_freq, or use pairs seen in training only")
        self._wide = wide
        self._wide_starts = wide_starts
        self._wide_work = np.cumsum(counts[wide] * (units + 2))
        # All pairs of all attributes: a matrix, which needs no index.
        full = len(wide) > 0 and bool((n_pairs[wide] == n_outputs).all())
        self._wide_cells = None if full else self._cells_of(wide, wide_starts)
        self._n_wide_weights = int(n_pairs[wide].sum())

        narrow = np.flatnonzero(~is_wide & (n_pairs > 0))
        segments = [narrow[k::N_SEGMENTS] for k in range(N_SEGMENTS)]
        narrow = np.concatenate(segments)
        self._narrow = narrow.astype(np.int32)
        sizes = n_pairs[narrow]
        starts = offsets_of(sizes)
        self._segment_limits = offsets_of([int(n_pairs[part].sum()) for part in segments])
        self.n_weights = self._n_wide_weights + int(starts[-1])
        self._merged = scale is not None
        self._wide_scale: Floats | None = None  # all are 1
        self._narrow_scale: Floats | None = None
        if scale is not None:
            by_row = scale[wide]
            self._wide_scale = by_row[:, None] if full else np.repeat(by_row, n_pairs[wide])
            self._narrow_scale = np.repeat(scale[narrow], sizes)

    @cached_property
    def _places(self) -> NDArray[np.uint32]:
        """What the compiler of rows needs of an attribute, side by side."""
        n_pairs, starts = np.diff(self._pair_offsets), self._wide_starts
        places = np.zeros((len(n_pairs), 4), dtype=np.uint32)
        places[self._wide, 0] = starts[:-1] << 5 | np.diff(starts)
        places[self._wide, 1] = np.arange(len(self._wide))
        places[self._narrow, 1] = offsets_of(n_pairs[self._narrow])[:-1]
        places[:, 2], places[:, 3] = self._pair_offsets[:-1], n_pairs
        return places.ravel()

    @classmethod
    def fit(
        cls,
        rows: Occurrences,
        outputs: NDArray[np.int32],
        n_attributes: int,
        n_outputs: int,
        *,
        pairs: str = "seen",
        min_freq: int = 0,
        known: WeightKeys | None = None,
    ) -> AttributeFeatures:
        """Choose the pairs: seen at least `min_freq` times, or all of attributes that frequent."""
        offsets, seen, counts = _kernels.attribute_pairs(
            offsets=rows.offsets,
            ids=rows.ids,
            outputs=outputs,
            n_attributes=n_attributes,
            n_outputs=n_outputs,
        )
        frequency = np.bincount(rows.ids, minlength=n_attributes)
        if pairs == "all":
            frequent = frequency >= max(min_freq, 1)
            if known is not None:
                frequent[known.column] = True
            kept = frequent.astype(np.int64) * n_outputs
            offsets = offsets_of(kept)
            seen = np.tile(np.arange(n_outputs, dtype=np.int32), int((kept > 0).sum()))
        elif min_freq > 1:
            keep = counts >= min_freq
            attribute = np.repeat(np.arange(n_attributes), np.diff(offsets))[keep]
            offsets = offsets_of(np.bincount(attribute, minlength=n_attributes))
            seen = seen[keep]
        if known is not None and pairs != "all":
            attribute = np.repeat(np.arange(n_attributes), np.diff(offsets))
            both = np.union1d(attribute * n_outputs + seen, known.column * n_outputs + known.output)
            attribute, output = np.divmod(both, n_outputs)
            offsets = offsets_of(np.bincount(attribute, minlength=n_attributes))
            seen = output.astype(np.int32)
        return cls(n_attributes, n_outputs, offsets, seen, frequency)

    def compile(self, rows: Rows, first: int, last: int) -> AttributeRows:
        """Rows first..last as `map` and `adjoint` take them."""
        data: Occurrences = rows.data
        if (last - first) * self.n_outputs >= 2**32:
            raise ValueError(
                f"a sequence of {last - first} rows with {self.n_outputs} outputs each is too "
                "large; split it"
            )
        begin, end = data.offsets[first], data.offsets[last]
        values = data.values
        rows_and_columns = _kernels.attribute_rows(
            self.kernel_layout,
            data.offsets[first : last + 1] - begin,
            data.ids[begin:end],
            None if values is None else values[begin:end],
        )
        compiled = AttributeRows(last - first, *rows_and_columns)
        if values is not None:
            return compiled
        return replace(compiled, wide_values=None, column_values=None, narrow_values=None)

    @property
    def kernel_layout(self) -> _kernels.AttributeLayout:
        """Where the weights of attributes are, as compiled code takes it."""
        return _kernels.AttributeLayout(
            self._places,
            self._pair_outputs,
            self._segment_limits,
            outputs=self.n_outputs,
            wide=len(self._wide),
            unit=self._unit,
        )

    def glimpse(self, rows: Rows, first: int, last: int) -> Occurrences:
        """Rows first..last for one `map`."""
        data: Occurrences = rows.data
        return Occurrences(data.offsets[first : last + 1], data.ids, data.values)

    def expand(
        self,
        weights: Floats,
        memory: tuple[Floats, Floats] | None = None,
        run: Runner = run_in_turn,
    ) -> tuple[Floats, Floats]:
        """The weights as `map` takes them."""
        wide, narrow = weights[: self._n_wide_weights], weights[self._n_wide_weights :]
        rows = self._new_rows() if memory is None else memory[0]
        if self._wide_cells is None:
            pairs, cells = wide.reshape(-1, self.n_outputs), self._matrix(rows)
            self._copy_rows(pairs, cells, run)
        else:
            rows[self._wide_cells] = wide if self._wide_scale is None else wide * self._wide_scale
        return rows, narrow if self._narrow_scale is None else narrow * self._narrow_scale

    def map(
        self, rows: AttributeRows | Occurrences, expanded: tuple[Floats, Floats], out: Floats
    ) -> None:
        """Set out to the scores of compiled rows."""
        wide, narrow = expanded
        if isinstance(rows, Occurrences):
            _kernels.attribute_scores(
                self.kernel_layout,
                rows.offsets,
                rows.ids,
                values=rows.values,
                wide=wide,
                narrow=narrow,
                out=out,
            )
            return
        _kernels.wide_map(
            begin=rows.wide_offsets,
            code=rows.wide_codes,
            value=rows.wide_values,
            outputs=self.n_outputs,
            unit=self._unit,
            weights=wide,
            out=out,
        )
        _kernels.narrow_map(
            cells=rows.cells, index=rows.weights, value=rows.narrow_values, weights=narrow, out=out
        )

    def zeros(
        self, memory: tuple[Floats, Floats] | None = None, run: Runner = run_in_turn
    ) -> tuple[Floats, Floats]:
        """An empty gradient."""
        narrow = np.zeros(self.n_weights - self._n_wide_weights)
        if memory is None:
            return self._new_rows(), narrow
        rows = memory[0]
        run(lambda part: rows[part].fill(0.0), blocks_of(len(rows)))
        return rows, narrow

    def n_blocks(self, n_jobs: int) -> int:
        """Into how many tasks the adjoint splits."""
        return N_SEGMENTS + n_jobs

    def adjoint(
        self,
        rows: AttributeRows,
        parts: Floats,
        sums: tuple[Floats, Floats],
        block: int,
        n_jobs: int,
    ) -> None:
        """Add the gradient of one block of weights."""
        wide, narrow = sums
        if block < n_jobs:
            limits = self._wide_limits(n_jobs)[block : block + 2]
            first, last = np.searchsorted(rows.column_codes, limits)
            _kernels.wide_adjoint(
                begin=rows.column_offsets[first : last + 1],
                code=rows.column_codes[first:last],
                row=rows.column_rows,
                value=rows.column_values,
                outputs=self.n_outputs,
                unit=self._unit,
                parts=parts,
                out=wide,
            )
            return
        begin, end = rows.segments[block - n_jobs : block - n_jobs + 2]
        values = rows.narrow_values
        _kernels.narrow_adjoint(
            cells=rows.cells[begin:end],
            index=rows.weights[begin:end],
            value=None if values is None else values[begin:end],
            parts=parts,
            out=narrow,
        )

    def collect(self, sums: tuple[Floats, Floats], out: Floats, run: Runner = run_in_turn) -> None:
        """Write the finished gradient to out."""
        rows, narrow = sums
        wide = out[: self._n_wide_weights]
        if self._wide_cells is None:
            pairs, cells = wide.reshape(-1, self.n_outputs), self._matrix(rows)
            self._copy_rows(cells, pairs, run)
        else:
            np.take(rows, self._wide_cells, out=wide)
            if self._wide_scale is not None:
                wide *= self._wide_scale
        scale = 1.0 if self._narrow_scale is None else self._narrow_scale
        np.multiply(narrow, scale, out=out[self._n_wide_weights :])

    def condensed(self, rows: Rows) -> Condensed | None:
        """Attributes that occur in the same rows as one."""
        data: Occurrences = rows.data
        if data.values is not None:
            return None
        first = _kernels.attribute_groups(data.offsets, data.ids, len(self._counts))
        kept, group = np.unique(first, return_inverse=True)
        if len(kept) == len(self._counts) or len(first) == 0:
            return None
        scale = np.sqrt(np.bincount(group))
        features = AttributeFeatures(
            len(kept),
            self.n_outputs,
            offsets_of(np.diff(self._pair_offsets)[kept]),
            self._pair_outputs[self._pairs_of(kept)],
            self._counts[kept],
            scale,
        )
        order = features._in_order()
        divisor = np.repeat(scale[order], np.diff(features._pair_offsets)[order])
        index = self._in_groups(features, group)
        is_first = first[data.ids] == data.ids
        offsets = np.concatenate([[0], np.cumsum(is_first)])[data.offsets]
        ids = group[data.ids[is_first]].astype(np.int32)
        return Condensed(
            features,
            Rows(rows.lengths, Occurrences(offsets, ids, None)),
            lambda weights: (weights / divisor)[index],
        )

    def _in_groups(self, groups: AttributeFeatures, group: Ints) -> NDArray[np.uint32]:
        """For every weight, the one of its attribute's group."""
        of_group, attributes = groups._in_order(), self._in_order()
        sizes = np.diff(groups._pair_offsets)
        starts = np.empty(len(sizes), dtype=np.int64)
        starts[of_group] = offsets_of(sizes[of_group])[:-1]
        sizes = np.diff(self._pair_offsets)[attributes]
        index = np.repeat(starts[group[attributes]] - offsets_of(sizes)[:-1], sizes)
        index += np.arange(len(index))
        return index.astype(np.uint32)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that a model file keeps."""
        return {
            "offsets": self._pair_offsets,
            "outputs": self._pair_outputs,
            "counts": self._counts,
        }

    @classmethod
    def from_arrays(
        cls, n_columns: int, n_outputs: int, arrays: Mapping[str, NDArray[Any]]
    ) -> AttributeFeatures:
        """What a model file holds, checked."""
        offsets, outputs, counts = arrays["offsets"], arrays["outputs"], arrays["counts"]
        check_dtypes(arrays, offsets=np.int64, outputs=np.int32, counts=np.int64)
        if len(offsets) != n_columns + 1 or len(counts) != n_columns:
            raise ValueError(f"there must be offsets and counts of {n_columns} attributes")
        if offsets[0] != 0 or offsets[-1] != len(outputs) or (np.diff(offsets) < 0).any():
            raise ValueError("the offsets of attribute–output pairs do not fit the pairs")
        if len(outputs) and (outputs.min() < 0 or outputs.max() >= n_outputs):
            raise ValueError(f"outputs must be between 0 and {n_outputs - 1}")
        rising = np.diff(outputs) > 0
        inner = offsets[1:-1]
        rising[inner[(inner > 0) & (inner < len(outputs))] - 1] = True
        if not rising.all():
            raise ValueError("the outputs of an attribute must rise")
        if len(counts) and (counts.min() < 0 or counts.sum(dtype=np.float64) > 2**53):
            raise ValueError("counts of attributes must not be negative, nor huge")
        return cls(n_columns, n_outputs, offsets, outputs, counts)

    def _in_order(self) -> Ints:
        """Attributes in the order of their weights."""
        return np.concatenate([self._wide, self._narrow])

    def keys(self) -> WeightKeys:
        """Column and output of every weight."""
        attributes = self._in_order()
        sizes = np.diff(self._pair_offsets)[attributes]
        return WeightKeys(
            np.repeat(attributes, sizes), self._pair_outputs[self._pairs_of(attributes)]
        )

    def _new_rows(self) -> Floats:
        return aligned_zeros(int(self._wide_starts[-1]) * self._unit)

    def _copy_rows(self, pairs: Floats, to: Floats, run: Runner) -> None:
        """Rows of wide weights times what their attributes are multiplied by."""
        scale = self._wide_scale

        def copy(part: slice) -> None:
            if scale is None:
                np.copyto(to[part], pairs[part])
            else:
                np.multiply(pairs[part], scale[part], out=to[part])

        run(copy, blocks_of(len(self._wide), BLOCK // self.n_outputs))

    def _matrix(self, rows: Floats) -> Floats:
        """Expanded rows without their padding [n_wide, n_outputs]."""
        return rows.reshape(len(self._wide), -1)[:, : self.n_outputs]

    def entries(self, shards: Sequence[AttributeRows]) -> RowEntries:
        """All compiled rows as lists of entries."""
        if self._merged:  # for batch training alone
            return super().entries(shards)
        n_wide = int(self._wide_starts[-1]) * self._unit
        n_narrow = self.n_weights - self._n_wide_weights
        if n_wide + n_narrow >= 2**32:
            raise ValueError("too many weights for online learning: raise min_freq")
        sorted_by_row = [by_row(s.cells // np.uint32(self.n_outputs), s.n_rows) for s in shards]
        in_order = [(s, order) for s, (_, order) in zip(shards, sorted_by_row, strict=True)]
        outputs = _joined([s.cells[o] % np.uint32(self.n_outputs) for s, o in in_order], np.uint32)
        weights = _joined([s.weights[o] for s, o in in_order], np.uint32)
        wide_cells = self._wide_cells
        if wide_cells is None:
            wide_cells = self._cells_of(self._wide, self._wide_starts)
        unit_values = all(s.wide_values is None for s in shards)
        return RowEntries(
            n_outputs=self.n_outputs,
            n_cells=n_wide + n_narrow,
            cells=np.concatenate([wide_cells, n_wide + np.arange(n_narrow)]),
            wide_offsets=joined_offsets([s.wide_offsets for s in shards]),
            wide_codes=_joined([s.wide_codes for s in shards], np.uint32),
            wide_values=None if unit_values else _joined([s.wide_values for s in shards], float),
            narrow_offsets=joined_offsets([offsets for offsets, _ in sorted_by_row]),
            narrow_outputs=outputs,
            narrow_cells=weights + np.uint32(n_wide),
            narrow_values=(
                None if unit_values else _joined([s.narrow_values[o] for s, o in in_order], float)  # type: ignore[index]
            ),
        )

    def _wide_limits(self, n_jobs: int) -> Ints:
        """Codes that cut the wide rows where the work splits evenly."""
        total = self._wide_work[-1] if len(self._wide) else 0
        inner = np.searchsorted(self._wide_work, total * np.arange(1, n_jobs) / n_jobs)
        return self._wide_starts[np.concatenate([[0], inner, [len(self._wide)]])] << 5

    def _pairs_of(self, attributes: NDArray[np.integer]) -> Ints:
        """Indices of the pairs of these attributes, one after another."""
        sizes = np.diff(self._pair_offsets)[attributes]
        within = np.arange(sizes.sum()) - np.repeat(offsets_of(sizes)[:-1], sizes)
        return np.repeat(self._pair_offsets[attributes], sizes) + within

    def _cells_of(self, wide: Ints, starts: Ints) -> Ints:
        """Where each wide pair lies among the expanded rows."""
        sizes = np.diff(self._pair_offsets)[wide]
        row = np.repeat(starts[:-1] * self._unit, sizes)
        return row + self._pair_outputs[self._pairs_of(wide)]


def _joined(parts: Sequence[Any], dtype: DTypeLike) -> NDArray[Any]:
    """Arrays one after another, also when there is none."""
    return np.concatenate([np.zeros(0, dtype=dtype), *parts])
