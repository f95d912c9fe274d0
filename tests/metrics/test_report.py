"""The table per label, beside scikit-learn's: the same text and the same numbers."""

from itertools import chain

import pytest
import sklearn.metrics

from chordal.metrics import classification_report

LABELS = [None, ["B-X", "I-X"], ["B-Y", "never seen", "O"]]


def flat(y):
    return list(chain.from_iterable(y))


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("digits", [1, 2, 4])
def test_text(iob_corpus, labels, digits):
    theirs = sklearn.metrics.classification_report(
        *map(flat, iob_corpus), labels=labels, digits=digits, zero_division=0.0
    )
    ours = classification_report(*iob_corpus, labels=labels)
    assert ours.to_text(digits) == theirs
    if digits == 2:
        assert str(ours) == theirs


@pytest.mark.parametrize("labels", LABELS)
def test_dict(iob_corpus, labels):
    theirs = sklearn.metrics.classification_report(
        *map(flat, iob_corpus), labels=labels, output_dict=True, zero_division=1.0
    )
    ours = classification_report(*iob_corpus, labels=labels, zero_division=1.0).to_dict()
    assert list(ours) == list(theirs)
    for name, row in theirs.items():
        assert ours[name] == pytest.approx(row, rel=1e-12)


def test_long_names_and_numbers():
    y_true, y_pred = [[10**20, 1, 1]], [[1, 1, 10**20]]
    as_text = ([str(label) for label in flat(y)] for y in (y_true, y_pred))
    theirs = sklearn.metrics.classification_report(*as_text)
    assert str(classification_report(y_true, y_pred)) == theirs


def test_accuracy_only_where_all_labels_count(iob_corpus):
    assert classification_report(*iob_corpus).accuracy is not None
    part = classification_report(*iob_corpus, labels=["B-X"])
    assert part.accuracy is None
    assert list(part.averages) == ["micro", "macro", "weighted"]
