"""Precision, recall and F of each label over all positions, and their averages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_choice, check_number
from chordal.metrics._encode import Ints, Pair, encode_pair, sorted_labels

Floats = NDArray[np.float64]
AVERAGES = ("micro", "macro", "weighted")
MOST_LABELS = 10_000  # of a confusion matrix: 800 MB


class LabelScores(NamedTuple):
    """Arrays with an entry per label, or, averaged, numbers; `support` counts true positions."""

    precision: Any
    recall: Any
    fscore: Any
    support: Any


class Confusion(NamedTuple):
    """Number of positions by true label (row) and predicted label (column)."""

    labels: list[Any]
    counts: Ints


def precision_recall_fscore(
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    *,
    labels: Sequence[Any] | None = None,
    average: str | None = None,
    beta: float = 1.0,
    zero_division: float = 0.0,
) -> LabelScores:
    """Precision, recall, F and support over all positions, as scikit-learn counts them.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences
    labels : list, optional
        The labels that count, in this order; omit "O" to score only entities. By default all,
        sorted.
    average : {None, "micro", "macro", "weighted"}
        None returns arrays with an entry per label; "weighted" weights labels by support.
    beta : float
        Weight of recall relative to precision in F.
    zero_division : float
        The value of 0 / 0, such as the precision of a label that was never predicted.

    Examples
    --------
    >>> scores = precision_recall_fscore([["a", "b", "b"]], [["a", "b", "a"]])
    >>> scores.precision, scores.recall, scores.support
    (array([0.5, 1. ]), array([1. , 0.5]), array([1, 2]))
    >>> precision_recall_fscore([["a", "b", "b"]], [["a", "b", "a"]], average="macro").precision
    0.75
    """
    if average is not None:
        check_choice("average", average, AVERAGES)
    check_number("beta", beta)
    check_number("zero_division", zero_division)
    pair = encode_pair(y_true, y_pred)
    _, correct, true, found = tally(pair, labels)
    return scores_of(correct, true, found, average, float(beta), float(zero_division))


def precision_score(
    y_true: Sequence[Any], y_pred: Sequence[Any], *, average: str = "weighted", **options: Any
) -> float:
    """Averaged precision; options as in `precision_recall_fscore`."""
    check_choice("average", average, AVERAGES)
    return precision_recall_fscore(y_true, y_pred, average=average, **options).precision


def recall_score(
    y_true: Sequence[Any], y_pred: Sequence[Any], *, average: str = "weighted", **options: Any
) -> float:
    """Averaged recall; options as in `precision_recall_fscore`."""
    check_choice("average", average, AVERAGES)
    return precision_recall_fscore(y_true, y_pred, average=average, **options).recall


def f1_score(
    y_true: Sequence[Any], y_pred: Sequence[Any], *, average: str = "weighted", **options: Any
) -> float:
    """Averaged F1; options as in `precision_recall_fscore`.

    >>> f1_score([["B-LOC", "O"]], [["B-LOC", "B-PER"]], average="micro", labels=["B-LOC", "B-PER"])
    0.6666666666666666
    """
    check_choice("average", average, AVERAGES)
    return precision_recall_fscore(y_true, y_pred, average=average, **options).fscore


def confusion_matrix(
    y_true: Sequence[Any], y_pred: Sequence[Any], *, labels: Sequence[Any] | None = None
) -> Confusion:
    """How often each label was predicted for each true label.

    >>> confusion_matrix([["a", "b", "b"]], [["a", "b", "a"]])
    Confusion(labels=['a', 'b'], counts=array([[1, 0],
                                               [1, 1]]))
    """
    pair = encode_pair(y_true, y_pred)
    chosen, index = _chosen(pair, labels)
    if len(chosen) > MOST_LABELS:
        raise ValueError(
            f"a confusion matrix of {len(chosen)} labels is too large; "
            f"choose at most {MOST_LABELS} with labels="
        )
    row, column = index[pair.true], index[pair.pred]
    kept = (row >= 0) & (column >= 0)
    size = len(chosen)
    flat = np.bincount(row[kept] * size + column[kept], minlength=size * size)
    return Confusion(chosen, flat.reshape(size, size))


def tally(pair: Pair, labels: Sequence[Any] | None) -> tuple[list[Any], Ints, Ints, Ints]:
    """The labels that count, and of each: right, true and predicted positions."""
    chosen, index = _chosen(pair, labels)

    def count(numbers: Ints) -> Ints:
        places = index[numbers]
        return np.bincount(places[places >= 0], minlength=len(chosen))

    return chosen, count(pair.true[pair.true == pair.pred]), count(pair.true), count(pair.pred)


def scores_of(
    correct: Ints, true: Ints, found: Ints, average: str | None, beta: float, zero: float
) -> LabelScores:
    """Scores of the counts, averaged or not."""
    if average == "micro":
        correct, true, found = (np.array([a.sum()]) for a in (correct, true, found))
    squared = beta * beta
    scores = (
        _ratio(correct, found, zero),
        _ratio(correct, true, zero),
        _ratio((1 + squared) * correct, squared * true + found, zero),
    )
    if average is None:
        return LabelScores(*scores, true)
    weights = true if average == "weighted" and true.any() else np.ones(len(true))
    precision, recall, fscore = (float(np.average(score, weights=weights)) for score in scores)
    return LabelScores(precision, recall, fscore, int(true.sum()))


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any], zero: float) -> Floats:
    ratio = np.full(len(numerator), zero)
    return np.divide(numerator, denominator, out=ratio, where=denominator > 0)


def _chosen(pair: Pair, labels: Sequence[Any] | None) -> tuple[list[Any], Ints]:
    """The labels that count, and the place of each numbered label among them, or −1."""
    number = {label: k for k, label in enumerate(pair.labels)}
    if labels is None:
        chosen = sorted_labels(pair.labels)
    else:
        chosen = _check_labels(labels)
    index = np.full(len(number), -1, dtype=np.int64)
    for place, label in enumerate(chosen):
        if label in number:
            index[number[label]] = place
    return chosen, index


def _check_labels(labels: Iterable[Any]) -> list[Any]:
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__iter__"):
        raise TypeError(f"labels must be a list of labels, got {labels!r}")
    chosen = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    try:
        distinct = len(set(chosen))
    except TypeError:
        raise TypeError(f"labels must be a list of hashable labels, got {labels!r}") from None
    if not chosen:
        raise ValueError("labels is empty: give at least one label, or None for all")
    if distinct < len(chosen):
        raise ValueError(f"labels must differ from each other, got {labels!r}")
    return chosen
