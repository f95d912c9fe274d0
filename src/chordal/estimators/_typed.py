"""Variables of several types, each with its own labels: y has a dict by type per example."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.features import Batch
from chordal.labels import SequenceLabels
from chordal.objectives import Objective
from chordal.potentials import Floats, Potentials
from chordal.targets import PartialLabels, SoftLabels, Target

Ints = NDArray[np.int64]


class TypedLabels(SequenceLabels):
    """Labels of several types. A label is a pair (type, label). Its number among all labels is
    `joint`; inference uses its number within its type, `within`.

    Parameters
    ----------
    types : tuple of str

    Examples
    --------
    >>> labels = TypedLabels(("word", "text"))
    >>> labels.learn([[("word", "N"), ("text", "news"), ("word", "V"), ("word", "N")]])
    >>> labels.counts, labels.classes["word"]
    ((2, 1), array(['N', 'V'], dtype='<U1'))
    >>> labels.within(np.array([2, 1], dtype=np.int32), np.array([0, 1]))
    array([1, 0], dtype=int32)
    """

    def __init__(self, types: Sequence[str]) -> None:
        super().__init__()
        self._types = tuple(types)

    @property
    def types(self) -> tuple[str, ...]:
        """The types, by their numbers."""
        return self._types

    @property
    def kinds(self) -> Ints:
        """The number of each label's type."""
        return np.array([self._types.index(own) for own, _ in self.labels], dtype=np.int64)

    def _of_kind(self, kind: int) -> SequenceLabels:
        """The labels of one type, with their numbers within it."""
        own = SequenceLabels()
        own.learn([[label for name, label in self.labels if name == self._types[kind]]])
        return own

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of labels of each type; an error if a type has no label."""
        found = np.bincount(self.kinds, minlength=len(self._types))
        if not found.all():
            name = self._types[int(np.argmin(found))]
            raise ValueError(f"y has no label of type {name!r}: label some nodes, or drop the type")
        return tuple(found.tolist())

    def order_of(self, kind: int) -> Ints:
        """The number of each class of a type."""
        return self._of_kind(kind).order

    @property
    def classes(self) -> Any:
        """A dict from type to its labels, sorted if possible."""
        self.counts  # noqa: B018 - refuses a type without labels
        return {name: self._of_kind(k).classes for k, name in enumerate(self._types)}

    def _numbers_within(self) -> Ints:
        """The number of each label within its type."""
        kinds, numbers = self.kinds, np.zeros(len(self), dtype=np.int64)
        for k in range(len(self._types)):
            numbers[kinds == k] = np.arange((kinds == k).sum())
        return numbers

    def within(self, target: Target, kinds: Ints | None) -> Target:
        """Targets by numbers within types; −1 (unknown) stays."""
        assert kinds is not None
        of_label = self.kinds
        if isinstance(target, np.ndarray):
            known = target >= 0
            if (of_label[target[known]] != kinds[known]).any():
                raise ValueError(
                    "y must have one label for each variable of each type: an example has too many "
                    "labels of one type and too few of another"
                )
            return np.where(known, self._numbers_within()[target], -1).astype(np.int32)
        own = of_label == kinds[:, None]
        counts = np.array(self.counts)[kinds]
        if isinstance(target, SoftLabels):
            return SoftLabels(target.probability[own.ravel()], counts)
        return PartialLabels(target.allowed[own.ravel()], counts)

    def joint(self, numbers: NDArray[np.int32], kinds: Ints | None) -> NDArray[np.int32]:
        """Numbers among all labels, from those within types."""
        if kinds is None:  # no examples
            return numbers
        of_label = self.kinds
        table = np.zeros((len(self._types), max(self.counts)), dtype=np.int32)
        table[of_label, self._numbers_within()] = np.arange(len(self))
        return table[kinds, numbers]

    def codes(self, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
        """Numbers among all labels as indices into the classes of their types."""
        place = np.zeros(len(self), dtype=np.int32)
        for k in range(len(self._types)):
            place[self.kinds == k] = np.argsort(self.order_of(k))
        return place[numbers]

    def arranged(self, values: Floats, batch: Batch) -> list[dict[str, Floats]]:
        """Values per label and variable as arrays [n, n_classes], by type."""
        if batch.kinds is None:
            return []
        example = np.repeat(np.arange(len(batch.sizes)), batch.sizes)
        counts = np.array(self.counts)
        first = np.cumsum(counts[batch.kinds]) - counts[batch.kinds]
        out: list[dict[str, Floats]] = [{} for _ in batch.sizes]
        for k, name in enumerate(self._types):
            own = np.flatnonzero(batch.kinds == k)
            rows = values[first[own][:, None] + self.order_of(k)]
            limits = np.searchsorted(example[own], np.arange(1, len(out)))
            for made, part in zip(out, np.split(rows, limits), strict=True):
                made[name] = part
        return out

    def allowed(self, given: Sequence[Any], batch: Batch) -> list[Any]:
        """`allowed_labels`, dicts of types, as flags of each variable's labels."""
        assert batch.kinds is not None
        out: list[Any] = []
        for i, own in enumerate(given):
            if own is None:
                out.append(None)
                continue
            kinds = batch.kinds[batch.offsets[i] : batch.offsets[i + 1]]
            _check_types(own, self._types, f"allowed_labels[{i}]")
            entries: list[Any] = []
            for k, name in enumerate(self._types):
                n, where = int((kinds == k).sum()), f"allowed_labels[{i}][{name!r}]"
                listed = [None] * n if own.get(name) is None else list(own[name])
                if len(listed) != n:
                    raise ValueError(f"{where} must have {n} entries, got {len(listed)}")
                flags = (self._flags(v, k, f"{where}[{j}]") for j, v in enumerate(listed))
                entries.extend(flags)
            out.append(entries)
        return out

    def _flags(self, entry: Any, kind: int, where: str) -> NDArray[np.bool_] | None:
        labels = self._of_kind(kind)
        if entry is None:
            return None
        flags = np.zeros(len(labels), dtype=bool)
        one = isinstance(entry, (str, bytes)) or not isinstance(entry, Iterable)
        named = [entry] if one else list(entry)
        if (
            not one
            and len(named) == len(flags)
            and all(isinstance(v, (bool, np.bool_)) for v in named)
        ):
            flags[labels.order] = named
            return flags
        try:
            flags[[labels.number(label) for label in named]] = True
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        return flags

    def to_facts(self) -> dict[str, Any]:
        """The facts for a model file: the labels of each type, in order."""
        return {
            "types": list(self._types),
            "kinds": self.kinds.tolist(),
            "each": [self._of_kind(k).to_facts()["labels"] for k in range(len(self._types))],
        }

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> TypedLabels:
        """The labels of a model file."""
        types, kinds, each = facts["types"], facts["kinds"], facts["each"]
        lists = isinstance(types, list) and isinstance(kinds, list) and isinstance(each, list)
        if not lists or len(each) != len(types) or not all(isinstance(t, str) for t in types):
            raise ValueError("labels must have types, and a list of labels for each")
        made = cls(types)
        plain = {"as_list": True, "dtype": None}
        left = [list(SequenceLabels.from_facts({"labels": own, **plain}).labels) for own in each]
        pairs = []
        for kind in kinds:
            if not isinstance(kind, int) or not 0 <= kind < len(types) or not left[kind]:
                raise ValueError("kinds must be the number of each label's type")
            pairs.append((types[kind], left[kind].pop(0)))
        if any(left):
            raise ValueError("kinds must name the type of every label")
        made.learn([pairs])  # which all differ, and keep their order
        return made


def listed_types(
    y: Sequence[Any], types: tuple[str, ...], name: str, ignored: object = None
) -> list[list[Any]]:
    """Labels of all variables, type after type, as pairs (type, label)."""

    def paired(own: str, value: Any) -> Any:
        if value is None or (
            ignored is not None and not isinstance(value, dict) and value == ignored
        ):
            return None
        if isinstance(value, (set, frozenset)):
            return {(own, label) for label in value}
        if isinstance(value, dict):
            return {(own, label): share for label, share in value.items()}
        return (own, value)

    out = []
    for i, given in enumerate(y):
        _check_types(given, types, f"{name}[{i}]")
        flat: list[Any] = []
        for own in types:
            values = given.get(own, ())
            if isinstance(values, np.ndarray):
                if values.ndim != 1:
                    raise ValueError(
                        f"{name}[{i}][{own!r}] must be a list of labels; give probabilities as "
                        "dicts {label: probability}"
                    )
                values = values.tolist()
            if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
                raise TypeError(f"{name}[{i}][{own!r}] must be a list of labels, got {values!r}")
            flat.extend(paired(own, value) for value in values)
        out.append(flat)
    return out


def _check_types(given: object, types: tuple[str, ...], where: str) -> None:
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{where} must be a dict of the types {', '.join(map(repr, types))}, got "
            f"{type(given).__name__}"
        )
    odd = [name for name in given if name not in types]
    if odd:
        raise ValueError(
            f"{where} has the type {odd[0]!r}; the types are {', '.join(map(repr, types))}"
        )


def by_types(values: Sequence[Sequence[Any]], types: tuple[str, ...]) -> list[dict[str, list[Any]]]:
    """Pairs (type, label) of each example as lists of labels, by type."""
    out = []
    for own in values:
        made: dict[str, list[Any]] = {name: [] for name in types}
        for name, label in own:
            made[name].append(label)
        out.append(made)
    return out


def refuse_prices(objective: Objective, labels: SequenceLabels, class_weight: object) -> None:
    """Raise an error for costs by label, which need one common set of labels."""
    cost = objective.cost
    by_label = cost is not None and cost.for_labels(labels.labels, labels.order) is not cost
    if by_label or class_weight is not None:
        raise UnsupportedError(
            "class_weight and costs by label need variables with the same labels; with "
            "types, use the cost 'hamming'"
        )


def relabelled(potentials: Potentials, orders: Sequence[Ints], kinds: Ints | None) -> Potentials:
    """The same scores with renumbered labels: label k of a variable was number order[k], by the
    variable's kind.
    """
    s = potentials.structure
    kinds = np.zeros(s.n_variables, dtype=np.int64) if kinds is None else kinds
    unary, cells = np.empty_like(potentials.unary), np.arange(len(potentials.tables))
    for k, order in enumerate(orders):
        first = s.state_offsets[:-1][kinds == k][:, None]
        unary[first + np.arange(len(order))] = potentials.unary[first + order]
    tables, example = np.unique(potentials.table_of_clique, return_index=True)
    for m in np.unique(s.orders[example]):
        own = s.orders[example] == m
        scopes = s.scopes[s.scope_offsets[example[own]][:, None] + np.arange(m)]
        starts = potentials.table_offsets[tables[own]]
        for of_axis in np.unique(kinds[scopes], axis=0):
            axes = [orders[k] for k in of_axis]
            shape = [len(order) for order in axes]
            moved = np.arange(np.prod(shape)).reshape(shape)[np.ix_(*axes)].ravel()
            at = starts[(kinds[scopes] == of_axis).all(axis=1)][:, None]
            cells[at + np.arange(len(moved))] = at + moved
    return potentials.like(unary, potentials.tables[cells])
