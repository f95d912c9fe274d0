"""A batch of examples: for each template the cliques it finds, and the rows observed of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from chordal.structures import Chain, FactorGraph, Matching, Structure, offsets_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: How many labels variables have: all the same number, or those of each type theirs.
LabelCounts = int | tuple[int, ...]

SHARD_CELLS = 180_000  # scores of a shard: large enough to hide Python, small enough for the cache


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """Concatenated ranges of integers with these starts and lengths.

    >>> ranges(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    numbers = np.repeat(starts - offsets_of(lengths)[:-1], lengths)
    numbers += np.arange(len(numbers))
    return numbers


def joined(parts: Iterable[Any], dtype: DTypeLike = np.int64) -> NDArray[Any]:
    """Arrays of one dimension, one after another, also when there is none."""
    return np.concatenate([np.zeros(0, dtype=dtype), *parts])


@dataclass(frozen=True)
class Occurrences:
    """Which attributes each row has; `values` is None when every value is 1."""

    offsets: Ints  # [n_rows + 1]
    ids: NDArray[np.int32]
    values: Floats | None

    @property
    def size(self) -> int:
        """How many attributes all rows have."""
        return len(self.ids)

    def __getitem__(self, rows: Ints) -> Occurrences:
        """These rows, in this order; a row may occur more than once."""
        counts = np.diff(self.offsets)[rows]
        cells = ranges(self.offsets[rows], counts)
        values = None if self.values is None else self.values[cells]
        return Occurrences(offsets_of(counts), self.ids[cells], values)

    def renumbered(self, numbers: Ints) -> Occurrences:
        """The same attributes by other numbers; those with −1 are dropped."""
        ids = numbers.astype(np.int32)[self.ids]
        kept = ids >= 0
        if kept.all():
            return Occurrences(self.offsets, ids, self.values)
        offsets = np.concatenate([[0], np.cumsum(kept)])[self.offsets]
        return Occurrences(offsets, ids[kept], None if self.values is None else self.values[kept])


@dataclass(frozen=True)
class Rows:
    """What was read from a batch: a row of observations per position, sequence by sequence."""

    lengths: Ints  # rows of each sequence
    data: Any  # whatever the input's features understand; an array of rows gives those rows

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return int(self.offsets[-1])

    @cached_property
    def offsets(self) -> Ints:
        """Where the rows of each sequence begin, and where the last one's end."""
        return offsets_of(self.lengths)

    def reordered(self, order: Ints) -> Rows:
        """The sequences in this order; their data are copied."""
        lengths = self.lengths[order]
        return Rows(lengths, self.data[ranges(self.offsets[order], lengths)])


@dataclass(frozen=True)
class Vectors:
    """The arrays among the attributes of a batch of tokens.

    lengths : int64 [n_sequences], tokens of each
    blocks : of each name, the tokens that have it and their numbers [n, width]
    """

    lengths: Ints
    blocks: Sequence[tuple[str, Ints, NDArray[Any]]]

    def place(self, row: int) -> str:
        """A token as users count it."""
        offsets = offsets_of(self.lengths)
        sequence = int(np.searchsorted(offsets, row, side="right")) - 1
        return f"X[{sequence}][{row - offsets[sequence]}]"

    def refuse(self, why: str = "and only ChainCRF and GraphCRF (in nodes) read arrays") -> None:
        """Raise a TypeError that names the first array, if there is one."""
        if self.blocks:
            name, rows, _ = self.blocks[0]
            raise TypeError(f"{self.place(rows[0])} has the array {name!r}, {why}")


@dataclass(frozen=True)
class Cliques:
    """The cliques that a template finds in a batch, example after example.

    scopes : int64 [n, order], variables by their numbers within the example; or the name of a
        pattern, which needs no list ("each", "steps", "first", "last")
    counts : int64 [n_examples]
    rows : a row of observations for each, or None
    order : int, variables per clique
    """

    scopes: Ints | str
    counts: Ints
    rows: Rows | None
    order: int

    @staticmethod
    def of_pattern(pattern: str, order: int, sizes: Ints, rows: Rows | None) -> Cliques:
        """The cliques of a pattern in examples of these sizes."""
        counts = sizes
        if pattern != "each":
            counts = np.maximum(sizes - 1, 0) if pattern == "steps" else np.minimum(sizes, 1)
        return Cliques(pattern, counts, rows, order)

    @property
    def pattern(self) -> str | None:
        """The name of the pattern, if they are one."""
        return self.scopes if isinstance(self.scopes, str) else None

    @cached_property
    def offsets(self) -> Ints:
        """Where the cliques of each example begin, and where the last one's end."""
        return offsets_of(self.counts)

    def listed(self, sizes: Ints, begin: int = 0, end: int | None = None) -> Ints:
        """The cliques of some examples, by numbers of variables from the first of them on."""
        end = len(sizes) if end is None else end
        variables, counts = offsets_of(sizes[begin:end]), self.counts[begin:end]
        if isinstance(self.scopes, str):
            first = variables[1:] - 1 if self.scopes == "last" else variables[:-1]
            return ranges(first, counts)[:, None] + np.arange(self.order)
        own = self.scopes[self.offsets[begin] : self.offsets[end]]
        return own + np.repeat(variables[:-1], counts)[:, None]

    def spelled(self, sizes: Ints) -> Cliques:
        """The same as a list, by numbers of variables within the example."""
        if not isinstance(self.scopes, str):
            return self
        first = np.repeat(offsets_of(sizes)[:-1], self.counts)
        return replace(self, scopes=self.listed(sizes) - first[:, None])

    def recognised(self, sizes: Ints) -> Cliques:
        """The same by the name of a pattern, if they are one."""
        if self.order > 2:
            return self
        pattern = "each" if self.order == 1 else "steps"
        plain = Cliques.of_pattern(pattern, self.order, sizes, self.rows)
        same = np.array_equal(plain.counts, self.counts)
        same = same and np.array_equal(plain.listed(sizes), self.listed(sizes))
        return plain if same else self

    def same_as(self, other: Cliques) -> bool:
        """Whether these are the cliques of another template, too."""
        if self.pattern or other.pattern:
            return self.pattern == other.pattern
        same = np.array_equal(self.counts, other.counts)
        return same and np.array_equal(self.scopes, other.scopes)

    def reordered(self, order: Ints) -> Cliques:
        """Those of the examples in this order."""
        rows = None if self.rows is None else self.rows.reordered(order)
        scopes = self.scopes
        if not isinstance(scopes, str):
            scopes = scopes[ranges(self.offsets[order], self.counts[order])]
        return Cliques(scopes, self.counts[order], rows, self.order)


@dataclass(frozen=True)
class Batch:
    """Examples with the cliques of all templates.

    sizes : int64 [n_examples], variables of each
    cliques : list of Cliques, one per template
    label_counts : int64 [n_variables] where variables differ in it, else None
    exclusive : bool
        No two variables of an example have the same label, the last one apart: a matching.
    kinds : int64 [n_variables] where variables have types, the number of each one's, else None
    grouping : `groups`, where they are those of more examples than these
    """

    sizes: Ints
    cliques: Sequence[Cliques]
    label_counts: Ints | None = None
    exclusive: bool = False
    kinds: Ints | None = None
    grouping: list[list[int]] | None = None

    @cached_property
    def offsets(self) -> Ints:
        """Where the variables of each example begin, and where the last one's end."""
        return offsets_of(self.sizes)

    @cached_property
    def groups(self) -> list[list[int]]:
        """Templates of more than one variable, those with the same cliques together."""
        if self.grouping is not None:
            return self.grouping
        groups: list[list[int]] = []
        for k, own in enumerate(self.cliques):
            if own.order > 1:
                same = [group for group in groups if self.cliques[group[0]].same_as(own)]
                if same:
                    same[0].append(k)
                else:
                    groups.append([k])
        return groups

    @cached_property
    def is_chain(self) -> bool:
        """Whether the examples are chains: every variable linked to the next alone."""
        if self.exclusive or self.label_counts is not None or self.kinds is not None:
            return False
        if not self.groups:
            return bool((self.sizes <= 1).all())
        return len(self.groups) == 1 and self.cliques[self.groups[0][0]].pattern == "steps"

    def structure(
        self, begin: int, end: int, n_labels: LabelCounts
    ) -> tuple[Structure, list[Ints] | None]:
        """What depends on what in some examples; and the places of each group's cliques in it,
        or None where there is one group, whose cliques stand in their own order.
        """
        sizes = self.sizes[begin:end]
        if self.is_chain:
            assert isinstance(n_labels, int)
            return Chain(sizes, n_labels), None
        if self.exclusive and self.label_counts is not None:
            first = self.offsets[begin:end]
            filled = np.zeros(len(sizes), dtype=np.int64)
            filled[sizes > 0] = self.label_counts[first[sizes > 0]] - 1
            return Matching(sizes, filled), None
        members = [self.cliques[group[0]] for group in self.groups]
        scopes = [own.listed(self.sizes, begin, end) for own in members]
        numbers = np.arange(len(sizes))
        example = joined(np.repeat(numbers, own.counts[begin:end]) for own in members)
        order = np.argsort(example, kind="stable")
        lengths = joined(np.full(len(own), own.shape[1]) for own in scopes)
        at = ranges(offsets_of(lengths)[order], lengths[order])
        flat = joined(own.ravel() for own in scopes)[at]
        counts = np.bincount(example, minlength=len(sizes))
        of_each: int | tuple[int, ...] | Ints = n_labels
        if self.kinds is not None:
            of_each = np.array(n_labels)[self.kinds[self.offsets[begin] : self.offsets[end]]]
        structure = FactorGraph.from_arrays(sizes, flat, lengths[order], counts, of_each)
        if len(members) == 1:
            return structure, None
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return structure, np.split(place, np.cumsum([len(s) for s in scopes])[:-1])

    def reordered(self, order: Ints) -> Batch:
        """The examples in this order."""
        counts = self.label_counts
        counts = None if counts is None else counts[self.positions(order)]
        kinds = None if self.kinds is None else self.kinds[self.positions(order)]
        cliques = [own.reordered(order) for own in self.cliques]
        return Batch(self.sizes[order], cliques, counts, self.exclusive, kinds, self.grouping)

    def positions(self, order: Ints) -> Ints:
        """The variables of these examples, one example after another."""
        return ranges(self.offsets[order], self.sizes[order])

    def kept(self, variables: NDArray[np.bool_]) -> Batch:
        """The subgraph of these variables (a mask): cliques with others are left out."""
        example = np.repeat(np.arange(len(self.sizes)), self.sizes)
        sizes = np.bincount(example[variables], minlength=len(self.sizes))
        number = np.cumsum(variables) - 1  # of the batch, then within the example
        number -= np.repeat(offsets_of(sizes)[:-1], self.sizes)
        cliques = []
        for own in self.cliques:
            scopes = own.listed(self.sizes)
            inside = variables[scopes].all(axis=1)
            of_clique = np.repeat(np.arange(len(self.sizes)), own.counts)
            counts = np.bincount(of_clique[inside], minlength=len(self.sizes))
            rows = own.rows and Rows(counts, own.rows.data[np.flatnonzero(inside)])
            left = Cliques(number[scopes[inside]], counts, rows, own.order)
            cliques.append(left.recognised(sizes))
        kinds = None if self.kinds is None else self.kinds[variables]
        return Batch(sizes, cliques, kinds=kinds)

    def with_rows(self, rows: Sequence[Rows | None]) -> Batch:
        """The same cliques with other observations."""
        cliques = [replace(own, rows=new) for own, new in zip(self.cliques, rows, strict=True)]
        return replace(self, cliques=cliques)

    def work(self, n_labels: LabelCounts) -> tuple[Ints, int]:
        """The work in each example, in units, and how many scores one unit has."""
        n_labels = n_labels if isinstance(n_labels, int) else max(n_labels)
        if self.is_chain:
            untied = any(self.cliques[k].rows is not None for g in self.groups for k in g)
            return self.sizes, n_labels ** (2 if untied else 1)
        if self.label_counts is not None:
            ends = offsets_of(self.label_counts)
            return np.diff(ends[self.offsets]), 1
        cells = self.sizes * n_labels
        for own in self.cliques:
            if own.order > 1:
                cells = cells + own.counts * n_labels**own.order
        return cells, 1

    def limits(self, n_labels: LabelCounts, training: bool = False) -> list[tuple[int, int]]:
        """Runs (begin, end) of examples that make a shard each."""
        units, cells = self.work(n_labels)
        # Inference on graphs takes long beside Python's part, so that shards may be small.
        wanted = min(8, int(units.sum()) // 2000) if training and not self.is_chain else 1
        return shard_limits(units, cells, wanted)

    def minibatches(
        self, n_labels: LabelCounts, size: int, order: Ints
    ) -> tuple[list[tuple[int, int]], list[int]]:
        """Limits of shards of the examples in this order that end where mini-batches of `size`
        do, and where each mini-batch begins. One of some size is cut in four: threads have
        something to share.
        """
        n = len(order)
        return self.within(n_labels, [(a, min(a + size, n)) for a in range(0, n, size)], order, 4)

    def within(
        self, n_labels: LabelCounts, runs: Sequence[tuple[int, int]], order: Ints, most: int = 1
    ) -> tuple[list[tuple[int, int]], list[int]]:
        """Limits of shards of the examples in this order that end where these runs do, and where
        each run begins. A run of some size is cut into `most`, or into more if it is large.
        """
        units, cells = self.work(n_labels)
        units = units[order]
        grain = 20_000 if self.is_chain else 2_000  # scores
        limits, cuts = [], [0]
        for first, last in runs:
            own = units[first:last]
            wanted = min(most, int(own.sum()) * cells // grain)
            limits += [(first + a, first + b) for a, b in shard_limits(own, cells, wanted)]
            cuts.append(len(limits))
        return limits, cuts


def shard_limits(
    lengths: NDArray[np.int64], cells_per_row: int, at_least: int = 1
) -> list[tuple[int, int]]:
    """Cut sequences into runs (begin, end) of about SHARD_CELLS cells, or fewer.

    Depends on the data only. Many shards come in fours, so that threads have equal work; there
    are `at_least` so many if there are as many sequences of equal length.

    >>> shard_limits(np.array([3, 3, 3]), 60_000)
    [(0, 1), (1, 2), (2, 3)]
    """
    if len(lengths) == 0:
        return []
    ends = np.cumsum(lengths)
    rows = max(1, min(SHARD_CELLS // cells_per_row, -(-int(ends[-1]) // max(1, at_least))))
    if ends[-1] <= rows:
        return [(0, len(lengths))]
    count = -(-int(ends[-1]) // rows)
    if count > 4:
        rows = max(1, -(-int(ends[-1]) // ((count + 2) // 4 * 4)))
    cuts = np.searchsorted(ends, np.arange(rows, ends[-1], rows), side="left") + 1
    limits = np.unique(np.concatenate([[0], cuts, [len(lengths)]]))
    return list(pairwise(limits.tolist()))
