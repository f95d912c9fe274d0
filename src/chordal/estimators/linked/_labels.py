"""What y says about the labels of examples, whatever reads their features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal.estimators._crf import BaseCRF
from chordal.labels import SequenceLabels, observed, targets_of
from chordal.targets import PartialLabels, SoftLabels, Target

Ints = NDArray[np.int64]
Examples = Sequence[Any]


class Known(NamedTuple):
    """What y says: the labels, and a target for every variable, one example after another."""

    labels: SequenceLabels
    target: Target
    sizes: Ints

    @property
    def n_classes(self) -> int:
        """How many labels there are."""
        return len(self.labels)

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
    """Refuse parameters that are not of their kind."""
    crf._check_parameters()


def examples_of(crf: BaseCRF, X: object, name: str = "X") -> Examples:
    """X as this estimator checks it, whatever its variables' features are."""
    return crf._examples(X, name)


def known_labels(
    crf: BaseCRF, X: Examples, y: object, sizes: Ints, labels: SequenceLabels | None = None
) -> Known:
    """What y says about examples of so many variables; with `labels`, no others may occur."""
    flat = crf._flat(y, X)
    crf._check_lengths(sizes, flat)
    found = crf._new_labels() if labels is None else labels.copy()
    target = targets_of(found, flat, crf.ignore_label)
    if labels is not None and len(found) > len(labels):
        new = found.labels[len(labels)]
        raise ValueError(f"warm_start keeps the labels, but y has a new one: {new!r}")
    return Known(found, target, sizes)


def gold_codes(
    crf: BaseCRF, labels: SequenceLabels, X: Examples, y: object, sizes: Ints, name: str
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Places of other examples' labels in the classes, −1 for new ones; and which are observed."""
    flat = crf._flat(y, X, f"{name}y")
    crf._check_lengths(sizes, flat, name)
    numbers, seen = labels.encode(flat, unknown=-1), observed(flat, crf.ignore_label)
    if not seen.any():
        raise ValueError(f"{name}y has no label that is observed")
    return np.where(numbers < 0, -1, labels.codes(numbers)), seen
