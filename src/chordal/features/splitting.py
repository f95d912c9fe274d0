"""One row by its entries: what each column scores, and the row without some columns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chordal.features.batch import Floats, Ints, Occurrences, Rows
from chordal.features.shared import SharedRows
from chordal.features.template_layout import TemplateLayout
from chordal.structures import offsets_of

BLOCK = 256  # entries that are scored at a time: dense rows of single entries are wide


@dataclass(frozen=True)
class Entries:
    """The columns of a row that are not zero, their values, and the scores that each one gives.

    columns : int64 [n]
    values : float64 [n]
    scores : float64 [n, n_cells], whose sum over entries is the score of the row
    """

    columns: Ints
    values: Floats
    scores: Floats


def entries_of(own: TemplateLayout, expanded: Any, rows: Rows, row: int) -> Entries:
    """What each entry of a row scores, by the map that scores whole rows: one entry is a row.

    `expanded` are the weights of the rows, as `Layout.expand` gives them.
    """
    columns, values = _listed(rows.data, row)
    scores = np.zeros((len(columns), own.tables.n_cells))
    for begin in range(0, len(columns), BLOCK) if own.rows is not None else ():
        at = slice(begin, begin + BLOCK)
        single = _single(rows.data, row, columns[at], values[at])
        n = len(columns[at])
        compiled = own.rows.glimpse(Rows(np.array([n]), single), 0, n)  # type: ignore[union-attr]
        part = np.empty(n * own.tables.n_cells)
        own.score(compiled, (expanded, None), part, None, False)
        scores[at] = part.reshape(n, -1)
    return _merged(columns, values, scores)


def _merged(columns: Ints, values: Floats, scores: Floats) -> Entries:
    """A column that a row names twice is one entry; in the order of their first appearance."""
    _, first, which = np.unique(columns, return_index=True, return_inverse=True)
    if len(first) == len(columns):
        return Entries(columns, values, scores)
    order = np.argsort(first)
    sums, total = np.zeros((len(first), scores.shape[1])), np.zeros(len(first))
    np.add.at(sums, which, scores)
    np.add.at(total, which, values)
    return Entries(columns[first[order]], total[order], sums[order])


def _listed(data: Any, row: int) -> tuple[Ints, Floats]:
    """Columns and values of the entries of a row."""
    if isinstance(data, SharedRows):
        return _listed(data.data, int(data.row[row]))
    if isinstance(data, Occurrences):
        at = slice(int(data.offsets[row]), int(data.offsets[row + 1]))
        ids = data.ids[at].astype(np.int64)
        return ids, np.ones(len(ids)) if data.values is None else data.values[at].copy()
    columns = np.flatnonzero(data[row])
    return columns, data[row, columns].astype(np.float64)


def _single(data: Any, row: int, columns: Ints, values: Floats) -> Any:
    """A row for each of these entries."""
    n = len(columns)
    if isinstance(data, SharedRows):
        inner = _single(data.data, int(data.row[row]), columns, values)
        return SharedRows(inner, np.arange(n), np.full(n, data.own[row]))
    if isinstance(data, Occurrences):
        given = None if data.values is None else values
        return Occurrences(np.arange(n + 1), columns.astype(np.int32), given)
    out = np.zeros((n, data.shape[1]), dtype=data.dtype)
    out[np.arange(n), columns] = values
    return out


def without_columns(rows: Rows, row: int, columns: Collection[int]) -> Rows:
    """The same rows, of which one has no entries in these columns.

    Where variables share a row, one of them sees it without the columns.
    """
    return replace(rows, data=_without(rows.data, row, columns))


def _without(data: Any, row: int, columns: Collection[int]) -> Any:
    gone = np.fromiter(columns, dtype=np.int64, count=len(columns))
    if isinstance(data, SharedRows):
        seen = int(data.row[row])
        n = len(data.data.offsets) - 1 if isinstance(data.data, Occurrences) else len(data.data)
        both = _without(data.data[np.append(np.arange(n), seen)], n, columns)
        own = data.row.copy()
        own[row] = n
        return SharedRows(both, own, data.own)
    if isinstance(data, Occurrences):
        keep = np.ones(len(data.ids), dtype=bool)
        at = slice(int(data.offsets[row]), int(data.offsets[row + 1]))
        keep[at] = ~np.isin(data.ids[at], gone)
        counts = np.diff(data.offsets)
        counts[row] = int(keep[at].sum())
        kept = slice(int(data.offsets[0]), int(data.offsets[-1]))
        values = None if data.values is None else data.values[kept][keep[kept]]
        return Occurrences(offsets_of(counts), data.ids[kept][keep[kept]], values)
    out = data.copy()
    out[row, gone] = 0.0
    return out
