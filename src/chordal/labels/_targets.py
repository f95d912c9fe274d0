"""Targets: what y says about every variable, by numbers of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._validate import array_of, check_number
from chordal.labels._sequence import SequenceLabels
from chordal.potentials import Floats
from chordal.targets import PartialLabels, SoftLabels, Target


class NothingObservedError(ValueError):
    """No variable has an observed label."""


def matched_targets(y: object, i: int, n_source: int, n_target: int) -> NDArray[np.int32]:
    """The targets of the source items of example i as labels, of which the last is none."""
    target = array_of(y)
    if target.shape != (n_source,) or (n_source and target.dtype.kind not in "iu"):
        raise ValueError(
            f"y[{i}] must be {n_source} whole numbers, the target of each source item, "
            f"got {target.dtype} of shape {target.shape}"
        )
    target = target.astype(np.int64)
    if n_source and (target.min() < -1 or target.max() >= n_target):
        raise ValueError(f"y[{i}] must hold targets from 0 to {n_target - 1}, or -1 for none")
    taken = target[target >= 0]
    if len(np.unique(taken)) < len(taken):
        twice = int(np.argmax(np.bincount(taken)))
        raise ValueError(f"y[{i}] takes target {twice} twice: a matching takes it once at most")
    return np.where(target < 0, n_target, target).astype(np.int32)


def targets_of(labels: SequenceLabels, y: Sequence[Any], ignored: object = None) -> Target:
    """Number the labels of y, and what y says about every variable, example after example.

    A variable has a label, None or the `ignored` label (not observed), a set of possible labels, or
    a dict of labels with probabilities. An example may also be an array [n_variables, n_classes] of
    probabilities, in the order of the classes.
    """
    target = _target(labels, y, ignored)
    labels.as_list = isinstance(y[0], (list, tuple))  # as given, also where some were left out
    return target


def _target(labels: SequenceLabels, y: Sequence[Any], ignored: object) -> Target:
    types = _types_in(y)
    if types & {dict, np.ndarray, set, frozenset}:
        if ignored is not None:
            y = [[None if _is_ignored(v, ignored) else v for v in s] for s in y]
        return _uncertain(labels, y, _types_in(y))
    if ignored is None and type(None) not in types:
        labels.learn(y)
        return labels.encode(y)
    seen = [_without(s, ignored) for s in y]
    if not any(map(len, seen)):
        raise NothingObservedError("y names no label: no variable is observed")
    labels.learn(seen)
    codes, n = labels.encode(y, unknown=-1), len(labels)
    if (codes >= 0).all():
        return codes
    allowed = (codes[:, None] < 0) | (codes[:, None] == np.arange(n))
    return PartialLabels(allowed.ravel(), np.full(len(codes), n))


def _uncertain(labels: SequenceLabels, y: Sequence[Any], types: set[type]) -> Target:
    """Sets of labels, or distributions over them."""
    sets, soft = bool(types & {type(None), set, frozenset}), bool(types & {dict, np.ndarray})
    if sets and soft:
        raise ValueError(
            "y must not mix sets or None with distributions: give a variable that is not observed "
            "a distribution too, or give sets everywhere"
        )
    named = [[label for value in s for label in _named(value)] for s in y if not _is_matrix(s)]
    if any(named):
        labels.learn(named)
    if soft:
        return _soft(labels, y)
    if not len(labels):
        raise NothingObservedError("y names no label: no variable is observed")
    return _partial(labels, y)


def _is_ignored(label: object, ignored: object) -> bool:
    if label is None or ignored is None or isinstance(label, dict):
        return label is None
    return bool(label == ignored)


def _without(
    sequence: Sequence[Any] | NDArray[Any], ignored: object
) -> Sequence[Any] | NDArray[Any]:
    """The labels that are observed."""
    if isinstance(sequence, np.ndarray) and sequence.dtype != object:
        if ignored is None:
            return sequence
        return sequence[np.broadcast_to(sequence != ignored, sequence.shape)]  # NumPy 1: one bool
    return [label for label in sequence if not _is_ignored(label, ignored)]


def single_labels(labels: SequenceLabels, y: Sequence[Any]) -> Sequence[Any]:
    """y for scores: sets with several labels, and distributions over several, become None.

    >>> labels = SequenceLabels()
    >>> labels.learn([["A", "B"]])
    >>> single_labels(labels, [["A", {"B"}, {"A", "B"}, {"A": 0.5, "B": 0.5}]])
    [['A', 'B', None, None]]
    """
    if not _types_in(y) & {dict, np.ndarray, set, frozenset}:
        return y
    return [[_only(labels, value) for value in s] for s in y]


def _only(labels: SequenceLabels, value: Any) -> Any:
    """The only possible label; None if there are several."""
    if isinstance(value, np.ndarray):
        value = dict(zip(labels.classes.tolist(), value.tolist(), strict=False))
    if isinstance(value, Mapping):
        value = {label for label, share in value.items() if share}
    if isinstance(value, (set, frozenset)):
        return next(iter(value)) if len(value) == 1 else None
    return value


def observed(y: Sequence[Any], ignored: object = None) -> NDArray[np.bool_]:
    """Which labels are given: not None, and not the label for "not observed"."""
    parts = [np.zeros(0, dtype=bool)]
    for labels in y:
        if _is_matrix(labels):
            parts.append(np.ones(len(labels), dtype=bool))
            continue
        if isinstance(labels, np.ndarray) and labels.dtype != object:
            parts.append(np.broadcast_to(labels != ignored, len(labels)))
            continue
        given = [v is not None and v is not ignored and v != ignored for v in labels]
        parts.append(np.array(given, dtype=bool))
    return np.concatenate(parts)


def class_weights(given: object, labels: SequenceLabels, target: Target) -> Floats:
    """A weight for each label by its number, from "balanced" or a dict."""
    n = len(labels)
    if isinstance(given, str) and given == "balanced":
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


def _is_matrix(sequence: object) -> bool:
    return isinstance(sequence, np.ndarray) and sequence.ndim == 2


def _named(value: object) -> Sequence[Any]:
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


def _shares(value: object, i: int, t: int) -> list[tuple[Any, float]]:
    if not isinstance(value, dict):
        return [(value, 1.0)]
    for label, share in value.items():
        if not isinstance(share, Real):
            raise ValueError(f"y[{i}][{t}][{label!r}] must be a probability, got {share!r}")
    return list(value.items())
