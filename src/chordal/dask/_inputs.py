"""What users have on a cluster, as partitions: each a delayed pair of examples and labels."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from dask import delayed
from dask.bag import Bag, from_delayed
from dask.delayed import Delayed
from distributed import Future

from chordal.dask._crew import DaskCrew
from chordal.estimators import Given, PreparedPart, datasets_of, is_stored
from chordal.prepared import Dataset
from chordal.preprocessing import sequences_from_frame

if TYPE_CHECKING:
    import pandas as pd
    from dask.dataframe import DataFrame


def partitions(X: object, y: object = None, weight: object = None) -> list[Delayed]:
    """A delayed `Given` for every partition.

    Without y, the examples are pairs (x, y), or the partitions pairs (X, y).
    """
    if isinstance(X, Prepared):
        if y is not None or weight is not None:
            raise ValueError(
                "a prepared data set includes its labels and weights: do not pass y or "
                "sample_weight"
            )
        return [delayed(Given(own), pure=False) for own in X]
    examples = _delayed(X, "X")
    each = []
    for name, given in (("y", y), ("sample_weight", weight)):
        own = [None] * len(examples) if given is None else _delayed(given, name)
        if len(own) != len(examples):
            raise ValueError(
                f"X and {name} must have the same partitions, got {len(examples)} and {len(own)}"
            )
        each.append(own)
    join = delayed(_joined, pure=False)
    paired = y is None and isinstance(X, Bag)
    whole = y is None and not paired
    return [
        join(x, labels, numbers, paired, whole)
        for x, labels, numbers in zip(examples, *each, strict=True)
    ]


def inputs(X: object) -> list[Delayed]:
    """A delayed list (or table) of examples for every partition."""
    if isinstance(X, Prepared):
        return [delayed(PreparedPart.opened, pure=False)(own) for own in X]
    return [delayed(_listed, pure=False)(own) for own in _delayed(X, "X")]


def from_tokens(
    frame: DataFrame,
    group: str | Sequence[str],
    label: str | None = None,
    *,
    order: str | None = None,
    features: Sequence[str] | None = None,
) -> Bag:
    """The sequences of a Dask data frame with a row per token, as a bag of pairs (x, y).

    Rows with the same value in `group` are one sequence. Each sequence must be in one partition, as
    after ``frame.set_index(group)``. It is an error if a sequence continues in the next partition;
    partitions further apart are not compared, since that would read all before the first.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    group, label, order, features
        As in `chordal.preprocessing.sequences_from_frame`.

    Returns
    -------
    Bag
        Of pairs (x, y); without `label`, of x.
    """
    keys = [group] if isinstance(group, str) else group
    if not isinstance(keys, (list, tuple)) or not keys:
        raise TypeError(
            f"group must be the name of a column, or a list of names; got {group!r:.60}"
        )
    parts = _parts(frame, *keys, label, order, *(features or ()))
    tails = [None, *(delayed(_tail, pure=True)(part, group) for part in parts[:-1])]
    read = delayed(_sequences, pure=True)
    options = {"order": order, "features": features}
    return from_delayed(
        [
            read(part, tail, k, group, label, options)
            for k, (part, tail) in enumerate(zip(parts, tails, strict=True))
        ]
    )


def from_lists(frame: DataFrame, tokens: str, labels: str | None = None) -> Bag:
    """The sequences of a Dask data frame with a row per sequence, whose columns hold lists.

    Parameters
    ----------
    frame : dask.dataframe.DataFrame
    tokens, labels : str
        Columns with a list of tokens (each text, a list of attributes or a dict), and of labels.

    Returns
    -------
    Bag
        Of pairs (x, y); without `labels`, of x.
    """
    read = delayed(_of_lists, pure=True)
    return from_delayed([read(part, tokens, labels) for part in _parts(frame, tokens, labels)])


class Prepared(list[PreparedPart]):
    """The parts of prepared data sets."""

    @classmethod
    def of(cls, datasets: Sequence[Dataset]) -> Prepared:
        """Those of data sets that are open, by paths that workers can open too."""
        paths = tuple(os.path.abspath(data.path) for data in datasets)
        return cls(
            PreparedPart(paths, place, k)
            for place, data in enumerate(datasets)
            for k in range(data.n_parts)
        )


def found_by(crew: DaskCrew, X: object) -> object:
    """Parts for prepared data sets, or for their paths, which a worker opens; else X itself."""
    if not is_stored(X, None):
        return X
    named: list[Any] = list(X) if isinstance(X, (list, tuple)) else [X]
    if all(isinstance(own, Dataset) for own in named):
        return Prepared.of(named)
    paths = [own.path if isinstance(own, Dataset) else os.fspath(own) for own in named]
    return crew.take(crew.client.submit(_opened, paths, pure=False))


def _opened(paths: Sequence[str]) -> Prepared:
    return Prepared.of(datasets_of(paths) or [])


def is_parted(data: object) -> bool:
    """Whether data are a Dask collection, or a list of delayed values or futures."""
    if isinstance(data, (list, tuple)):
        return bool(data) and all(isinstance(own, (Delayed, Future)) for own in data)
    return hasattr(data, "to_delayed") and not isinstance(data, Delayed)  # it has all names


def _delayed(data: Any, name: str) -> list[Any]:
    """The partitions of a Dask collection, or of a list of delayed values or futures."""
    listed = isinstance(data, (list, tuple))
    if not is_parted(data) and not (listed and not data):
        raise TypeError(
            f"{name} must be a Dask bag, array or data frame, a prepared Dataset, or a list of "
            f"delayed values or futures, one for each partition; got {type(data).__name__}. Lists "
            "in memory are fitted by the estimator itself, or become a bag: "
            "dask.bag.from_sequence"
        )
    if listed:
        found = [own if isinstance(own, Delayed) else delayed(own) for own in data]
    else:
        blocks = np.asarray(data.to_delayed(), dtype=object)
        if blocks.ndim == 2 and blocks.shape[1] > 1:
            raise ValueError(
                f"{name} must have all columns in one chunk; rechunk it: {name}.rechunk({{1: -1}})"
            )
        found = list(blocks.ravel())
    if not found:
        raise ValueError(f"{name} has no partitions: give at least one")
    return found


def _joined(X: Any, y: object, weight: object, paired: bool, whole: bool) -> Given:
    """One partition of the given data, on a worker."""
    if whole:
        if isinstance(X, Given):
            return X
        if not isinstance(X, (tuple, list)) or len(X) not in (2, 3):
            size = f" of {len(X)}" if isinstance(X, (tuple, list)) else ""
            raise TypeError(
                f"without y, a partition must be a pair (X, y) of lists, got {type(X).__name__}"
                f"{size}"
            )
        return Given(*map(_listed, X))
    if not paired:
        return Given(_listed(X), _listed(y), None if weight is None else _listed(weight))
    pairs = list(X)
    wrong = next((k for k, own in enumerate(pairs) if not _is_pair(own)), None)
    if wrong is not None:
        raise TypeError(f"item {wrong} of the bag must be a pair (x, y), got {pairs[wrong]!r:.80}")
    return Given(
        [x for x, _ in pairs], [y for _, y in pairs], None if weight is None else _listed(weight)
    )


def _is_pair(own: object) -> bool:
    return isinstance(own, (tuple, list)) and len(own) == 2


def _listed(part: Any) -> Any:
    """A partition of a bag may be an iterator; arrays, frames and prepared lists stay."""
    if hasattr(part, "__len__") or not isinstance(part, Iterable):
        return part
    return list(part)


def _parts(frame: Any, *names: str | None) -> list[Any]:
    """The partitions of a Dask data frame that has these columns; one may be its index."""
    if not (hasattr(frame, "to_delayed") and hasattr(frame, "columns")):
        raise TypeError(
            f"frame must be a Dask data frame, got {type(frame).__name__}; "
            "dask.dataframe.from_pandas makes one"
        )
    known = [*frame.columns, *([] if frame.index.name is None else [frame.index.name])]
    for name in names:
        if name is not None and name not in known:
            raise ValueError(
                f"the frame has no column {name!r}; it has {', '.join(map(str, known))}"
            )
    parts: list[Any] = frame.to_delayed()
    return parts


def _tail(frame: pd.DataFrame, group: str | Sequence[str]) -> tuple[Any, ...] | None:
    """The sequence of the last row of a partition, if it has any."""
    table = frame.reset_index() if frame.index.name is not None else frame
    keys = [group] if isinstance(group, str) else list(group)
    return None if not len(table) else tuple(table[key].iloc[-1] for key in keys)


def _sequences(
    frame: pd.DataFrame,
    tail: tuple[Any, ...] | None,
    k: int,
    group: str | Sequence[str],
    label: str | None,
    options: dict[str, Any],
) -> list[Any]:
    table = frame.reset_index() if frame.index.name is not None else frame
    keys = [group] if isinstance(group, str) else list(group)
    if not len(table):
        return []
    if tail is not None and tuple(table[key].iloc[0] for key in keys) == tail:
        raise ValueError(
            f"sequence {', '.join(map(str, tail))} stands in partitions {k - 1} and "
            f"{k}; keep sequences whole, for example by frame.set_index({keys[0]!r})"
        )
    X, y = sequences_from_frame(table, group, label, **options)
    return X if y is None else list(zip(X, y, strict=True))


def _of_lists(frame: pd.DataFrame, tokens: str, labels: str | None) -> list[Any]:
    for name in (tokens, labels):
        if name is not None and any(isinstance(own, str) for own in frame[name]):
            raise TypeError(
                f"column {name!r} must hold lists, and holds text; Dask turns lists of a pandas "
                "frame into text: read them from Parquet, or set dask.config.set({'dataframe."
                "convert-string': False}) before"
            )
    X = [_plain(own) for own in frame[tokens]]
    return X if labels is None else list(zip(X, map(_plain, frame[labels]), strict=True))


def _plain(value: Any) -> Any:
    """Lists for arrays of objects, which Parquet's list columns are read as."""
    if isinstance(value, np.ndarray):
        return [_plain(own) for own in value.tolist()]
    return [_plain(own) for own in value] if isinstance(value, list) else value
