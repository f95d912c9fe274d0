"""Precision, recall, F and the confusion matrix, beside scikit-learn's."""

from itertools import chain

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given
from hypothesis import strategies as st

from chordal.metrics import (
    confusion_matrix,
    f1_score,
    precision_recall_fscore,
    precision_score,
    recall_score,
)

LABELS = ["O", "B", "I", "X", "Y"]
sequences = st.lists(
    st.lists(st.tuples(st.sampled_from(LABELS[:4]), st.sampled_from(LABELS[:4])), max_size=6),
    max_size=5,
).filter(any)
chosen = st.none() | st.permutations(LABELS).flatmap(
    lambda order: st.integers(1, len(order)).map(lambda n: order[:n])
)


def flat(y):
    return list(chain.from_iterable(y))


def unzip(pairs):
    return ([[pair[k] for pair in s] for s in pairs] for k in (0, 1))


@given(
    sequences,
    chosen,
    st.sampled_from([None, "micro", "macro", "weighted"]),
    st.sampled_from([0.5, 1.0, 2.0]),
    st.sampled_from([0.0, 1.0]),
)
def test_scores(pairs, labels, average, beta, zero):
    y_true, y_pred = unzip(pairs)
    ours = precision_recall_fscore(
        y_true, y_pred, labels=labels, average=average, beta=beta, zero_division=zero
    )
    theirs = sklearn.metrics.precision_recall_fscore_support(
        flat(y_true), flat(y_pred), labels=labels, average=average, beta=beta, zero_division=zero
    )
    for a, b in zip(ours[:3], theirs[:3], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=0)
    if average is None:
        assert ours.support.tolist() == theirs[3].tolist()


@pytest.mark.filterwarnings("ignore:A single label was found:UserWarning")
@given(sequences, chosen)
def test_confusion(pairs, labels):
    y_true, y_pred = unzip(pairs)
    names, counts = confusion_matrix(y_true, y_pred, labels=labels)
    seen = set(flat(y_true)) | set(flat(y_pred))
    assert names == (sorted(seen) if labels is None else list(labels))
    if seen & set(names) & set(flat(y_true)):  # scikit-learn refuses the others
        theirs = sklearn.metrics.confusion_matrix(flat(y_true), flat(y_pred), labels=names)
        assert counts.tolist() == theirs.tolist()
    else:
        assert not counts.any()


TRUE = [["O", "B", "I"], ["B", "O", "O"]]
PRED = [["O", "B", "O"], ["O", "O", "B"]]


def test_by_hand():
    scores = precision_recall_fscore(TRUE, PRED, labels=["B", "I"])
    assert scores.precision.tolist() == [0.5, 0.0]
    assert scores.recall.tolist() == [0.5, 0.0]
    assert scores.support.tolist() == [2, 1]


@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
def test_single_scores(average):
    options = {"labels": ["B", "I"], "average": average}
    every = precision_recall_fscore(TRUE, PRED, **options)
    assert precision_score(TRUE, PRED, **options) == every.precision
    assert recall_score(TRUE, PRED, **options) == every.recall
    assert f1_score(TRUE, PRED, **options) == every.fscore
    assert type(every.fscore) is float
    assert every.support == 3


def test_numbers_as_labels_keep_their_order():
    assert confusion_matrix([[10, 9]], [[9, 9]]).labels == [9, 10]
    assert confusion_matrix([[10, "a"]], [["a", 9]]).labels == [10, "a", 9]  # these have no order


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"average": "binary"}, ValueError, "average must be one of 'micro', 'macro', 'weighted'"),
        ({"labels": "O"}, TypeError, "labels must be a list of labels, got 'O'"),
        ({"labels": []}, ValueError, "labels is empty: give at least one label"),
        ({"labels": ["B", "B"]}, ValueError, "labels must differ from each other"),
        ({"labels": [["B"]]}, TypeError, "labels must be a list of hashable labels"),
        ({"beta": -1}, ValueError, "beta must be a number of at least 0, got -1"),
        ({"zero_division": float("nan")}, ValueError, "zero_division must be a number"),
        ({"zero_division": "warn"}, ValueError, "zero_division must be a number"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        precision_recall_fscore(TRUE, PRED, **options)


@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@pytest.mark.parametrize("zero", [0.0, 1.0])
def test_labels_that_never_occur(average, zero):
    options = {"labels": ["X", "Y"], "average": average, "zero_division": zero}
    theirs = sklearn.metrics.precision_recall_fscore_support(flat(TRUE), flat(PRED), **options)
    assert precision_recall_fscore(TRUE, PRED, **options)[:3] == theirs[:3] == (zero,) * 3


def test_a_confusion_matrix_that_would_fill_the_memory():
    y = [list(range(20_000))]
    with pytest.raises(ValueError, match="of 20000 labels is too large; choose at most 10000"):
        confusion_matrix(y, y)
    assert confusion_matrix(y, y, labels=[5, 7]).counts.tolist() == [[1, 0], [0, 1]]


def test_a_single_score_needs_an_average():
    with pytest.raises(ValueError, match="average must be one of"):
        f1_score(TRUE, PRED, average=None)
