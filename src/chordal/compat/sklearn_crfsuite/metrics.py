"""Metrics of label sequences: scikit-learn's, over all positions, and whole sequences.

>>> flat_f1_score([["x", "z", "y"], ["x", "x"]], [["y", "z", "y"], ["x", "y"]], average="macro")
0.666...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_same_lengths
from chordal.compat.sklearn_crfsuite.utils import flatten

Sequences = Sequence[Sequence[Any]]


def flat_accuracy_score(y_true: Sequences, y_pred: Sequences) -> float:
    """The share of positions that are right."""
    return float(_flat("accuracy_score", y_true, y_pred))


def flat_precision_score(
    y_true: Sequences, y_pred: Sequences, **kwargs: object
) -> float | NDArray[Any]:
    """scikit-learn's `precision_score` over all positions."""
    return _flat("precision_score", y_true, y_pred, **kwargs)


def flat_recall_score(
    y_true: Sequences, y_pred: Sequences, **kwargs: object
) -> float | NDArray[Any]:
    """scikit-learn's `recall_score` over all positions."""
    return _flat("recall_score", y_true, y_pred, **kwargs)


def flat_f1_score(y_true: Sequences, y_pred: Sequences, **kwargs: object) -> float | NDArray[Any]:
    """scikit-learn's `f1_score` over all positions."""
    return _flat("f1_score", y_true, y_pred, **kwargs)


def flat_fbeta_score(
    y_true: Sequences, y_pred: Sequences, beta: float, **kwargs: object
) -> float | NDArray[Any]:
    """scikit-learn's `fbeta_score` over all positions."""
    return _flat("fbeta_score", y_true, y_pred, beta=beta, **kwargs)


def flat_classification_report(
    y_true: Sequences, y_pred: Sequences, labels: object = None, **kwargs: object
) -> str | dict[str, Any]:
    """scikit-learn's `classification_report` over all positions."""
    return _flat("classification_report", y_true, y_pred, labels=labels, **kwargs)


def sequence_accuracy_score(y_true: Sequences, y_pred: Sequences) -> float:
    """The share of fully correct sequences; 0 without sequences.

    A sequence of another length is wrong.
    """
    if len(y_true) != len(y_pred):
        raise ValueError(
            "y_true and y_pred must have the same number of sequences, "
            f"got {len(y_true)} and {len(y_pred)}"
        )
    if len(y_true) == 0:
        return 0.0
    right = sum(list(t) == list(p) for t, p in zip(y_true, y_pred, strict=True))
    return right / len(y_true)


def _flat(name: str, y_true: Sequences, y_pred: Sequences, **kwargs: object) -> Any:
    from sklearn import metrics

    _check(y_true, y_pred)
    return getattr(metrics, name)(flatten(y_true), flatten(y_pred), **kwargs)


def _check(y_true: Sequences, y_pred: Sequences) -> None:
    """Refuse sequences that do not match; scikit-learn would see their total lengths alone."""
    lengths = np.array([len(t) for t in y_true], dtype=np.int64)
    try:
        check_same_lengths(lengths, y_pred)
    except (TypeError, ValueError) as error:
        text = str(error).replace("X and y", "y_true and y_pred")
        text = text.replace("X[", "y_true[").replace("y[", "y_pred[")
        raise type(error)(text) from None
