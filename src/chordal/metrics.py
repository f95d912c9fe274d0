"""How good predicted label sequences are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chordal._validate import check_same_lengths, check_sequences


def _matches(y_true: Sequence[Any], y_pred: Sequence[Any]) -> list[np.ndarray]:
    true, pred = check_sequences(y_true, "y_true"), check_sequences(y_pred, "y_pred")
    check_same_lengths(np.array([len(t) for t in true]), pred)
    return [
        np.array([a == b for a, b in zip(t, p, strict=True)], dtype=bool)
        for t, p in zip(true, pred, strict=True)
    ]


def token_accuracy(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """The share of all positions that are right.

    >>> token_accuracy([["a", "b", "b"], ["a"]], [["a", "b", "a"], ["a"]])
    0.75
    """
    return float(np.concatenate(_matches(y_true, y_pred)).mean())


def hamming_accuracy(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """The share of right positions in each sequence, averaged over the sequences.

    >>> hamming_accuracy([["a", "b"], ["a"]], [["a", "a"], ["a"]])
    0.75
    """
    return float(np.mean([m.mean() for m in _matches(y_true, y_pred) if len(m)]))


def zero_one_accuracy(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """The share of sequences without any mistake.

    >>> zero_one_accuracy([["a", "b"], ["a"]], [["a", "a"], ["a"]])
    0.5
    """
    return float(np.mean([m.all() for m in _matches(y_true, y_pred)]))
