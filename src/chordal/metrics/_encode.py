"""Label sequences as numbers: every metric encodes its two arguments once, here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_sequences, is_sparse

Ints = NDArray[np.int64]


class Pair(NamedTuple):
    """True and predicted sequences, one after the other.

    labels : the distinct labels, by number
    true, pred : int64 [n_tokens]
    lengths : int64 [n_sequences]
    """

    labels: list[Any]
    true: Ints
    pred: Ints
    lengths: Ints

    @property
    def sequence(self) -> Ints:
        """The sequence of each token."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def per_sequence(self, flags: NDArray[Any]) -> Ints:
        """How many of the tokens of each sequence have the flag."""
        before = np.concatenate([[0], np.cumsum(flags)])
        ends = np.cumsum(self.lengths)
        return before[ends] - before[ends - self.lengths]


def encode_pair(y_true: Sequence[Any], y_pred: Sequence[Any]) -> Pair:
    """Both as numbers; an error names the first place that cannot be compared.

    >>> pair = encode_pair([["a", "b"], ["a"]], [["a", "a"], ["c"]])
    >>> pair.labels, pair.true, pair.pred, pair.lengths
    (['a', 'b', 'c'], array([0, 1, 0]), array([0, 0, 2]), array([2, 1]))
    """
    true, pred = _listed(y_true, "y_true"), _listed(y_pred, "y_pred")
    if len(true) != len(pred):
        raise ValueError(
            "y_true and y_pred must have the same number of sequences, "
            f"got {len(true)} and {len(pred)}"
        )
    lengths = np.fromiter(map(len, true), dtype=np.int64, count=len(true))
    others = np.fromiter(map(len, pred), dtype=np.int64, count=len(pred))
    if (lengths != others).any():
        i = int(np.argmax(lengths != others))
        raise ValueError(
            f"y_true[{i}] and y_pred[{i}] must have the same length, "
            f"got {lengths[i]} and {others[i]}"
        )
    if not lengths.any():
        raise ValueError("every sequence is empty: there is nothing to score")
    flat_true = list(chain.from_iterable(true))
    flat_pred = list(chain.from_iterable(pred))
    try:
        labels = list(dict.fromkeys(chain(flat_true, flat_pred)))
    except TypeError:
        raise _complaint((true, pred), _not_hashable) from None
    if any(map(_missing, labels)):
        raise _complaint((true, pred), _missing)
    number = {label: k for k, label in enumerate(labels)}
    return Pair(labels, _encode(flat_true, number), _encode(flat_pred, number), lengths)


def encode_tags(y_true: Sequence[Any], y_pred: Sequence[Any]) -> Pair:
    """The same for labels that must be strings."""
    pair = encode_pair(y_true, y_pred)
    if any(map(_not_string, pair.labels)):
        raise _complaint((_listed(y_true, "y_true"), _listed(y_pred, "y_pred")), _not_string)
    return pair


def sorted_labels(labels: Sequence[Any]) -> list[Any]:
    """Sorted labels; in order of appearance if they cannot be sorted."""
    try:
        return sorted(labels)
    except TypeError:
        return list(labels)


def _encode(flat: list[Any], number: dict[Any, int]) -> Ints:
    return np.fromiter(map(number.__getitem__, flat), dtype=np.int64, count=len(flat))


# Sets have no order, and an array without dimensions has no length.
_NOT_LISTS = (str, bytes, dict, set, frozenset, np.ndarray)


def _listed(y: Sequence[Any], name: str) -> list[Any]:
    lists = []
    for i, labels in enumerate(check_sequences(y, name)):
        if isinstance(labels, np.ndarray) and labels.ndim > 0:
            labels = labels.tolist()
        elif isinstance(labels, _NOT_LISTS) or is_sparse(labels) or not hasattr(labels, "__len__"):
            raise TypeError(f"{name}[{i}] must be a list of labels, got {type(labels).__name__}")
        lists.append(labels)
    return lists


def _not_hashable(label: object) -> str:
    try:
        hash(label)
    except TypeError:
        return "labels must be hashable (str, int, …)"
    return ""


def _missing(label: object) -> str:
    try:
        given = label is not None and bool(label == label)
    except (TypeError, ValueError):  # pandas' NA is neither true nor false
        given = False
    return "" if given else "give every position a label"


def _not_string(label: object) -> str:
    return "" if isinstance(label, str) else "labels must be strings such as 'B-NP' and 'O'"


def _complaint(both: tuple[list[Any], list[Any]], problem: Callable[[Any], str]) -> Exception:
    """The error that names the first label with the problem, and its place."""
    name, i, t, label = next(
        (name, i, t, label)
        for name, lists in zip(("y_true", "y_pred"), both, strict=True)
        for i, labels in enumerate(lists)
        for t, label in enumerate(labels)
        if problem(label)
    )
    kind = ValueError if problem is _missing else TypeError
    return kind(f"{name}[{i}][{t}] is {label!r}; {problem(label)}")
