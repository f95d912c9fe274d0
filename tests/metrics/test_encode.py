"""What all metrics refuse, and how they say it."""

import numpy as np
import pytest

from chordal import metrics

METRICS = [
    metrics.token_accuracy,
    metrics.hamming_accuracy,
    metrics.zero_one_accuracy,
    metrics.precision_recall_fscore,
    metrics.f1_score,
    metrics.classification_report,
    metrics.confusion_matrix,
    metrics.chunk_scores,
    metrics.conlleval_report,
]

BAD = [
    ([], [], ValueError, "y_true is empty: give at least one sequence"),
    ([["a"]], [], ValueError, "y_pred is empty"),
    ([[], []], [[], []], ValueError, "every sequence is empty: there is nothing to score"),
    ("ab", "ab", TypeError, "y_true must be a list of sequences, got str"),
    (["a", "b"], ["a", "b"], TypeError, r"y_true\[0\] must be a list of labels, got str"),
    ([["a"]], [3], TypeError, r"y_pred\[0\] must be a list of labels, got int"),
    ([{"a": 1}], [["a"]], TypeError, r"y_true\[0\] must be a list of labels, got dict"),
    ([["a"], ["b"]], [["a"]], ValueError, "same number of sequences, got 2 and 1"),
    (
        [["a"], ["a", "b"]],
        [["a"], ["a"]],
        ValueError,
        r"y_true\[1\] and y_pred\[1\] must have the same length, got 2 and 1",
    ),
    ([["a"], [None]], [["a"], ["a"]], ValueError, r"y_true\[1\]\[0\] is None; give every position"),
    ([["a", "a"]], [["a", float("nan")]], ValueError, r"y_pred\[0\]\[1\] is nan; give every"),
    ([["a", ["b"]]], [["a", "b"]], TypeError, r"y_true\[0\]\[1\] is \['b'\]; labels must be hash"),
    ([np.ones((2, 2))], [np.ones((2, 2))], TypeError, r"y_true\[0\]\[0\] is .* must be hashable"),
    ([np.array("a")], [["a"]], TypeError, r"y_true\[0\] must be a list of labels, got ndarray"),
]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)
@pytest.mark.parametrize(("y_true", "y_pred", "error", "message"), BAD)
def test_bad_input(metric, y_true, y_pred, error, message):
    with pytest.raises(error, match=message):
        metric(y_true, y_pred)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)
def test_any_container_will_do(metric):
    y_true, y_pred = [["B-X", "O"], [], ["O"]], [["B-X", "B-X"], [], ["O"]]
    expected = str(metric(y_true, y_pred))
    arrays = [np.array(labels, dtype=str) for labels in y_pred]
    assert str(metric(tuple(map(tuple, y_true)), arrays)) == expected
    assert str(metric(iter(y_true), iter(y_pred))) == expected


def test_inputs_are_not_changed():
    y_true, y_pred = [["a", "b"], []], [np.array(["a", "a"]), np.array([], dtype=str)]
    metrics.classification_report(y_true, y_pred)
    assert y_true == [["a", "b"], []]
    assert y_pred[0].tolist() == ["a", "a"]
