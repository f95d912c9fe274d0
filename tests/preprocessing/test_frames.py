"""Data frames as sequences, and back."""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from chordal import ChainCRF
from chordal.preprocessing import frame_column, sequences_from_frame

DATA = {
    "sentence": ["a", "b", "a", "b", "a"],
    "place": [2, 0, 0, 1, 1],
    "word": ["Rome", "Yes", "in", None, "old"],
    "size": [4.0, 3.0, None, 1.0, 3.0],
    "vec": [[1.0, 0.0], [0.0, 0.0], [0.5, 0.5], None, [2.0, 2.0]],
    "tag": ["L", "O", "O", "O", "O"],
}


@pytest.fixture(params=["pandas", "polars"])
def make(request):
    return pytest.importorskip(request.param).DataFrame


def test_rows_of_a_group_are_a_sequence_wherever_they_stand(make):
    X, y = sequences_from_frame(make(DATA), "sentence", "tag", features=["word", "size"])
    assert X == [
        [{"word": "Rome", "size": 4.0}, {"word": "in"}, {"word": "old", "size": 3.0}],
        [{"word": "Yes", "size": 3.0}, {"size": 1.0}],
    ]
    assert y == [["L", "O", "O"], ["O", "O"]]


def test_order_and_the_way_back(make):
    frame = make(DATA)
    X, y = sequences_from_frame(frame, "sentence", "tag", order="place")
    assert [[token.get("word") for token in x] for x in X] == [["in", "old", "Rome"], ["Yes", None]]
    assert y == [["O", "O", "L"], ["O", "O"]]
    assert frame_column(frame, y, "sentence", order="place") == DATA["tag"]
    numbered = [[0, 1, 2], [3, 4]]
    assert frame_column(frame, numbered, "sentence", order="place") == [2, 3, 0, 4, 1]
    assert frame_column(frame, numbered, "sentence") == [0, 3, 1, 4, 2]


def test_vectors(make):
    X, _ = sequences_from_frame(make(DATA), "sentence")
    assert "tag" in X[0][0]
    assert_array_equal(X[0][0]["vec"], [1.0, 0.0])
    assert "vec" not in X[1][1]
    assert isinstance(X[0][2]["vec"], np.ndarray)


def test_a_model_learns_from_a_frame(make):
    frame = make(DATA)
    X, y = sequences_from_frame(frame, "sentence", "tag", order="place")
    crf = ChainCRF(l2=0.01).fit(X, y)
    assert frame_column(frame, crf.predict(X), "sentence", order="place") == DATA["tag"]


def test_several_columns_name_a_sequence(make):
    frame = make({"doc": [1, 1, 2], "sent": [1, 2, 1], "w": ["a", "b", "c"]})
    X, y = sequences_from_frame(frame, ["doc", "sent"])
    assert X == [[{"w": "a"}], [{"w": "b"}], [{"w": "c"}]]
    assert y is None


def test_pandas_own_kinds():
    frame = pd.DataFrame(
        {
            "s": [1, 1],
            "text": pd.array(["a", pd.NA], dtype="string"),
            "kind": pd.Categorical(["x", None]),
            "flag": pd.array([True, pd.NA], dtype="boolean"),
            "count": pd.array([pd.NA, 3], dtype="Int64"),
            "vec": [np.ones(2, dtype=np.float32), np.zeros(2, dtype=np.float32)],
        },
        index=[7, 7],
    )
    X, _ = sequences_from_frame(frame, "s", features=["text", "kind", "flag", "count"])
    assert X == [[{"text": "a", "kind": "x", "flag": True}, {"count": 3}]]
    X, _ = sequences_from_frame(frame, "s", features=["vec"])
    assert X[0][0]["vec"].dtype == np.float32


def test_bad_frames(make):
    frame = make(DATA)
    with pytest.raises(ValueError, match="no column 'sent'; it has sentence, place"):
        sequences_from_frame(frame, "sent")
    with pytest.raises(
        ValueError, match="column 'word' has no value in 1 rows, the first is row 3"
    ):
        sequences_from_frame(frame, "sentence", "word")
    with pytest.raises(ValueError, match=r"column 'word' has no value .* every row needs its seq"):
        sequences_from_frame(frame, "word")
    with pytest.raises(ValueError, match="must match the frame, 2 sequences with 5 rows"):
        frame_column(frame, [["O"]], "sentence")
    with pytest.raises(ValueError, match="group must name a column"):
        sequences_from_frame(frame, [])


def test_what_is_no_feature():
    frame = pd.DataFrame({"s": [1], "when": pd.to_datetime(["2020-01-01"])})
    with pytest.raises(TypeError, match="column 'when' holds Timestamp in row 0"):
        sequences_from_frame(frame, "s")
    with pytest.raises(TypeError, match=r"frame must be a data frame .* got dict"):
        sequences_from_frame(DATA, "sentence")


def test_lazy_frames():
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match="got LazyFrame; collect it first"):
        sequences_from_frame(polars.LazyFrame(DATA), "sentence")


def test_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(ImportError, match=r'pip install "chordal\[frames\]"'):
        sequences_from_frame(pd.DataFrame(DATA), "sentence")
