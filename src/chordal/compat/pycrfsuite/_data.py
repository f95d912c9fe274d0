"""Training data as CRFsuite keeps it, and the features that CRFsuite makes of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._validate import is_list, is_sparse
from chordal.compat.pycrfsuite._items import ZERO, read_items
from chordal.estimators import chain_layout
from chordal.features import AttributeFeatures, AttributeInput, Layout, Occurrences, Rows
from chordal.potentials import Floats
from chordal.structures import offsets_of

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Sequences and their labels; attributes of value 0 are still among the rows."""

    lengths: Ints
    occurrences: Occurrences
    gold: NDArray[np.int32]

    def rows(self) -> Rows:
        """The rows without zeros; values are left out if all are 1, which is faster."""
        data = self.occurrences
        if data.values is None:
            return Rows(self.lengths, data)
        kept = data.values != 0.0
        values = data.values[kept]
        row = np.repeat(np.arange(len(self.gold)), np.diff(data.offsets))[kept]
        offsets = offsets_of(np.bincount(row, minlength=len(self.gold)))
        ones = bool((values == 1.0).all())
        return Rows(self.lengths, Occurrences(offsets, data.ids[kept], None if ones else values))


class TrainingData:
    """Instances, each with the number of its group; labels and attributes in order of meeting."""

    def __init__(self) -> None:
        self.source = AttributeInput()
        self.labels: dict[str, int] = {}
        self._instances: list[tuple[int, Rows, list[int]]] = []

    def __len__(self) -> int:
        return len(self._instances)

    def append(self, xseq: object, yseq: Iterable[Any], group: int) -> None:
        """Read one instance."""
        names = [_label(y, t) for t, y in enumerate(_labels(yseq))]
        if isinstance(group, bool) or not isinstance(group, Integral):
            raise TypeError(f"group must be an integer, got {group!r:.80}")
        if is_list(xseq) and len(xseq) != len(names):
            raise ValueError(_differ(len(xseq), len(names)))
        rows = read_items(self.source, xseq)
        if rows.n_rows != len(names):
            raise ValueError(_differ(rows.n_rows, len(names)))
        numbers = [self.labels.setdefault(name, len(self.labels)) for name in names]
        self._instances.append((group.__index__(), rows, numbers))

    def is_empty(self, holdout: int) -> bool:
        """Whether no item is left to train on without the group `holdout`."""
        groups = (group for group, rows, _ in self._instances if rows.n_rows)
        return all(0 <= holdout == group for group in groups)

    def split(self, holdout: int) -> tuple[Batch, Batch | None]:
        """The instances to train on, and those of the group `holdout`, if it is not negative."""
        train = [i for i in self._instances if holdout < 0 or i[0] != holdout]
        held = [i for i in self._instances if i[0] == holdout]
        return _batch(train), _batch(held) if holdout >= 0 else None


def layout_of(
    batch: Batch,
    n_attributes: int,
    n_labels: int,
    min_freq: float,
    possible_states: bool,
    possible_transitions: bool,
) -> Layout:
    """The features of CRFsuite.

    The frequency of a state feature is the *sum* of its attribute's values, and a feature exists if
    its frequency is at least `min_freq`. So a pair that was seen only with value 0 has a weight,
    but not one with a negative sum. Possible but unseen features have frequency 0.
    """
    data = batch.occurrences
    offsets, outputs, counts = _kernels.attribute_pairs(
        offsets=data.offsets,
        ids=data.ids,
        outputs=batch.gold,
        n_attributes=n_attributes,
        n_outputs=n_labels,
    )
    attribute = np.repeat(np.arange(n_attributes), np.diff(offsets))
    seen = attribute * n_labels + outputs
    frequency = counts.astype(np.float64)
    # Sums of values can only matter where some are negative, or a threshold is set.
    if data.values is not None and (min_freq > 0.0 or (data.values < 0.0).any()):
        row = np.repeat(np.arange(len(batch.gold)), np.diff(data.offsets))
        keys = data.ids.astype(np.int64) * n_labels + batch.gold[row]
        order = np.argsort(seen)
        at = order[np.searchsorted(seen, keys, sorter=order)]
        frequency = np.bincount(at, data.values, len(seen)).astype(np.float64, copy=False)
    everything = None
    if possible_states:
        met = np.unique(data.ids).astype(np.int64)
        everything = (met[:, None] * n_labels + np.arange(n_labels)).ravel()
    kept = _frequent(seen, frequency, everything, min_freq)
    occurs = np.bincount(data.ids, minlength=n_attributes)
    node = AttributeFeatures.of_pairs(kept, n_labels, occurs)
    inner = np.ones(len(batch.gold), dtype=bool)
    inner[np.cumsum(batch.lengths)[batch.lengths > 0] - 1] = False
    left = np.flatnonzero(inner)
    pairs = batch.gold[left].astype(np.int64) * n_labels + batch.gold[left + 1]
    pairs, count = np.unique(pairs, return_counts=True)
    everything = np.arange(n_labels**2) if possible_transitions else None
    transitions = _frequent(pairs, count.astype(np.float64), everything, min_freq)
    return chain_layout(n_labels, {"node": node}, {"transitions": transitions})


def _frequent(seen: Ints, frequency: Floats, everything: Ints | None, min_freq: float) -> Ints:
    """Sorted keys whose frequency suffices; those of `everything` that were not seen have 0."""
    kept = seen[frequency >= min_freq]
    if everything is not None and min_freq <= 0.0:
        kept = np.concatenate([kept, np.setdiff1d(everything, seen)])
    return np.sort(kept)


def _batch(instances: list[tuple[int, Rows, list[int]]]) -> Batch:
    rows = [i[1] for i in instances]
    lengths = np.array([r.n_rows for r in rows], dtype=np.int64)
    gold = np.array([k for i in instances for k in i[2]], dtype=np.int32)
    sizes = [np.zeros(0, np.int64), *(np.diff(r.data.offsets) for r in rows)]
    ids = np.concatenate([np.zeros(0, np.int32), *(r.data.ids for r in rows)])
    values = None
    if any(r.data.values is not None for r in rows):
        values = np.concatenate([
            np.ones(len(r.data.ids)) if r.data.values is None else r.data.values for r in rows
        ])  # fmt: skip
        values[values == ZERO] = 0.0
    return Batch(lengths, Occurrences(offsets_of(np.concatenate(sizes)), ids, values), gold)


def _labels(yseq: Any) -> list[Any]:
    given = hasattr(yseq, "__iter__") and getattr(yseq, "shape", None) != ()
    if not given or isinstance(yseq, (str, bytes, dict)) or is_sparse(yseq):
        raise TypeError(f"yseq must be a list of labels, got {type(yseq).__name__}")
    return list(yseq)


def _label(label: object, t: int) -> str:
    if isinstance(label, bytes):
        return label.decode("utf-8")
    if not isinstance(label, str):
        raise TypeError(f"labels must be str, got {type(label).__name__} in yseq[{t}]")
    return str(label)


def _differ(items: int, labels: int) -> str:
    return f"The numbers of items and labels differ: |x| = {items}, |y| = {labels}"
