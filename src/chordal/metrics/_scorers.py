"""Metrics by name: for scikit-learn's searches, and as counts per sequence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from chordal._optional import needed
from chordal._validate import check_choice
from chordal.metrics import _accuracy, _chunks, _labels
from chordal.metrics._accuracy import SequenceCounts

#: A fitted estimator, X and y in; a score out.
Scorer = Callable[[Any, Any, Any], float]

METRICS: dict[str, Callable[..., float]] = {
    "token_accuracy": _accuracy.token_accuracy,
    "hamming_accuracy": _accuracy.hamming_accuracy,
    "zero_one_accuracy": _accuracy.zero_one_accuracy,
    "precision": _labels.precision_score,
    "recall": _labels.recall_score,
    "f1": _labels.f1_score,
    "chunk_precision": _chunks.chunk_precision,
    "chunk_recall": _chunks.chunk_recall,
    "chunk_f1": _chunks.chunk_f1,
}

COUNTS: dict[str, Callable[..., SequenceCounts]] = {
    "token_accuracy": _accuracy.token_counts,
    "hamming_accuracy": _accuracy.hamming_counts,
    "zero_one_accuracy": _accuracy.zero_one_counts,
    "chunk_precision": partial(_chunks.chunk_counts, share="precision"),
    "chunk_recall": partial(_chunks.chunk_counts, share="recall"),
    "chunk_f1": _chunks.chunk_counts,
}


def sequence_counts(
    metric: str, y_true: Sequence[Any], y_pred: Sequence[Any], **options: object
) -> SequenceCounts:
    """Counts per sequence that give a metric, for `bootstrap`.

    Parameters
    ----------
    metric : str
        "token_accuracy", "hamming_accuracy", "zero_one_accuracy", "chunk_precision",
        "chunk_recall" or "chunk_f1".
    y_true, y_pred : lists of label sequences
    **options
        Options of the metric's function, such as ``scheme="iobes"``.

    Examples
    --------
    >>> counts = sequence_counts("chunk_f1", [["B-NP", "O"], ["B-VP"]], [["B-NP", "O"], ["O"]])
    >>> counts.numerator, counts.denominator, round(counts.value, 3)
    (array([2., 0.]), array([2., 1.]), 0.667)
    """
    check_choice("metric", metric, COUNTS)
    return COUNTS[metric](y_true, y_pred, **options)


def make_sequence_scorer(metric: str, **options: object) -> Scorer:
    """A scikit-learn scorer of a metric on lists of sequences.

    Parameters
    ----------
    metric : str
        A metric of `sequence_counts`, or "precision", "recall" or "f1" of labels.
    **options
        Options of the metric's function.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = [[["w=the"], ["w=cat"]]] * 4, [["O", "B-ANIMAL"]] * 4
    >>> scorer = make_sequence_scorer("f1", labels=["B-ANIMAL"], average="micro")
    >>> cross_val_score(ChainCRF(), X, y, scoring=scorer, cv=2)
    array([1., 1.])
    """
    with needed("sklearn", "make_sequence_scorer"):
        from sklearn.metrics import make_scorer  # takes a second to import: when asked for

    check_choice("metric", metric, METRICS)
    return make_scorer(METRICS[metric], **options)
