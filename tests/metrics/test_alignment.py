"""The alignment error rate."""

import pytest

from chordal.metrics import alignment_error_rate, alignment_scores


def test_och_and_neys_definition():
    sure = [{(0, 0), (1, 1)}, {(0, 2)}]
    possible = [{(0, 0), (1, 1), (2, 1)}, {(0, 2), (0, 1)}]
    found = [{(0, 0), (2, 1), (3, 3)}, {(0, 1)}]
    scores = alignment_scores(sure, found, possible)
    assert (scores.found, scores.sure) == (4, 3)
    assert scores.precision == 3 / 4
    assert scores.recall == 1 / 3
    assert scores.error_rate == pytest.approx(1 - (1 + 3) / (4 + 3))


def test_targets_are_links():
    assert alignment_error_rate([{(0, 1), (2, 0)}], [[1, -1, 0]]) == 0.0
    assert alignment_error_rate([{(0, 1)}], [[0]]) == 1.0
    assert alignment_error_rate([set()], [[-1]]) == 0.0


def test_bad_input():
    with pytest.raises(ValueError, match="same length, got 1, 2 and 1"):
        alignment_scores([set()], [set(), set()])
    with pytest.raises(ValueError, match="set of pairs, or a target"):
        alignment_scores([set()], [[(0, 1)]])
