"""Numbers for labels, and back to the original type."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.structures import offsets_of
from chordal.targets import Target


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


def _width(labels: list[Any]) -> int:
    """Characters that a type of labels may have: memory is for all of them in every answer."""
    return max(1000, *(len(label) for label in labels if isinstance(label, str)), 0)


def _dtype_of(name: object, labels: list[Any]) -> np.dtype[Any]:
    """The dtype of this name, which must hold the labels."""
    if not isinstance(name, str) or not re.fullmatch(r"[<>|][biufUO][0-9]{0,5}", name):
        raise ValueError(f"the dtype of labels must be one of str, numbers or object, got {name!r}")
    dtype = np.dtype(name)
    if dtype.kind == "U" and dtype.itemsize > 4 * _width(labels):
        raise ValueError(f"the dtype of labels must be as wide as these are, got {name!r}")
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
    """How often each number occurs, in the order of first occurrence.

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
    """A number for every label. Frequent labels come first, which keeps rows of weights short; with
    `ranked` they are sorted.

    classes : the labels as users see them, sorted where they can be
    order : int64 [n_labels], the number of each class
    times : dict, how often each label was learned, in the order of first occurrence
    """

    def __init__(self, ranked: bool = False) -> None:
        self._ranked = ranked
        self.labels: list[Any] = []  # by number
        self._number: dict[Any, int] = {}
        self.times: dict[Any, int] = {}
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
            raise ValueError(f"y[{i}] has the label {label!r}; give every position a label")
        self._number_new(counts)
        if not self.labels:
            raise ValueError("y has no labels: every sequence is empty")
        first = y[0]
        self.as_list = isinstance(first, (list, tuple))
        self._widen([labels.dtype for labels in y if isinstance(labels, np.ndarray)])

    def _number_new(self, counts: Mapping[Any, int]) -> None:
        """Numbers for labels that are not known, frequent ones first, or by rank."""
        new = [label for label in counts if label not in self._number]
        new = sorted(new) if self._ranked else sorted(new, key=lambda label: -counts[label])
        for label in new:
            self._number[label] = len(self.labels)
            self.labels.append(label)
        for label, n in counts.items():
            self.times[label] = self.times.get(label, 0) + n

    def _widen(self, dtypes: list[np.dtype[Any]]) -> None:
        """Let labels of these types in."""
        self._dtype = _common([*dtypes, *([] if self._dtype is None else [self._dtype])])
        if self._dtype is not None and not _holds(self._dtype, self.labels):
            self._dtype = np.dtype(object)  # some labels came in lists

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The type of labels that came in arrays."""
        return self._dtype

    @property
    def dtype_name(self) -> str | None:
        """The name of this type, as `set_dtype` takes it: not much wider than the labels are."""
        if self._dtype is None or self._dtype.kind != "U":
            return None if self._dtype is None else self._dtype.str
        return f"{self._dtype.str[:2]}{min(self._dtype.itemsize // 4, _width(self.labels))}"

    def set_dtype(self, name: object) -> None:
        """Take over a type by its name, which must hold the labels; None for none."""
        self._dtype = None if name is None else _dtype_of(name, self.labels)

    def set_learned(self, labels: list[Any], times: Iterable[tuple[Any, int]]) -> None:
        """Take over labels by their numbers, and how often each occurred."""
        self.labels, self.times = labels, dict(times)
        self._number = {label: k for k, label in enumerate(labels)}

    def joined(self, parts: Sequence[SequenceLabels]) -> SequenceLabels:
        """These labels and those of parts, numbered as if one had learned them all in turn."""
        made, times = self.copy(), Counter[Any]()
        for part in parts:
            for label, n in part.times.items():
                times[label] += n
        made._number_new(times)
        if parts:
            made.as_list = parts[0].as_list
        made._widen([part._dtype for part in parts if part._dtype is not None])
        return made

    @property
    def types(self) -> tuple[str, ...]:
        """The types of variables with separate labels; none here."""
        return ()

    @property
    def counts(self) -> int | tuple[int, ...]:
        """How many labels a variable has; of variables with types, those of each type."""
        return len(self)

    def order_of(self, kind: int) -> NDArray[np.int64]:
        """The number of each class of a type's variables."""
        return self.order

    def within(self, target: Target, kinds: NDArray[np.int64] | None) -> Target:
        """Targets by label numbers within the variable's type."""
        return target

    def joint(
        self, numbers: NDArray[np.int32], kinds: NDArray[np.int64] | None
    ) -> NDArray[np.int32]:
        """Labels by their numbers among all, from those among the variable's type's."""
        return numbers

    def copy(self) -> SequenceLabels:
        """One that can learn new labels while this one stays as it is."""
        made = copy.copy(self)
        made.labels, made._number, made.times = list(self.labels), dict(self._number), {}
        return made

    def to_facts(self) -> dict[str, Any]:
        """What a model file keeps."""
        labels = [v.item() if isinstance(v, np.generic) else v for v in self.labels]
        odd = [v for v in labels if not isinstance(v, (str, int, float))]
        if odd:
            raise UnsupportedError(
                f"labels must be str, int, float or bool to be saved, got {odd[0]!r}"
            )
        return {
            "labels": labels,
            "as_list": self.as_list,
            "dtype": self.dtype_name,
            "ranked": self._ranked,
        }

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
        if not self._knows(label):
            raise ValueError(
                f"unknown label {label!r}; the labels seen in training are "
                + ", ".join(repr(self.labels[k]) for k in self.order[:20])
            )
        return self._number[label]

    def _knows(self, label: object) -> bool:
        """Whether this is a label; what cannot be hashed, such as a set, is none."""
        try:
            return label in self._number
        except TypeError:
            return False

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
            try:
                return np.array([get(own, unknown) for own in flat], dtype=np.int32)
            except TypeError:  # such as a set
                flat = chain.from_iterable(lists)
                known = [get(own, unknown) if self._knows(own) else unknown for own in flat]
                return np.array(known, dtype=np.int32)
        try:
            return np.array(list(map(self._number.__getitem__, flat)), dtype=np.int32)
        except (KeyError, TypeError):
            i, t, label = _first(lists, lambda label: not self._knows(label))
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

    def joined(self, parts: Sequence[SequenceLabels]) -> TargetLabels:
        """As many targets as the part with most has."""
        made = TargetLabels()
        made.labels = list(range(max(len(own) for own in (self, *parts))))
        made.as_list = self.as_list if not parts else parts[0].as_list
        return made

    def codes(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """Numbers are codes."""
        return numbers

    def number(self, label: Any) -> int:
        """The number of a label is the label."""
        return int(label)

    def encode(self, y: Sequence[Any], unknown: int | None = None) -> NDArray[np.int32]:
        """All targets, one example after another."""
        return np.concatenate([np.zeros(0, dtype=np.int32), *y]).astype(np.int32)
