"""Labels in arrays of integers take a quicker way than lists, to the same numbers."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from chordal.labels import SequenceLabels


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.int16])
@pytest.mark.parametrize("ranked", [False, True])
def test_integers_in_arrays_as_in_lists(dtype, ranked):
    rng = np.random.default_rng(0)
    arrays = [
        rng.choice([7, 3, 90, 0], size=n, p=[0.1, 0.4, 0.4, 0.1]).astype(dtype) for n in (9, 40)
    ]
    lists = [own.tolist() for own in arrays]
    quick, slow = SequenceLabels.of(arrays, ranked), SequenceLabels.of(lists, ranked)
    assert quick.labels == slow.labels
    assert all(type(label) is int for label in quick.labels)
    assert_array_equal(quick.encode(arrays), slow.encode(lists))
    assert quick.encode(arrays).dtype == np.int32
    more = [np.array([3, 5, 200, 90])]
    assert_array_equal(
        quick.encode(more, unknown=-1), slow.encode([own.tolist() for own in more], unknown=-1)
    )
    with pytest.raises(ValueError, match=r"y\[0\]\[1\] is the label 5, which was not seen"):
        quick.encode(more)
    quick.learn([np.array([5, 5, 90])])
    slow.learn([[5, 5, 90]])
    assert quick.labels == slow.labels


@pytest.mark.parametrize("y", [[-1, 4, -1], [10**9, 0], [True, False], [0.5, 2.0], ["a", "b"]])
def test_other_arrays(y):
    labels = SequenceLabels.of([np.array(y)])
    assert sorted(labels.labels) == sorted(set(y))
    assert [labels.labels[k] for k in labels.encode([np.array(y)])] == y


def test_labels_of_another_type_are_unknown():
    labels = SequenceLabels.of([["a", "b"]])
    assert labels.encode([np.array([0, 1])], unknown=-1).tolist() == [-1, -1]
    mixed = SequenceLabels.of([["a", 1]])
    assert mixed.encode([np.array([1, 0])], unknown=-7).tolist() == [1, -7]
