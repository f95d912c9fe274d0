"""Shares of right positions and right sequences."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chordal.metrics import (
    hamming_accuracy,
    sequence_counts,
    token_accuracy,
    zero_one_accuracy,
)

TRUE = [["a", "b", "c", "a"], ["b"], [], ["c", "c"]]
PRED = [["a", "b", "a", "b"], ["b"], [], ["a", "a"]]

sequences = st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc"))))


def test_by_hand():
    assert token_accuracy(TRUE, PRED) == 3 / 7
    assert hamming_accuracy(TRUE, PRED) == (0.5 + 1 + 0) / 3  # the empty one has no share
    assert zero_one_accuracy(TRUE, PRED) == 2 / 4  # and has no mistake


@given(sequences.filter(any))
def test_one_after_the_other(pairs):
    y_true, y_pred = ([[pair[k] for pair in s] for s in pairs] for k in (0, 1))
    right = [[a == b for a, b in s] for s in pairs]
    shares = [sum(s) / len(s) for s in right if s]
    every = list(chain.from_iterable(right))
    assert token_accuracy(y_true, y_pred) == pytest.approx(np.mean(every), rel=1e-12)
    assert hamming_accuracy(y_true, y_pred) == pytest.approx(np.mean(shares), rel=1e-12)
    assert zero_one_accuracy(y_true, y_pred) == pytest.approx(np.mean(list(map(all, right))))


def test_labels_of_other_types():
    assert token_accuracy([[1, "1", (2, 3)]], [[1.0, 1, (2, 3)]]) == 2 / 3
    assert token_accuracy([np.array([1, 2])], [[1, 3]]) == 0.5


def test_counts():
    counts = sequence_counts("token_accuracy", TRUE, PRED)
    assert counts.numerator.tolist() == [2, 1, 0, 0]
    assert counts.denominator.tolist() == [4, 1, 0, 2]
    assert sequence_counts("hamming_accuracy", TRUE, PRED).denominator.tolist() == [1, 1, 0, 1]
    assert sequence_counts("zero_one_accuracy", TRUE, PRED).numerator.tolist() == [0, 1, 1, 0]
