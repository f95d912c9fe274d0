"""Concatenate batches, and summarise them without their rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal.features.batch import Batch, Cliques, Ints, Occurrences, Rows, joined
from chordal.features.shared import SharedRows
from chordal.structures import offsets_of
from chordal.targets import PartialLabels, SoftLabels, Target


def joined_batches(batches: Sequence[Batch]) -> Batch:
    """Concatenate batches with the same templates and forms of cliques."""
    first = batches[0]
    if len(batches) == 1:
        return first
    counts = [own.label_counts for own in batches if own.label_counts is not None]
    kinds = [own.kinds for own in batches if own.kinds is not None]
    templates = zip(*(own.cliques for own in batches), strict=True)
    return Batch(
        joined(own.sizes for own in batches),
        [_joined_cliques(own) for own in templates],
        joined(counts) if first.label_counts is not None else None,
        first.exclusive,
        joined(kinds) if first.kinds is not None else None,
        first.grouping,
    )


def _joined_cliques(parts: Sequence[Cliques]) -> Cliques:
    scopes = parts[0].scopes
    if not isinstance(scopes, str):
        scopes = np.concatenate([own.scopes for own in parts])
    rows = None
    if parts[0].rows is not None:
        lengths = joined(own.rows.lengths for own in parts if own.rows is not None)
        rows = Rows(lengths, joined_rows([own.rows.data for own in parts if own.rows is not None]))
    return Cliques(scopes, joined(own.counts for own in parts), rows, parts[0].order)


def joined_rows(parts: Sequence[Any]) -> Any:
    """Rows of one kind, one after another."""
    first = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if isinstance(first, SharedRows):
        compact = [_compact(own) for own in parts]
        shift = offsets_of([_n_rows(own.data) for own in compact])
        row = joined(own.row + at for own, at in zip(compact, shift, strict=False))
        own = joined(part.own for part in compact)
        return SharedRows(joined_rows([part.data for part in compact]), row, own)
    counts = joined(np.diff(own.offsets) for own in parts)
    values = None
    if any(own.values is not None for own in parts):
        ones = (np.ones(len(own.ids)) if own.values is None else own.values for own in parts)
        values = joined(ones, np.float64)
    return Occurrences(offsets_of(counts), joined((own.ids for own in parts), np.int32), values)


def _compact(rows: SharedRows) -> SharedRows:
    """Drop the rows that no variable uses."""
    used, row = np.unique(rows.row, return_inverse=True)
    return SharedRows(rows.data[used], row.astype(np.int64), rows.own)


def _n_rows(data: Any) -> int:
    return len(data) if isinstance(data, np.ndarray) else len(data.offsets) - 1


def joined_targets(parts: Sequence[Target]) -> Target:
    """Concatenate targets of one kind."""
    if len(parts) == 1:
        return parts[0]
    hard = [own for own in parts if isinstance(own, np.ndarray)]
    soft = [own for own in parts if isinstance(own, SoftLabels)]
    sets = [own for own in parts if isinstance(own, PartialLabels)]
    if hard:
        return np.concatenate(hard)
    counts = joined(np.diff(own.state_offsets) for own in (*soft, *sets))
    if soft:
        return SoftLabels(joined((own.probability for own in soft), np.float64), counts)
    return PartialLabels(joined((own.allowed for own in sets), bool), counts)


class Head(NamedTuple):
    """A summary of a batch without its rows and cliques."""

    sizes: Ints
    counts: list[Ints]  # cliques of each template, by example
    patterns: list[str | None]
    orders: list[int]
    observed: list[bool]  # templates with rows
    same: NDArray[np.bool_]  # templates whose cliques are the same
    label_counts: Ints | None
    exclusive: bool
    typed: bool
    size: int  # numbers in all rows


def head_of(batch: Batch) -> Head:
    """The summary of a batch for `outlined`."""
    own = batch.cliques
    same = np.zeros((len(own), len(own)), dtype=bool)
    for a, one in enumerate(own):
        for b, other in enumerate(own[:a]):
            same[a, b] = same[b, a] = one.order == other.order > 1 and one.same_as(other)
    return Head(
        np.array(batch.sizes),
        [np.array(cliques.counts) for cliques in own],
        [cliques.pattern for cliques in own],
        [cliques.order for cliques in own],
        [cliques.rows is not None for cliques in own],
        same,
        None if batch.label_counts is None else np.array(batch.label_counts),
        batch.exclusive,
        batch.kinds is not None,
        size_of(batch),
    )


def size_of(batch: Batch) -> int:
    """How many numbers the rows of a batch hold."""
    return sum(own.rows.data.size for own in batch.cliques if own.rows is not None)


def outlined(heads: Sequence[Head]) -> Batch:
    """All examples as one batch that has no rows and no lists of cliques.

    It determines the shards, and whether they are chains.
    """
    first, nothing = heads[0], np.zeros(0, dtype=np.int64)
    sizes = joined(own.sizes for own in heads)
    same = np.logical_and.reduce([own.same for own in heads])
    groups: list[list[int]] = []
    cliques = []
    for k, order in enumerate(first.orders):
        pattern = first.patterns[k]
        if any(own.patterns[k] != pattern for own in heads):
            pattern = None
        scopes: Ints | str = pattern or np.zeros((0, order), dtype=np.int64)
        rows = Rows(nothing, None) if any(own.observed[k] for own in heads) else None
        if pattern is not None:
            cliques.append(Cliques.of_pattern(pattern, order, sizes, rows))
        else:
            cliques.append(Cliques(scopes, joined(own.counts[k] for own in heads), rows, order))
        if order > 1:
            mine = next((group for group in groups if same[group[0], k]), None)
            if mine is None:
                groups.append([k])
            else:
                mine.append(k)
    labels = [own.label_counts for own in heads if own.label_counts is not None]
    counts = joined(labels) if first.label_counts is not None else None
    kinds = nothing if first.typed else None
    return Batch(sizes, cliques, counts, first.exclusive, kinds, groups)


def fitted_to(batch: Batch, outline: Batch) -> Batch:
    """A part in the form that the whole has: cliques by pattern if all parts have that pattern."""
    cliques = [
        own if whole.pattern is not None else own.spelled(batch.sizes)
        for own, whole in zip(batch.cliques, outline.cliques, strict=True)
    ]
    return replace(batch, cliques=cliques, grouping=outline.groups)
