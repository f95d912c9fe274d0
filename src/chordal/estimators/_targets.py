"""What users know of the labels, as targets: labels, sets of them, or distributions over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_number
from chordal.estimators._labels import SequenceLabels
from chordal.potentials import Floats
from chordal.structures import offsets_of
from chordal.targets import PartialLabels, SoftLabels, Target

Ints = NDArray[np.int64]


def learn_targets(labels: SequenceLabels, y: Sequence[Any]) -> Target:
    """Number the labels of y, and what y says about every position, sequence after sequence.

    A position holds a label, None (not observed), a set of possible labels, or a dict of labels
    with their probabilities; a sequence may also be an array [length, n_classes] of
    probabilities in the order of the classes.
    """
    types = _types_in(y)
    sets = bool(types & {type(None), set, frozenset})
    soft = bool(types & {dict, np.ndarray})
    if sets and soft:
        raise ValueError(
            "y must not mix sets or None with distributions: give a position that is not observed "
            "a distribution too, or give sets everywhere"
        )
    if not sets and not soft:
        labels.learn(y)
        return labels.encode(y)
    named = [[label for value in s for label in _named(value)] for s in y if not _is_matrix(s)]
    if any(named):
        labels.learn(named)
    if soft:
        return _soft(labels, y)
    if not len(labels):
        raise ValueError("y names no label: no position is observed")
    return _partial(labels, y)


def observed_targets(labels: SequenceLabels, y: Sequence[Any], void: Any = None) -> Target:
    """The same, where the label `void` stands for "not observed" as None does."""
    types = _types_in(y)
    if types & {set, frozenset, dict, np.ndarray} or (void is None and type(None) not in types):
        if void is not None:
            y = [[None if _is_void(v, void) else v for v in s] for s in y]
        return learn_targets(labels, y)
    seen = [_without(s, void) for s in y]
    if not any(map(len, seen)):
        raise ValueError("y names no label: no position is observed")
    labels.learn(seen)
    codes, n = labels.encode(y, unknown=-1), len(labels)
    if (codes >= 0).all():
        return codes
    allowed = (codes[:, None] < 0) | (codes[:, None] == np.arange(n))
    return PartialLabels(allowed.ravel(), np.full(len(codes), n))


def _is_void(label: Any, void: Any) -> bool:
    return label is None or (void is not None and not isinstance(label, dict) and label == void)


def _without(sequence: Any, void: Any) -> Any:
    """The labels that are observed."""
    if isinstance(sequence, np.ndarray) and sequence.dtype != object:
        return sequence if void is None else sequence[sequence != void]
    return [label for label in sequence if not _is_void(label, void)]


def seen_pairs(target: Target, n: int) -> tuple[Ints, Ints]:
    """The rows and labels that go together, in order; rows about which nothing is known have none.

    With one label per row, every row has one pair.
    """
    if isinstance(target, SoftLabels):
        rows, labels = np.nonzero(target.probability.reshape(-1, n))
    elif isinstance(target, PartialLabels):
        allowed = target.allowed.reshape(-1, n)
        observed = np.asarray((~allowed).any(axis=1, keepdims=True) | (n == 1))
        rows, labels = np.nonzero(allowed & observed)
    else:
        return np.arange(len(target)), target.astype(np.int64)
    return rows, labels


def seen_transitions(rows: Ints, labels: Ints, lengths: Ints, n: int) -> tuple[Ints, Ints]:
    """The transitions and pairs of labels i · n + j that go together, from `seen_pairs`."""
    n_rows = int(lengths.sum())
    inner = np.ones(n_rows, dtype=bool)
    inner[offsets_of(lengths)[1:][lengths > 0] - 1] = False
    edge_of_row = np.cumsum(inner) - 1
    count = np.bincount(rows, minlength=n_rows)
    first = offsets_of(count)
    # Every entry of a row goes with every entry of the next one.
    left = np.flatnonzero(inner[rows])
    partners = count[rows[left] + 1]
    begin = np.repeat(first[rows[left] + 1] - offsets_of(partners)[:-1], partners)
    right = begin + np.arange(partners.sum())
    pairs = np.repeat(labels[left], partners) * n + labels[right]
    return np.repeat(edge_of_row[rows[left]], partners), pairs


def class_weights(given: Any, labels: SequenceLabels, target: Target) -> Floats:
    """A weight for each label by its number, from "balanced" or a dict."""
    n = len(labels)
    if given == "balanced":
        if not isinstance(target, np.ndarray):
            raise ValueError("class_weight='balanced' counts labels: give y one per position")
        counts = np.bincount(target, minlength=n)
        return np.asarray(len(target) / (n * np.maximum(counts, 1)))
    if not isinstance(given, Mapping):
        raise ValueError(
            f"class_weight must be None, 'balanced' or a dict of labels and weights, got {given!r}"
        )
    weight = np.ones(n)
    for label, value in given.items():
        check_number(f"class_weight[{label!r}]", value)
        weight[labels.number(label)] = value
    return weight


def _types_in(y: Sequence[Any]) -> set[type]:
    """The types of what stands at the positions; of a matrix, np.ndarray."""
    types: set[type] = set()
    for s in y:
        if _is_matrix(s):
            types.add(np.ndarray)
        elif not isinstance(s, np.ndarray) or s.dtype == object:
            types.update(map(type, s))
    return types


def _is_matrix(sequence: Any) -> bool:
    return isinstance(sequence, np.ndarray) and sequence.ndim == 2


def _named(value: Any) -> Sequence[Any]:
    """The labels that a position names."""
    if value is None:
        return []
    return list(value) if isinstance(value, (set, frozenset, dict)) else [value]


def _partial(labels: SequenceLabels, y: Sequence[Any]) -> PartialLabels:
    n, rows = len(labels), []
    for i, s in enumerate(y):
        for t, value in enumerate(s):
            row = np.full(n, value is None)
            row[[labels.number(label) for label in _named(value)]] = True
            if not row.any():
                raise ValueError(f"y[{i}][{t}] is an empty set: no label is possible there")
            rows.append(row)
    allowed = np.array(rows, dtype=bool).reshape(-1)
    return PartialLabels(allowed, np.full(len(rows), n))


def _soft(labels: SequenceLabels, y: Sequence[Any]) -> SoftLabels:
    if not len(labels):
        n = next(s.shape[1] for s in y if _is_matrix(s))
        labels.learn([list(range(n))])
    n, order, rows = len(labels), labels.order, []
    for i, s in enumerate(y):
        q = np.zeros((len(s), n))
        if _is_matrix(s):
            if s.shape[1] != n or s.dtype.kind not in "biuf":
                raise ValueError(
                    f"y[{i}] must be probabilities of the {n} classes, in their order, got an "
                    f"array of {s.dtype} and shape {s.shape}"
                )
            q[:, order] = s
        else:
            for t, value in enumerate(s):
                for label, share in _shares(value, i, t):
                    q[t, labels.number(label)] = share
        wrong = np.flatnonzero(~(np.abs(q.sum(axis=1) - 1.0) <= 1e-6) | (q < 0.0).any(axis=1))
        if len(wrong):
            raise ValueError(
                f"y[{i}][{wrong[0]}] must be probabilities that sum to 1, got {s[wrong[0]]!r}"
            )
        rows.append(q.ravel())
    return SoftLabels(np.concatenate(rows), np.full(sum(map(len, y)), n))


def _shares(value: Any, i: int, t: int) -> list[tuple[Any, float]]:
    if not isinstance(value, dict):
        return [(value, 1.0)]
    for label, share in value.items():
        if not isinstance(share, Real):
            raise ValueError(f"y[{i}][{t}][{label!r}] must be a probability, got {share!r}")
    return list(value.items())
