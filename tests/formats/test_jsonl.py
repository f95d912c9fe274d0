"""JSON Lines: tokens as strings, lists, dicts or columns; hostile JSON."""

import io
import json

import pytest
from numpy.testing import assert_array_equal

from chordal._errors import FormatError
from chordal.formats import Record
from chordal.formats.jsonl import JSONL


def read(text, **options):
    return list(JSONL(**options).read(io.BytesIO(text)))


def written(*records, **options):
    target = io.BytesIO()
    JSONL(**options).write(records, target)
    return target.getvalue()


@pytest.mark.parametrize(
    ("tokens", "rows"),
    [
        (["a", "b"], [["a"], ["b"]]),
        ([["a", "A"], ["b", "B"]], [["a", "A"], ["b", "B"]]),
        ([{"w": "a", "n": 1.5}, {}], [{"w": "a", "n": 1.5}, {}]),
        (["é", ["x", "y"], {"z": True}], [["é"], ["x", "y"], {"z": True}]),
        ([], []),
    ],
)
def test_tokens(tokens, rows):
    line = json.dumps({"tokens": tokens, "labels": ["L"] * len(tokens), "id": 3}).encode()
    (record,) = read(line)
    assert record == Record(rows, ["L"] * len(rows))
    assert json.loads(written(record))["tokens"] == tokens
    assert read(written(record)) == [record]


def test_keys():
    line = b'{"w": ["a", "b"], "p": ["A", "B"], "t": ["O", "X"], "labels": 3}\n'
    options = {"tokens": ["w", "p"], "labels": "t"}
    (record,) = read(line, **options)
    assert record == Record([["a", "A"], ["b", "B"]], ["O", "X"])
    assert read(written(record, **options), **options) == [record]
    assert read(line, tokens="w", labels=None) == [Record([["a"], ["b"]])]


def test_optional_keys_and_blank_lines():
    text = (
        b'\xef\xbb\xbf{"tokens": ["a"], "comments": ["# x"], "weight": 2}\r\n\r\n \n{"tokens": []}'
    )
    records = read(text)
    assert records == [Record([["a"]], None, ["# x"], 2.0), Record([])]
    assert read(written(*records)) == records
    assert read(b'{"tokens": ["a"], "labels": null}') == [Record([["a"]])]


def test_text_is_written_as_it_is():
    assert "語".encode() in written(Record([["語"]]))
    half = Record([["\ud800"]], ["O"])  # has an escape in JSON, and no UTF-8
    assert read(written(half)) == [half]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", ":2:2: not JSON: Expecting property name"),
        (b'{"tokens": ["a"] "b"}', ":2:18: not JSON"),
        ('{"é": 1} x'.encode(), ":2:11: not JSON: Extra data"),
        (b'["a"]', ":2: a line must be a JSON object, got a list"),
        (b"3", ":2: a line must be a JSON object, got a number"),
        (b'{"token": []}', ":2: there is no key 'tokens'; there are: token"),
        (b'{"tokens": "a b"}', ":2: 'tokens' must be a list, got a string"),
        (b'{"tokens": [1]}', ":2: token 0 must be a string, a list of strings or an object"),
        (b'{"tokens": [["a", 1]]}', ":2: token 0 must be"),
        (
            b'{"tokens": ["a"], "labels": [1]}',
            ":2: 'labels' must hold strings, got a number at 0: 1",
        ),
        (b'{"tokens": ["a"], "labels": []}', ":2: there are 1 tokens and 0 labels"),
        (b'{"tokens": [{"a": NaN}]}', ":2: numbers must be finite, got NaN"),
        (b'{"tokens": [], "weight": -1}', ":2: weight must be a finite number"),
        (b'{"tokens": [], "weight": true}', ":2: weight must be a finite number"),
        (b'{"tokens": [], "weight": 1e999}', ":2: weight must be a finite number"),
        (b'{"tokens": [{"a": ' + b"9" * 5000 + b"}]}", ":2: "),
        (b'{"tokens":' + b"[" * 100_000, ":2: JSON that is nested too deeply"),
        (b'{"tokens": ["\xff"]}', ":2:14: not UTF-8"),
        (b'{"tokens": ["\0"]}', ":2:14: a NUL byte"),
    ],
)
def test_bad_files(line, message, tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'{"tokens": []}\n' + line + b"\n")
    with pytest.raises(FormatError) as caught:
        list(JSONL().read(path))
    assert str(caught.value).startswith(f"{path}{message}")


def test_columns_must_be_equally_long():
    with pytest.raises(FormatError, match="columns must be equally long, got "):
        read(b'{"a": ["x"], "b": []}', tokens=["a", "b"])


def test_a_line_of_100_megabytes():
    word = "x" * 100_000_000
    (record,) = read(b'{"tokens": ["' + word.encode() + b'"]}\n')
    assert record.rows == [[word]]


@pytest.mark.parametrize(
    ("record", "options", "match"),
    [
        (Record([["a", 1]]), {}, "token 0 must be a list of strings"),
        (Record(["a"]), {}, "token 0 must be a list of strings or a dict, got str"),
        (Record([{"a": float("inf")}]), {}, "not JSON compliant"),
        (Record([{"a": object()}]), {}, "not JSON serializable"),
        (Record([["a"]], ["O", "O"]), {}, "1 tokens and 2 labels"),
        (Record([["a"]]), {"tokens": ["x", "y"]}, "must be a list of 2 strings"),
    ],
)
def test_what_cannot_be_written(record, options, match):
    with pytest.raises(ValueError, match=match):
        written(record, **options)


def test_bad_options():
    for tokens in ([], [1]):
        with pytest.raises(ValueError, match="tokens must be a key or a list of keys"):
            JSONL(tokens=tokens)


def test_lists_of_numbers_are_vectors():
    line = b'{"tokens": [{"w": "a", "v": [1, 0.5], "l": ["x"], "n": {"u": [2]}, "e": []}]}\n'
    (record,) = JSONL().read(io.BytesIO(line))
    (token,) = record.rows
    assert_array_equal(token["v"], [1.0, 0.5])
    assert_array_equal(token["n"]["u"], [2.0])
    assert (token["w"], token["l"], token["e"]) == ("a", ["x"], [])
    (again,) = JSONL().read(io.BytesIO(JSONL().encode(record).encode()))
    assert_array_equal(again.rows[0]["v"], token["v"])
    huge = b'{"tokens": [{"v": [1' + b"0" * 400 + b"]}]}\n"
    with pytest.raises(FormatError, match="numbers in 'v' that are too large"):
        list(JSONL().read(io.BytesIO(huge)))
