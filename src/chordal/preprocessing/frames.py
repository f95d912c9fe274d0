"""Data frames with a row per token as sequences, and predictions as a column of the frame.

Supports pandas, Polars and all other frames that narwhals supports: `pip install
"chordal[frames]"`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from chordal._optional import needed

Groups = list[list[int]]


def sequences_from_frame(
    frame: object,
    group: str | Sequence[str],
    label: str | None = None,
    *,
    order: str | None = None,
    features: Sequence[str] | None = None,
) -> tuple[list[list[dict[str, Any]]], list[list[Any]] | None]:
    """The rows of a data frame as sequences of dicts, and the labels.

    Rows with the same value in `group` form one sequence, wherever they are in the frame. Sequences
    are sorted by their first rows.

    Parameters
    ----------
    frame : data frame of pandas, Polars, PyArrow, …
        A row for each token.
    group : str or list of str
        The column or columns that identify the sequence of a row.
    label : str, optional
        The column of labels.
    order : str, optional
        The column that sorts the rows of a sequence; by default they stay in the frame's order.
    features : list of str, optional
        The columns to read; by default all others. Text stays text, and numbers are numeric
        features (cast ids to text). Lists or arrays of numbers are vectors. A missing value
        gives no entry.

    Returns
    -------
    X : list of lists of dicts
    y : list of lists of labels, or None without `label`

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"sentence": [1, 1, 2], "word": ["in", "Rome", "Yes"],
    ...                       "length": [2, None, 3], "tag": ["O", "B", "O"]})
    >>> X, y = sequences_from_frame(frame, "sentence", "tag")
    >>> X
    [[{'word': 'in', 'length': 2.0}, {'word': 'Rome'}], [{'word': 'Yes', 'length': 3.0}]]
    >>> y
    [['O', 'B'], ['O']]
    >>> frame_column(frame, [["O", "B"], ["O"]], "sentence")
    ['O', 'B', 'O']
    """
    table = _opened(frame)
    keys = [group] if isinstance(group, str) else list(group)
    used = [*keys, *(name for name in (label, order) if name is not None)]
    names = [c for c in table.columns if c not in used] if features is None else list(features)
    groups = _groups(table, keys, order)
    columns = {name: _values(table, name) for name in names}
    X = [
        [{k: own[row] for k, own in columns.items() if own[row] is not None} for row in rows]
        for rows in groups
    ]
    if label is None:
        return X, None
    labels = _complete(table, label, "drop these rows, or give them a label")
    return X, [[labels[row] for row in rows] for rows in groups]


def frame_column(
    frame: object,
    sequences: Iterable[Iterable[Any]],
    group: str | Sequence[str],
    *,
    order: str | None = None,
) -> list[Any]:
    """Values per token, such as predictions, in the order of the frame's rows.

    Parameters
    ----------
    frame, group, order
        As in `sequences_from_frame`.
    sequences : list of lists
        A value for every token, in the order of `sequences_from_frame`.

    Returns
    -------
    list
        For pandas ``frame["predicted"] = column``, for Polars
        ``frame.with_columns(pl.Series("predicted", column))``.
    """
    table = _opened(frame)
    groups = _groups(table, [group] if isinstance(group, str) else list(group), order)
    found = [list(own) for own in sequences]
    if [len(own) for own in found] != [len(rows) for rows in groups]:
        raise ValueError(
            f"sequences must match the frame, {len(groups)} sequences with {len(table)} rows in "
            "all, "
            f"got {len(found)} with {sum(map(len, found))} values"
        )
    out: list[Any] = [None] * len(table)
    for rows, own in zip(groups, found, strict=True):
        for row, value in zip(rows, own, strict=True):
            out[row] = value
    return out


def _opened(frame: object) -> Any:
    """The frame through narwhals."""
    with needed("narwhals", "reading data frames"):
        import narwhals as nw

    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError as error:
        hint = "; collect it first" if hasattr(frame, "collect") else ""
        raise TypeError(
            f"frame must be a data frame such as those of pandas and Polars, got "
            f"{type(frame).__name__}{hint}"
        ) from error


def _series(table: Any, name: str) -> Any:
    if name not in table.columns:
        raise ValueError(f"the frame has no column {name!r}; it has {', '.join(table.columns)}")
    return table[name]


def _complete(table: object, name: str, remedy: str) -> list[Any]:
    """The values of a column, none of which may be missing."""
    values = _series(table, name).to_list()
    missing = [row for row, value in enumerate(values) if _missing(value)]
    if missing:
        raise ValueError(
            f"column {name!r} has no value in {len(missing)} rows, the first is row {missing[0]}: "
            f"{remedy}"
        )
    return values


def _groups(table: object, keys: Sequence[str], order: str | None) -> Groups:
    """The rows of each sequence, in the order of first rows."""
    if not keys:
        raise ValueError("group must name a column")
    columns = [_complete(table, key, "every row needs its sequence") for key in keys]
    found: dict[tuple[Any, ...], list[int]] = {}
    for row, key in enumerate(zip(*columns, strict=True)):
        found.setdefault(key, []).append(row)
    if order is not None:
        places = _complete(table, order, "every row needs its place")
        for rows in found.values():
            rows.sort(key=places.__getitem__)
    return list(found.values())


def _values(table: object, name: str) -> list[Any]:
    """What dicts hold of a column: text, numbers, vectors, and None for what is missing."""
    values = _series(table, name).to_list()
    for row, value in enumerate(values):
        if isinstance(value, (str, bool)) or value is None:
            continue
        if isinstance(value, (list, tuple, np.ndarray)):
            values[row] = np.asarray(value)
        elif _missing(value):
            values[row] = None
        elif not isinstance(value, Real) and not hasattr(value, "__float__"):
            raise TypeError(
                f"column {name!r} holds {type(value).__name__} in row {row}; make it text, numbers "
                "or vectors, or leave it out by features"
            )
    return values


def _missing(value: object) -> bool:
    """Whether a value is None, NaN, NaT or pandas' NA, which are not equal to themselves."""
    if value is None:
        return True
    same = value == value
    return not isinstance(same, (bool, np.bool_)) or not bool(same)
