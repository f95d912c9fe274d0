"""Labels of any kind: they come back in the type in which they were given."""

import numpy as np
import pytest

from chordal import ChainCRF

LABELS = {
    "str": ["a", "b"],
    "int": [1, 7],
    "negative int": [-3, 10],
    "bool": [False, True],
    "tuples of one length": [("a", 1), ("b", 2)],
    "tuples of several lengths": [("a",), ("b", 2, 3)],
    "int and str": [1, "one"],
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_come_back_as_they_were_given(kind):
    first, second = LABELS[kind]
    X = [[["u"], ["v"], ["v"]], [["v"]]] * 3
    y = [[first, second, second], [second]] * 3
    crf = ChainCRF(l2=0.01).fit(X, y)
    predicted = crf.predict(X)
    assert predicted == y
    assert all(type(a) is type(b) for p, t in zip(predicted, y, strict=True) for a, b in zip(p, t))  # noqa: B905
    assert crf.classes_.shape == (2,)
    assert set(crf.classes_.tolist()) == {first, second}
    assert crf.score(X, y) == 1.0
    assert crf.k_best(X, 1)[0][0][0] == y[0]
    assert all(type(p) is list for p in predicted)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8", "<U2", "<U7", "bool"])
def test_arrays_of_labels_come_back_with_their_dtype(dtype):
    X = [[["u"], ["v"], ["v"]], [["v"]]] * 3
    y = [np.array([0, 1, 1]).astype(dtype), np.array([1]).astype(dtype)] * 3
    crf = ChainCRF(l2=0.01).fit(X, y)
    predicted = crf.predict(X)
    assert all(isinstance(p, np.ndarray) and p.dtype == dtype for p in predicted)
    assert all((p == t).all() for p, t in zip(predicted, y, strict=True))
    assert all(s.dtype == dtype for s in crf.sample(X, 2)[0])


def test_arrays_of_objects_come_back_as_such():
    y = [np.array(["a", 1], dtype=object)]
    (predicted,) = ChainCRF(l2=0.01).fit([[["u"], ["v"]]], y).predict([[["u"], ["v"]]])
    assert predicted.dtype == object
    assert predicted.tolist() == ["a", 1]


@pytest.mark.parametrize(
    ("first", "second"),
    [(np.array(["a"]), np.array(["a", "long"])), (np.int8([1]), np.int64([1, 300]))],
    ids=["str", "int"],
)
def test_arrays_of_different_width_lose_nothing(first, second):
    X = [[["u"]], [["u"], ["v"]]]
    predicted = ChainCRF(l2=0.01).fit(X, [first, second]).predict(X)
    assert [p.tolist() for p in predicted] == [first.tolist(), second.tolist()]


def test_classes_are_sorted_however_often_they_occur():
    crf = ChainCRF().fit([[["u"], ["v"], ["v"]]], [["b", "c", "c"]])
    assert crf.classes_.tolist() == ["b", "c"]
    crf.partial_fit([[["u"]]], [["a"]])
    assert crf.classes_.tolist() == ["a", "b", "c"]
