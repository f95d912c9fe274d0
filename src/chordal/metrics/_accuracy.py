"""Accuracy of positions and of sequences, and their counts per sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal.metrics._encode import encode_pair

Floats = NDArray[np.float64]


class SequenceCounts(NamedTuple):
    """Two numbers per sequence; the metric is the ratio of their sums.

    So `bootstrap` can draw thousands of samples of sequences without reading labels again.

    >>> SequenceCounts(np.array([1.0, 2.0]), np.array([2.0, 2.0])).value
    0.75
    """

    numerator: Floats
    denominator: Floats

    @property
    def value(self) -> float:
        """The metric on all sequences."""
        total = float(self.denominator.sum())
        return float(self.numerator.sum()) / total if total else 0.0


def token_accuracy(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """The share of correct positions.

    >>> token_accuracy([["a", "b", "b"], ["a"]], [["a", "b", "a"], ["a"]])
    0.75
    """
    return token_counts(y_true, y_pred).value


def hamming_accuracy(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """The share of correct positions in each sequence, averaged over sequences.

    Empty sequences are skipped.

    >>> hamming_accuracy([["a", "b"], ["a"]], [["a", "a"], ["a"]])
    0.75
    """
    return hamming_counts(y_true, y_pred).value


def zero_one_accuracy(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """The share of sequences without any error.

    >>> zero_one_accuracy([["a", "b"], ["a"]], [["a", "a"], ["a"]])
    0.5
    """
    return zero_one_counts(y_true, y_pred).value


def token_counts(y_true: Sequence[Any], y_pred: Sequence[Any]) -> SequenceCounts:
    """Correct positions and all positions of each sequence."""
    right, length = _right_and_length(y_true, y_pred)
    return SequenceCounts(right, length)


def hamming_counts(y_true: Sequence[Any], y_pred: Sequence[Any]) -> SequenceCounts:
    """The share of correct positions of each sequence, and 1 if it is not empty."""
    right, length = _right_and_length(y_true, y_pred)
    return SequenceCounts(right / np.maximum(length, 1.0), (length > 0).astype(np.float64))


def zero_one_counts(y_true: Sequence[Any], y_pred: Sequence[Any]) -> SequenceCounts:
    """1 for each sequence without an error, and 1 for each sequence."""
    right, length = _right_and_length(y_true, y_pred)
    return SequenceCounts((right == length).astype(np.float64), np.ones(len(length)))


def _right_and_length(y_true: Sequence[Any], y_pred: Sequence[Any]) -> tuple[Floats, Floats]:
    pair = encode_pair(y_true, y_pred)
    right = pair.per_sequence(pair.true == pair.pred)
    return right.astype(np.float64), pair.lengths.astype(np.float64)
