"""The labels of examples, independent of how their features are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal.estimators._crf import BaseCRF
from chordal.estimators._training.preparing import observed_targets, whole_sets
from chordal.labels import (
    SequenceLabels,
    merged_labels,
    observed,
    renumbered,
    single_labels,
    targets_of,
)
from chordal.targets import PartialLabels, SoftLabels, Target, kind_of

Ints = NDArray[np.int64]
Examples = Sequence[Any]


class Known(NamedTuple):
    """The label set, and a target for every variable, in the order of examples."""

    labels: SequenceLabels
    target: Target
    sizes: Ints

    @property
    def n_classes(self) -> int:
        """How many labels there are."""
        return len(self.labels)

    @property
    def kind(self) -> str:
        """Of the target: "hard", "soft" or "partial"."""
        return kind_of(self.target)

    def by_class(self) -> list[NDArray[Any]]:
        """Of each example the classes' numbers [n], sets [n, L] or distributions [n, L]."""
        labels, target, n = self.labels, self.target, len(self.labels)
        values: NDArray[Any]
        if isinstance(target, PartialLabels):
            values = target.allowed.reshape(-1, n)[:, labels.order]
        elif isinstance(target, SoftLabels):
            values = target.probability.reshape(-1, n)[:, labels.order]
        else:
            values = labels.codes(target).astype(np.int64)
        return np.split(values, np.cumsum(self.sizes)[:-1])


def check_crf(crf: BaseCRF) -> None:
    """Raise an error for parameters of the wrong type or value."""
    crf._check_parameters()


def examples_of(crf: BaseCRF, X: object, name: str = "X") -> Examples:
    """X as this estimator checks it, whatever its variables' features are."""
    return crf._examples(X, name)


def checked_labels(crf: BaseCRF, X: Examples, y: object, sizes: Ints) -> Sequence[Any]:
    """The labels of each example, variable after variable: as many as it has."""
    flat = crf._flat(y, X)
    crf._check_lengths(sizes, flat)
    return flat


def known_labels(
    crf: BaseCRF,
    X: Examples,
    y: object,
    sizes: Ints,
    labels: SequenceLabels | None = None,
    part: bool = False,
) -> Known:
    """The targets in y for examples of these sizes; with `labels`, new labels are errors.

    Of a `part` of the data, which has variables, no label need be observed.
    """
    flat = checked_labels(crf, X, y, sizes)
    found = crf._new_labels() if labels is None else labels.copy()
    target: Target | None
    if part:
        n = int(sizes.sum())
        target = observed_targets(found, flat, n, crf.ignore_label)
        if target is None:
            # Without labels, one stands for those of other parts.
            target = whole_sets(n, max(1, len(found)))
    else:
        target = targets_of(found, flat, crf.ignore_label)
    if labels is not None and len(found) > len(labels):
        new = found.labels[len(labels)]
        raise ValueError(
            f"warm_start keeps the labels, but y has the new label {new!r}; fit without warm_start"
        )
    return Known(found, target, sizes)


def all_labels(
    crf: BaseCRF, parts: Sequence[tuple[SequenceLabels, str]], old: SequenceLabels | None
) -> SequenceLabels:
    """One numbering of the labels of parts, as if they had been read at once.

    parts : the labels of each, and what kind of target it has
    """
    if {"soft", "partial"} <= {kind for _, kind in parts}:
        raise ValueError(
            "y must not mix sets or None with distributions, even in different partitions"
        )
    known = crf._new_labels() if old is None else old
    whole = merged_labels(known, [labels for labels, _ in parts])[0]
    if not len(whole):
        raise ValueError("y names no label: no variable is observed")
    return whole


def renumbered_labels(
    crf: BaseCRF, X: Examples, y: object, known: Known, whole: SequenceLabels
) -> Known:
    """What y says of a part, by the numbers of all labels."""
    if known.kind == "partial" and not len(known.labels):
        return known._replace(labels=whole, target=whole_sets(len(known.target), len(whole)))
    seen = observed(crf._flat(y, X), crf.ignore_label) if known.kind == "partial" else None
    numbers = merged_labels(whole, [known.labels])[1][0]
    return known._replace(labels=whole, target=renumbered(known.target, numbers, len(whole), seen))


def gold_codes(
    crf: BaseCRF, labels: SequenceLabels, X: Examples, y: object, sizes: Ints, name: str
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Class indices of other examples' labels (−1 for new ones), and which are observed."""
    flat = single_labels(labels, crf._flat(y, X, f"{name}y"))
    crf._check_lengths(sizes, flat, name)
    numbers, seen = labels.encode(flat, unknown=-1), observed(flat, crf.ignore_label)
    return np.where(numbers < 0, -1, labels.codes(numbers)), seen
