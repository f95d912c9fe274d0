"""Clusters of words."""

import pytest

from chordal._errors import FormatError
from chordal.preprocessing import WordClusters
from chordal.text import Columns

BROWN = "0010\tthe\t200\n0010110\tRome\t7\n11\tRome\t1\n\n111\trome\t2\n"


def test_brown_files(tmp_path):
    path = tmp_path / "paths"
    path.write_text(BROWN, encoding="utf-8")
    clusters = WordClusters(path, lengths=(2, 4, 6))
    assert clusters.transform([["the", "Rome", "?"]]) == [
        [
            {"word": "the", "cluster:2": "00", "cluster:4": "0010", "cluster:6": "0010"},
            {"word": "Rome", "cluster:2": "00", "cluster:4": "0010", "cluster:6": "001011"},
            {"word": "?"},
        ]
    ]
    folded = WordClusters(str(path), ignore_case=True, name="c")
    assert folded.transform([["ROME"]]) == [[{"word": "ROME", "c": "0010110"}]]


def test_tables(tmp_path):
    path = tmp_path / "table"
    path.write_text("Rome\tcity\nthe\tfunction\n", encoding="utf-8")
    for given in (path, {"Rome": "city", "the": "function"}):
        assert WordClusters(given).transform([[["word=Rome"], ["word=x"]]]) == [
            [["word=Rome", "cluster:city"], ["word=x"]]
        ]


def test_columns():
    clusters = WordClusters({"Rome": "0110"}, lengths=[1, 3], key=-1)
    rows = [[["1", "Rome"], ["2", "x"]], [["3", "Rome"]]]
    expected = [[["1", "Rome", "0", "011"], ["2", "x", "_", "_"]], [["3", "Rome", "0", "011"]]]
    assert clusters.transform(rows) == expected
    assert clusters.transform(Columns.from_sequences(rows)).rows() == expected


def test_bad_input(tmp_path):
    path = tmp_path / "bad"
    path.write_text("a\tb\nno tabs\n", encoding="utf-8")
    with pytest.raises(FormatError, match="bad:2: expected path, word and count"):
        WordClusters(path).fit()
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(FormatError, match="no words"):
        WordClusters(path).fit()
    with pytest.raises(TypeError, match="clusters must be a path or a dict"):
        WordClusters(3).fit()
    for lengths in ((), (0,), (2.5,)):
        with pytest.raises(ValueError, match="lengths must be whole numbers"):
            WordClusters({"a": "0"}, lengths=lengths).fit()
