"""Smaller models: without weights that say little, in shorter numbers."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from chordal._validate import (
    check_choice,
    check_number,
    check_same_lengths,
    check_sequences,
)
from chordal.estimators._chain_prediction import ChainPrediction
from chordal.features import AttributeFeatures, ChainFeatures, Input, RowFeatures, VocabularyInput
from chordal.structures import offsets_of

M = TypeVar("M", bound="Compactable")


@dataclass(frozen=True)
class CompactReport:
    """What `compact` did, and what it cost."""

    n_weights_before: int
    n_weights: int
    largest_dropped: float  # magnitude
    largest_rounding: float
    labels_changed: float | None  # share of positions, with X
    accuracy_before: float | None  # with X and y
    accuracy: float | None

    def __str__(self) -> str:
        text = (
            f"{self.n_weights:,} of {self.n_weights_before:,} weights kept; largest dropped "
            f"{self.largest_dropped:.3g}, largest rounding {self.largest_rounding:.3g}"
        )
        if self.labels_changed is not None:
            text += f"; {self.labels_changed:.4%} of the labels changed"
        if self.accuracy is not None:
            text += f"; accuracy {self.accuracy_before:.4%} before, {self.accuracy:.4%} after"
        return text


class Compactable(ChainPrediction):
    """Models that can be made smaller."""

    compact_report_: CompactReport

    def compact(
        self: M,
        threshold: float = 0.0,
        dtype: str = "float64",
        X: Sequence[Any] | None = None,
        y: Sequence[Any] | None = None,
    ) -> M:
        """A smaller copy; `compact_report_` says what it lost.

        Parameters
        ----------
        threshold : float
            Weights of attributes and transitions of this magnitude or less are dropped, and
            attributes without weights forgotten. Zero changes no prediction. Arrays and sparse
            matrices keep a weight for every column.
        dtype : {"float64", "float32", "float16"}
            Round weights to this, which a saved model is then stored in.
        X, y : optional
            Sequences, and perhaps their labels, on which to measure the effect.

        Examples
        --------
        >>> from chordal import ChainCRF
        >>> X, y = [[["w=a", "rare"], ["w=b"]], [["w=b"], ["w=a"]]], [["A", "B"], ["B", "A"]]
        >>> small = ChainCRF(l1=0.1, l2=0.1).fit(X, y).compact(dtype="float32", X=X, y=y)
        >>> small.compact_report_.accuracy
        1.0
        """
        self._check_fitted()
        check_number("threshold", threshold)
        check_choice("dtype", dtype, ["float64", "float32", "float16"])
        if X is None and y is not None:
            raise ValueError("y needs X: give the sequences whose labels y holds")
        keep = np.abs(self.weights_) > threshold
        small = copy.copy(self)
        small._expanded = None
        slices, old = self.features_.slices, self.features_
        parts = [
            _reduced(source, rows, keep[slices[name]])
            for name, source, rows in zip(
                ("node", "edge"), self._inputs, (old.node, old.edge), strict=True
            )
        ]
        for name in ("bias", "start", "end"):  # few: they stay
            keep[slices[name]] = True
        new = ChainFeatures(
            old.n_labels,
            parts[0][1],
            parts[1][1],
            old.transitions[keep[slices["transitions"]]],
            old.bias,
            old.ends,
        )
        groups = [part[2] for part in parts]
        groups += [np.flatnonzero(keep[slices[name]]) for name in list(slices)[2:]]
        starts = (s.start for s in slices.values())
        chosen = np.concatenate([a + group for a, group in zip(starts, groups, strict=True)])
        exact = self.weights_[chosen]
        with np.errstate(over="ignore"):
            rounded = exact.astype(dtype).astype(np.float64)
        if not np.isfinite(rounded).all():
            raise ValueError(f"some weights are too large for {dtype}; take a longer dtype")
        small._inputs = (parts[0][0], parts[1][0])
        small.features_, small.weights_ = new, rounded
        dropped = np.abs(np.delete(self.weights_, chosen))
        small.compact_report_ = CompactReport(
            old.n_weights,
            new.n_weights,
            float(dropped.max(initial=0.0)),
            float(np.abs(exact - rounded).max(initial=0.0)),
            *_effect(self, small, X, y),
        )
        return small


def _reduced(
    source: Input | None, rows: RowFeatures | None, keep: NDArray[np.bool_]
) -> tuple[Any, Any, NDArray[np.int64]]:
    """Input and features with the kept weights only, and which weights these are, in order."""
    if not isinstance(source, VocabularyInput) or not isinstance(rows, AttributeFeatures):
        return source, rows, np.arange(len(keep))
    keys = rows.keys()
    kept = np.flatnonzero(keep)
    attributes, column = np.unique(keys.column[kept], return_inverse=True)
    order = np.lexsort((keys.output[kept], column))
    offsets = offsets_of(np.bincount(column, minlength=len(attributes)))
    features = AttributeFeatures(
        len(attributes),
        rows.n_outputs,
        offsets,
        keys.output[kept][order].astype(np.int32),
        rows.arrays()["counts"][attributes],
    )
    # The new layout has an order of its own.
    new = features.keys()
    place = column[order] * np.int64(rows.n_outputs) + keys.output[kept][order]
    at = np.searchsorted(place, new.column * np.int64(rows.n_outputs) + new.output)
    return source.with_attributes(attributes), features, kept[order][at]


def _effect(
    before: ChainPrediction,
    after: ChainPrediction,
    X: Sequence[Any] | None,
    y: Sequence[Any] | None,
) -> tuple[float | None, float | None, float | None]:
    if X is None:
        return None, None, None
    X = before._sequences(X)  # once: it may be a generator
    predicted = before.predict(X)
    old, new = _flat(predicted), _flat(after.predict(X))
    changed = _share([a != b for a, b in zip(old, new, strict=True)])
    if y is None:
        return changed, None, None
    y = check_sequences(y, "y")
    check_same_lengths(np.array([len(labels) for labels in predicted]), y)
    gold = _flat(y)
    right = [_share([a == b for a, b in zip(found, gold, strict=True)]) for found in (old, new)]
    return changed, right[0], right[1]


def _flat(y: Sequence[Any]) -> list[Any]:
    return [label for sequence in y for label in sequence]


def _share(flags: list[bool]) -> float:
    return sum(map(bool, flags)) / max(1, len(flags))
