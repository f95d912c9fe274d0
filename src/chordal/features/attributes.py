"""Attributes: sparse rows of named columns; weights belong to pairs (attribute, output)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._blocks import BLOCK, Runner, aligned_zeros, blocks_of, run_in_turn, unit_of
from chordal.features._base import Condensed, Input, RowFeatures, SeenRows, WeightKeys
from chordal.features.batch import Floats, Ints, Occurrences, Rows, Vectors, ranges
from chordal.features.entries import AttributeRows, Counts, RowEntries
from chordal.structures import offsets_of
from chordal.text import Items

N_SEGMENTS = 4  # of the narrow weights: the adjoint's tasks

V = TypeVar("V", bound="VocabularyInput")

#: Numbers of wide rows, with their padding, and of narrow pairs.
WideAndNarrow = tuple[Floats, Floats]


class VocabularyInput(Input):
    """An input whose columns are attributes with names."""

    vocabulary: _kernels.Vocabulary

    @property
    def n_columns(self) -> int:
        """How many attributes there are."""
        return len(self.vocabulary)

    def name(self, column: int) -> str:
        """The name of an attribute."""
        return str(self.vocabulary.name(column))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The names, and where each is found."""
        names, offsets = self.vocabulary.arrays()
        return {"names": names, "name_offsets": offsets, "slots": self.vocabulary.slots()}

    @abstractmethod
    def with_vocabulary(self: V, vocabulary: _kernels.Vocabulary) -> V:
        """The same input with other attributes."""

    def with_attributes(self: V, ids: Ints) -> V:
        """The same input with only these attributes, renumbered in their order."""
        names, offsets = self.vocabulary.arrays()
        lengths = np.diff(offsets)[ids]
        letters = names[ranges(offsets[ids], lengths)]
        return self.with_vocabulary(_kernels.Vocabulary.from_arrays(letters, offsets_of(lengths)))

    @staticmethod
    def vocabulary_from(arrays: Mapping[str, NDArray[Any]]) -> _kernels.Vocabulary:
        """The vocabulary in these arrays, without a copy."""
        _check_dtypes(arrays, names=np.uint8, name_offsets=np.int64, slots=np.uint32)
        return _kernels.Vocabulary.borrowed(
            arrays["names"], arrays["name_offsets"], arrays["slots"]
        )

    def seen(
        self, rows: Rows, outputs: NDArray[np.int32], n_outputs: int, pairs: str = "seen"
    ) -> SeenRows:
        """Counts of each attribute and, unless all have weights, of its outputs."""
        data, n = rows.data, self.n_columns
        counts = np.bincount(data.ids, minlength=n)
        if pairs == "all":
            return SeenRows(counts)
        found = _kernels.attribute_pairs(
            offsets=data.offsets,
            ids=data.ids,
            outputs=outputs,
            n_attributes=n,
            n_outputs=n_outputs,
        )
        return SeenRows(counts, found)

    def features_of(
        self,
        seen: SeenRows,
        n_outputs: int,
        pairs: str = "seen",
        min_freq: int = 0,
        known: WeightKeys | None = None,
    ) -> AttributeFeatures:
        """Weights of pairs seen at least `min_freq` times, or all pairs of such attributes."""
        counts, n = seen.counts, len(seen.counts)
        if pairs == "all":
            frequent = counts >= max(min_freq, 1)
            if known is not None:
                frequent[known.column] = True
            offsets = offsets_of(frequent * np.int64(n_outputs))
            kept = np.tile(np.arange(n_outputs, dtype=np.int32), int(frequent.sum()))
            return AttributeFeatures(n_outputs, offsets, kept, counts)
        assert seen.pairs is not None
        offsets, kept, times = seen.pairs
        if min_freq > 1 or known is not None:
            attribute = np.repeat(np.arange(n), np.diff(offsets))
            keys = (attribute * n_outputs + kept)[times >= min_freq]
            if known is not None:
                keys = np.union1d(keys, known.column * n_outputs + known.output)
            return AttributeFeatures.of_pairs(keys, n_outputs, counts)
        return AttributeFeatures(n_outputs, offsets, kept, counts)


@final
class AttributeInput(VocabularyInput):
    """Sequences given as lists of dicts or of lists of strings, with CRFsuite's meaning."""

    def __init__(self, vocabulary: _kernels.Vocabulary | None = None) -> None:
        self.vocabulary = _kernels.Vocabulary() if vocabulary is None else vocabulary

    def with_vocabulary(self, vocabulary: _kernels.Vocabulary) -> AttributeInput:
        """The same input with other attributes."""
        return AttributeInput(vocabulary)

    def read(self, X: Sequence[Any] | Items, grow: bool) -> Rows:
        """Read a batch of sequences; arrays among the attributes are an error."""
        rows, vectors = self.read_with_vectors(X, grow)
        vectors.refuse()
        return rows

    def read_with_vectors(self, X: Sequence[Any] | Items, grow: bool) -> tuple[Rows, Vectors]:
        """Read a batch of sequences, and the arrays that stand among the attributes."""
        if isinstance(X, Items):
            fields, lengths = np.ascontiguousarray(X.fields).reshape(-1), X.lengths
            ids, values, offsets = self.vocabulary.read_fields(
                X.text, fields, X.values, X.offsets, grow
            )
            return Rows(lengths, Occurrences(offsets, ids, values)), Vectors(lengths, [])
        ids, values, offsets, lengths, blocks = self.vocabulary.read(X, grow)
        return Rows(lengths, Occurrences(offsets, ids, values)), Vectors(lengths, blocks)

    @classmethod
    def from_arrays(
        cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> AttributeInput:
        """What a model file holds, checked."""
        return cls(cls.vocabulary_from(arrays))

    def __getstate__(self) -> tuple[NDArray[Any], NDArray[Any]]:
        return self.vocabulary.arrays()

    def __setstate__(self, state: tuple[NDArray[Any], NDArray[Any]]) -> None:
        self.vocabulary = _kernels.Vocabulary.from_arrays(*state)


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
        n_outputs: int,
        offsets: Ints,
        outputs: NDArray[Any],
        counts: Ints,
        scale: Floats | None = None,  # what each attribute's value is multiplied by
    ) -> None:
        self.n_outputs, self._unit = n_outputs, unit_of(n_outputs)
        self._pair_offsets, self._pair_outputs, self._counts = offsets, outputs, counts
        self._n_pairs = n_pairs = np.diff(offsets)
        is_wide = n_pairs >= max(3, n_outputs // 8)
        wide = np.flatnonzero(is_wide)
        units = outputs[offsets[wide + 1] - 1].astype(np.int64) // self._unit + 1
        order = np.lexsort((-counts[wide], -units))
        self._wide, units = wide[order], units[order]
        self._wide_starts = offsets_of(units)
        if self._wide_starts[-1] >= 2**27 or offsets[-1] >= 2**32:
            raise ValueError("too many weights: raise min_freq, or use pairs seen in training only")
        self._wide_work = np.cumsum(counts[self._wide] * (units + 2))
        narrow = np.flatnonzero(~is_wide & (n_pairs > 0))
        segments = [narrow[k::N_SEGMENTS] for k in range(N_SEGMENTS)]
        self._narrow = np.concatenate(segments).astype(np.int32)
        self._segment_limits = offsets_of([int(n_pairs[part].sum()) for part in segments])
        self._n_wide = int(n_pairs[wide].sum())
        self._n_narrow = int(self._segment_limits[-1])
        self.n_weights = self._n_wide + self._n_narrow
        # All pairs of all attributes: a matrix, which needs no index.
        full = len(wide) > 0 and bool((n_pairs[wide] == n_outputs).all())
        self._wide_cells = None if full else self._cells_of_wide()
        self._wide_scale: Floats | None = None  # all are 1
        self._narrow_scale: Floats | None = None
        if scale is not None:
            of_row = scale[self._wide]
            self._wide_scale = of_row[:, None] if full else np.repeat(of_row, n_pairs[self._wide])
            self._narrow_scale = np.repeat(scale[self._narrow], n_pairs[self._narrow])

    @classmethod
    def of_pairs(cls, pairs: Ints, n_outputs: int, counts: Ints) -> AttributeFeatures:
        """Weights for these pairs, each attribute · n_outputs + output, in rising order."""
        attribute, output = np.divmod(pairs, n_outputs)
        offsets = offsets_of(np.bincount(attribute, minlength=len(counts)))
        return cls(n_outputs, offsets, output.astype(np.int32), counts)

    @classmethod
    def of_every_pair(cls, n_outputs: int, counts: Ints) -> AttributeFeatures:
        """A weight for every attribute, whether it occurs or not, and every output."""
        offsets = np.arange(len(counts) + 1, dtype=np.int64) * n_outputs
        outputs = np.tile(np.arange(n_outputs, dtype=np.int32), len(counts))
        return cls(n_outputs, offsets, outputs, counts)

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

    @cached_property
    def _places(self) -> Counts:
        """What the compiler of rows needs of an attribute, side by side."""
        starts = self._wide_starts
        places = np.zeros((len(self._n_pairs), 4), dtype=np.uint32)
        places[self._wide, 0] = starts[:-1] << 5 | np.diff(starts)
        places[self._wide, 1] = np.arange(len(self._wide))
        places[self._narrow, 1] = offsets_of(self._n_pairs[self._narrow])[:-1]
        places[:, 2], places[:, 3] = self._pair_offsets[:-1], self._n_pairs
        return places.ravel()

    def compile(self, rows: Rows, first: int, last: int) -> AttributeRows:
        """Rows first..last as `map` and `adjoint` take them."""
        if (last - first) * self.n_outputs >= 2**32:
            raise ValueError(
                f"a sequence of {last - first} rows with {self.n_outputs} outputs each is too "
                "large; split it"
            )
        data: Occurrences = rows.data
        begin, end = data.offsets[first], data.offsets[last]
        offsets, ids = data.offsets[first : last + 1] - begin, data.ids[begin:end]
        values = None if data.values is None else data.values[begin:end]
        parts = _kernels.attribute_rows(self.kernel_layout, offsets, ids, values)
        compiled = AttributeRows(last - first, *parts)
        if values is not None:
            return compiled
        return replace(compiled, wide_values=None, column_values=None, narrow_values=None)

    def glimpse(self, rows: Rows, first: int, last: int) -> Occurrences:
        """Rows first..last for one `map`."""
        data: Occurrences = rows.data
        return Occurrences(data.offsets[first : last + 1], data.ids, data.values)

    def expand(
        self, weights: Floats, memory: WideAndNarrow | None = None, run: Runner = run_in_turn
    ) -> WideAndNarrow:
        """The weights as `map` takes them."""
        wide, narrow = weights[: self._n_wide], weights[self._n_wide :]
        rows = self._new_rows() if memory is None else memory[0]
        if self._wide_cells is None:
            self._copy_rows(wide.reshape(-1, self.n_outputs), self._matrix(rows), run)
        else:
            rows[self._wide_cells] = wide if self._wide_scale is None else wide * self._wide_scale
        return rows, narrow if self._narrow_scale is None else narrow * self._narrow_scale

    def map(self, rows: AttributeRows | Occurrences, expanded: WideAndNarrow, out: Floats) -> None:
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
        self, memory: WideAndNarrow | None = None, run: Runner = run_in_turn
    ) -> WideAndNarrow:
        """An empty gradient."""
        if memory is None:
            return self._new_rows(), np.zeros(self._n_narrow)
        rows = memory[0]
        run(lambda part: rows[part].fill(0.0), blocks_of(len(rows)))
        return rows, np.zeros(self._n_narrow)

    def n_blocks(self, n_jobs: int) -> int:
        """Into how many tasks the adjoint splits."""
        return N_SEGMENTS + n_jobs

    def adjoint(
        self, rows: AttributeRows, parts: Floats, sums: WideAndNarrow, block: int, n_jobs: int
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

    def _wide_limits(self, n_jobs: int) -> Ints:
        """Codes that cut the wide rows where the work splits evenly."""
        total = self._wide_work[-1] if len(self._wide) else 0
        inner = np.searchsorted(self._wide_work, total * np.arange(1, n_jobs) / n_jobs)
        return self._wide_starts[np.concatenate([[0], inner, [len(self._wide)]])] << 5

    def collect(self, sums: WideAndNarrow, out: Floats, run: Runner = run_in_turn) -> None:
        """Write the finished gradient to out."""
        rows, narrow = sums
        wide = out[: self._n_wide]
        if self._wide_cells is None:
            self._copy_rows(self._matrix(rows), wide.reshape(-1, self.n_outputs), run)
        else:
            np.take(rows, self._wide_cells, out=wide)
            if self._wide_scale is not None:
                wide *= self._wide_scale
        scale = 1.0 if self._narrow_scale is None else self._narrow_scale
        np.multiply(narrow, scale, out=out[self._n_wide :])

    def _new_rows(self) -> Floats:
        return aligned_zeros(int(self._wide_starts[-1]) * self._unit)

    def _matrix(self, rows: Floats) -> Floats:
        """Expanded rows without their padding [n_wide, n_outputs]."""
        return rows.reshape(len(self._wide), -1)[:, : self.n_outputs]

    def _copy_rows(self, pairs: Floats, to: Floats, run: Runner) -> None:
        """Rows of wide weights times what their attributes are multiplied by."""
        scale = self._wide_scale

        def copy(part: slice) -> None:
            if scale is None:
                np.copyto(to[part], pairs[part])
            else:
                np.multiply(pairs[part], scale[part], out=to[part])

        run(copy, blocks_of(len(self._wide), BLOCK // self.n_outputs))

    def condensed(self, parts: Iterable[Rows]) -> Condensed | None:
        """Attributes that occur in the same rows as one."""
        first = _groups(parts, len(self._counts))
        if first is None:
            return None
        kept, group = np.unique(first, return_inverse=True)
        if len(kept) == len(self._counts):
            return None
        scale, sizes = np.sqrt(np.bincount(group)), self._n_pairs[kept]
        outputs, counts = self._pair_outputs[self._pairs_of(kept)], self._counts[kept]
        features = AttributeFeatures(self.n_outputs, offsets_of(sizes), outputs, counts, scale)
        order, mine = features._in_order(), self._in_order()
        divisor = np.repeat(scale[order], sizes[order])
        starts = np.empty(len(sizes), dtype=np.int64)
        starts[order] = offsets_of(sizes[order])[:-1]
        # For every weight, the one of its attribute's group.
        index = ranges(starts[group[mine]], self._n_pairs[mine]).astype(np.uint32)

        def condense(rows: Rows) -> Rows:
            data: Occurrences = rows.data
            is_first = first[data.ids] == data.ids
            offsets = np.concatenate([[0], np.cumsum(is_first)])[data.offsets]
            ids = group[data.ids[is_first]].astype(np.int32)
            return Rows(rows.lengths, Occurrences(offsets, ids, None))

        return Condensed(features, condense, lambda weights: (weights / divisor)[index])

    def _in_order(self) -> NDArray[np.integer]:
        """Attributes in the order of their weights."""
        return np.concatenate([self._wide, self._narrow])

    def keys(self) -> WeightKeys:
        """Column and output of every weight."""
        attributes = self._in_order()
        outputs = self._pair_outputs[self._pairs_of(attributes)]
        return WeightKeys(np.repeat(attributes, self._n_pairs[attributes]), outputs)

    def _pairs_of(self, attributes: NDArray[np.integer]) -> Ints:
        """Indices of the pairs of these attributes, one after another."""
        return ranges(self._pair_offsets[attributes], self._n_pairs[attributes])

    def _cells_of_wide(self) -> Ints:
        """Where each wide pair lies among the expanded rows."""
        row = np.repeat(self._wide_starts[:-1] * self._unit, self._n_pairs[self._wide])
        return row + self._pair_outputs[self._pairs_of(self._wide)]

    def entries(self, shards: Sequence[AttributeRows]) -> RowEntries:
        """All compiled rows as lists of entries."""
        if self._narrow_scale is not None:  # for batch training alone
            return super().entries(shards)
        cells = self._cells_of_wide() if self._wide_cells is None else self._wide_cells
        padded = int(self._wide_starts[-1]) * self._unit
        return RowEntries.of_attributes(shards, self.n_outputs, cells, padded, self._n_narrow)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Which pairs there are, and how often each attribute occurs."""
        offsets, outputs = self._pair_offsets, self._pair_outputs
        return {"offsets": offsets, "outputs": outputs, "counts": self._counts}

    @classmethod
    def from_arrays(
        cls, n_columns: int, n_outputs: int, arrays: Mapping[str, NDArray[Any]]
    ) -> AttributeFeatures:
        """What a model file holds, checked."""
        offsets, outputs, counts = arrays["offsets"], arrays["outputs"], arrays["counts"]
        _check_dtypes(arrays, offsets=np.int64, outputs=np.int32, counts=np.int64)
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
        return cls(n_outputs, offsets, outputs, counts)


def _groups(parts: Iterable[Rows], n: int) -> NDArray[np.int32] | None:
    """For each of n attributes, the first attribute that occurs in the same rows of all parts; None
    if that cannot be determined.
    """
    group: Ints | None = None  # numbers that are equal where all parts so far agree
    first = np.zeros(0, dtype=np.int32)
    for rows in parts:
        data: Occurrences = rows.data
        if data.values is not None:
            return None
        own = _kernels.attribute_groups(data.offsets, data.ids, n)
        if len(own) == 0:  # an attribute twice in a row
            return None
        if group is None:
            group, first = own.astype(np.int64), own
            continue
        used = np.unique(data.ids)  # the others stay together
        _, place = np.unique(group[used] * n + own[used], return_inverse=True)
        group[used] = group.max() + 1 + place
        first = np.zeros(0, dtype=np.int32)
    if group is None or n == 0:
        return None
    if len(first):
        return first
    _, where, place = np.unique(group, return_index=True, return_inverse=True)
    return where[place].astype(np.int32)


def _check_dtypes(arrays: Mapping[str, NDArray[Any]], **expected: type[np.generic]) -> None:
    """Refuse arrays of other types than these."""
    for name, dtype in expected.items():
        if arrays[name].dtype != dtype:
            raise ValueError(f"{name} must be {dtype.__name__}, got {arrays[name].dtype}")
