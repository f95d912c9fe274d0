"""Labels: from what users have to numbers and targets, and back to the type they gave."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._validate import check_number
from chordal.potentials import Floats
from chordal.structures import offsets_of
from chordal.targets import PartialLabels, SoftLabels, Target


def _common(dtypes: list[np.dtype[Any]]) -> np.dtype[Any] | None:
    """The narrowest dtype that holds the labels of all arrays."""
    if not dtypes:
        return None
    if len({dtype.kind for dtype in dtypes}) > 1:
        return np.dtype(object)
    return np.result_type(*set(dtypes))


def _hashable(label: object) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True


def _is_missing(label: object) -> bool:
    return label is None or bool(label != label)  # NaN


def _first(lists: Sequence[Sequence[Any]], wrong: Callable[[Any], bool]) -> tuple[int, int, Any]:
    """Sequence, position and label of the first label with this fault."""
    return next((i, t, v) for i, s in enumerate(lists) for t, v in enumerate(s) if wrong(v))


def _holds(dtype: np.dtype[Any], labels: list[Any]) -> bool:
    """Whether every label stays itself in this dtype."""
    if dtype.kind == "O":
        return True
    try:
        return all(np.array([label], dtype=object).astype(dtype)[0] == label for label in labels)
    except (ValueError, TypeError, OverflowError):
        return False


def _dtype_of(name: object, labels: list[Any]) -> np.dtype[Any]:
    """The dtype of this name, which must hold the labels."""
    if not isinstance(name, str) or not re.fullmatch(r"[<>|][biufUO][0-9]{0,5}", name):
        raise ValueError(f"the dtype of labels must be one of str, numbers or object, got {name!r}")
    dtype = np.dtype(name)
    if not _holds(dtype, labels):
        raise ValueError(f"labels of dtype {name!r} cannot be {labels[:3]!r}")
    return dtype


def _small_integers(y: Sequence[Any]) -> NDArray[Any] | None:
    """All labels, if they are integers from 0 in arrays, and not much larger than there are."""
    if not len(y) or not all(isinstance(s, np.ndarray) and s.dtype.kind in "iu" for s in y):
        return None
    flat = np.concatenate(y) if len(y) > 1 else y[0]
    small = flat.ndim == 1 and len(flat) and flat.min() >= 0 and flat.max() <= 10 * len(flat)
    return flat if small else None


def _counts(numbers: NDArray[Any]) -> dict[int, int]:
    """How often each number occurs, in the order in which they are met.

    >>> _counts(np.array([3, 1, 3]))
    {3: 2, 1: 1}
    """
    counts = np.bincount(numbers)
    first = np.zeros(len(counts), dtype=np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]  # the last that is written stays
    values = np.flatnonzero(counts)
    values = values[np.argsort(first[values], kind="stable")]
    return dict(zip(values.tolist(), counts[values].tolist(), strict=True))


class SequenceLabels:
    """A number for every label. Frequent labels come first, which keeps rows of weights short;
    or with `ranked` they come in their own order.

    classes : the labels as users see them, sorted where they can be
    order : int64 [n_labels], the number of each class
    """

    def __init__(self, ranked: bool = False) -> None:
        self._ranked = ranked
        self.labels: list[Any] = []  # by number
        self._number: dict[Any, int] = {}
        self.as_list = True
        self._dtype: np.dtype[Any] | None = None

    @classmethod
    def of(cls, y: Sequence[Any], ranked: bool = False) -> SequenceLabels:
        """The labels of these sequences."""
        labels = cls(ranked)
        labels.learn(y)
        return labels

    def learn(self, y: Sequence[Any]) -> None:
        """Number new labels after those already known."""
        lists, numbers = self._listed(y), _small_integers(y)
        try:
            counts = Counter(chain.from_iterable(lists)) if numbers is None else _counts(numbers)
        except TypeError:
            i, t, label = _first(lists, lambda label: not _hashable(label))
            raise TypeError(
                f"y[{i}][{t}] is {label!r}; labels must be hashable (str, int, …)"
            ) from None
        if any(map(_is_missing, counts)):
            i, _, label = _first(lists, _is_missing)
            raise ValueError(f"y[{i}] holds the label {label!r}; give every position a label")
        new = [label for label in counts if label not in self._number]
        new = sorted(new) if self._ranked else sorted(new, key=lambda label: -counts[label])
        for label in new:
            self._number[label] = len(self.labels)
            self.labels.append(label)
        if not self.labels:
            raise ValueError("y holds no labels: every sequence is empty")
        first = y[0]
        self.as_list = isinstance(first, (list, tuple))
        given = [labels.dtype for labels in y if isinstance(labels, np.ndarray)]
        self._dtype = _common([*given, *([] if self._dtype is None else [self._dtype])])
        if self._dtype is not None and not _holds(self._dtype, self.labels):
            self._dtype = np.dtype(object)  # some labels came in lists

    @property
    def types(self) -> tuple[str, ...]:
        """The types of variables that have labels of their own; none here."""
        return ()

    @property
    def counts(self) -> int | tuple[int, ...]:
        """How many labels a variable has; of variables with types, those of each type."""
        return len(self)

    def order_of(self, kind: int) -> NDArray[np.int64]:
        """The number of each class of a type's variables."""
        return self.order

    def within(self, target: Target, kinds: NDArray[np.int64] | None) -> Target:
        """What is known of the labels, by their numbers among those of the variable's type."""
        return target

    def joint(
        self, numbers: NDArray[np.int32], kinds: NDArray[np.int64] | None
    ) -> NDArray[np.int32]:
        """Labels by their numbers among all, from those among the variable's type's."""
        return numbers

    def copy(self) -> SequenceLabels:
        """One that can learn new labels while this one stays as it is."""
        made = copy.copy(self)
        made.labels, made._number = list(self.labels), dict(self._number)
        return made

    def to_facts(self) -> dict[str, Any]:
        """What a model file keeps."""
        labels = [v.item() if isinstance(v, np.generic) else v for v in self.labels]
        odd = [v for v in labels if not isinstance(v, (str, int, float))]
        if odd:
            raise UnsupportedError(
                f"labels must be str, int, float or bool to be saved, got {odd[0]!r}"
            )
        dtype = None if self._dtype is None else self._dtype.str
        return {
            "labels": labels, "as_list": self.as_list, "dtype": dtype, "ranked": self._ranked
        }  # fmt: skip

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> SequenceLabels:
        """The labels of a model file."""
        made = cls(bool(facts.get("ranked", False)))
        labels = facts["labels"]
        if not isinstance(labels, list) or not labels:
            raise ValueError("labels must be a list that is not empty")
        odd = [v for v in labels if not isinstance(v, (str, int, float)) or v != v]
        if odd:
            raise ValueError(f"labels must be str, int, float or bool, got {odd[0]!r}")
        made.labels = labels
        made._number = {label: k for k, label in enumerate(labels)}
        if len(made._number) != len(labels):
            raise ValueError("a label occurs twice")
        if made._ranked and labels != sorted(labels):
            raise ValueError("the labels must be in order")
        made.as_list = bool(facts["as_list"])
        made._dtype = None if facts["dtype"] is None else _dtype_of(facts["dtype"], labels)
        return made

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def order(self) -> NDArray[np.int64]:
        """The number of each class."""
        numbers = range(len(self.labels))
        try:
            return np.array(sorted(numbers, key=lambda k: self.labels[k]), dtype=np.int64)
        except TypeError:  # labels of several types have no order
            return np.arange(len(self.labels))

    @property
    def classes(self) -> NDArray[Any]:
        """The labels as users see them, sorted where they can be."""
        ordered = [self.labels[k] for k in self.order]
        array = np.empty(len(ordered), dtype=object)
        array[:] = ordered
        if self._dtype is not None and self._dtype.kind != "O":
            return array.astype(self._dtype)
        kinds = {type(label) for label in ordered}
        if len(kinds) == 1 and np.isscalar(ordered[0]):
            plain = np.array(ordered)
            if plain.tolist() == ordered:  # an array of str drops NUL at the end
                return plain
        return array

    def codes(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """Numbers of labels as indices into the classes."""
        return np.argsort(self.order).astype(np.int32)[numbers]

    def number(self, label: object) -> int:
        """The number of a label."""
        if label not in self._number:
            raise ValueError(
                f"unknown label {label!r}; the labels seen in training are "
                + ", ".join(repr(self.labels[k]) for k in self.order[:20])
            )
        return self._number[label]

    def encode(self, y: Sequence[Any], unknown: int | None = None) -> NDArray[np.int32]:
        """The numbers of all labels, sequence after sequence; unseen ones are `unknown`."""
        numbers = _small_integers(y)
        if numbers is not None:
            place = np.full(numbers.max() + 1, -1 if unknown is None else unknown, dtype=np.int32)
            known = [label for label in self._number if label in range(len(place))]
            place[np.array(known, dtype=np.int64)] = [self._number[label] for label in known]
            found = place[numbers]
            if unknown is not None or (found >= 0).all():
                return found
        lists = self._listed(y)
        flat = chain.from_iterable(lists)
        if unknown is not None:
            get = self._number.get
            return np.array([get(label, unknown) for label in flat], dtype=np.int32)
        try:
            return np.array(list(map(self._number.__getitem__, flat)), dtype=np.int32)
        except KeyError:
            i, t, label = _first(lists, lambda label: label not in self._number)
            raise ValueError(
                f"y[{i}][{t}] is the label {label!r}, which was not seen in training"
            ) from None

    def decode(self, numbers: NDArray[np.int32], lengths: NDArray[np.int64]) -> list[Any]:
        """Sequences of labels, in the type in which they were given."""
        limits = offsets_of(lengths)
        if self.as_list:
            labels = self.labels
            flat = [labels[k] for k in numbers.tolist()]
            return [flat[a:b] for a, b in pairwise(limits.tolist())]
        table = self.classes[np.argsort(self.order)]
        if self._dtype is not None:
            table = table.astype(self._dtype)
        return np.split(table[numbers], limits[1:-1]) if len(lengths) else []

    @staticmethod
    def _listed(y: Sequence[Any]) -> list[list[Any]]:
        lists = []
        for i, labels in enumerate(y):
            if isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__"):
                raise TypeError(f"y[{i}] must be a list of labels, got {type(labels).__name__}")
            lists.append(labels.tolist() if isinstance(labels, np.ndarray) else labels)
        return lists


class TargetLabels(SequenceLabels):
    """Labels that are numbers already: the targets of a matching, as many as there are."""

    def learn(self, y: Sequence[Any]) -> None:
        """Count the targets."""
        most = max((int(np.max(own, initial=0)) for own in y), default=0)
        self.labels = list(range(max(most + 1, len(self.labels), 1)))

    def codes(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """Numbers are codes."""
        return numbers

    def number(self, label: Any) -> int:
        """The number of a label is the label."""
        return int(label)

    def encode(self, y: Sequence[Any], unknown: int | None = None) -> NDArray[np.int32]:
        """All targets, one example after another."""
        return np.concatenate([np.zeros(0, dtype=np.int32), *y]).astype(np.int32)


def matched_targets(y: object, i: int, n_source: int, n_target: int) -> NDArray[np.int32]:
    """The targets of the source items of example i as labels, of which the last is none."""
    target = np.asarray(y)
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

    A variable holds a label, None or the `ignored` label (not observed), a set of possible labels,
    or a dict of labels with their probabilities; an example may also be an array [n_variables,
    n_classes] of probabilities in the order of the classes.
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
        raise ValueError("y names no label: no variable is observed")
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
        raise ValueError("y names no label: no variable is observed")
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
        return sequence if ignored is None else sequence[sequence != ignored]
    return [label for label in sequence if not _is_ignored(label, ignored)]


def observed(y: Sequence[Any], ignored: object = None) -> NDArray[np.bool_]:
    """Which labels are given: not None, and not the label that stands for none."""
    parts = [np.zeros(0, dtype=bool)]
    for labels in y:
        if isinstance(labels, np.ndarray) and labels.dtype != object:
            parts.append(np.broadcast_to(labels != ignored, len(labels)))
            continue
        given = [v is not None and v is not ignored and v != ignored for v in labels]
        parts.append(np.array(given, dtype=bool))
    return np.concatenate(parts)


def class_weights(given: object, labels: SequenceLabels, target: Target) -> Floats:
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
