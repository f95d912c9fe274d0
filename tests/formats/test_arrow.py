"""Parquet and Arrow: list columns of tokens and labels, in and out."""

import io

import numpy as np
import pytest

from chordal import ChainCRF
from chordal._errors import FormatError
from chordal.formats import FORMATS, Record, format_of

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

LISTS = [Record([["w=a", "s"], ["w=b"]], ["A", "B"]), Record([["w=b"]], ["B"])] * 3
MAPS = [Record([{"w": 1.0, "n": 2.5}, {"v": 3.0}], ["A", "B"], weight=2.0), Record([{}], ["A"])]


@pytest.mark.parametrize("name", ["parquet", "arrow"])
@pytest.mark.parametrize("records", [LISTS, MAPS], ids=["lists", "maps"])
def test_records_come_back(name, records, tmp_path):
    format = FORMATS.resolve(name)
    path = tmp_path / f"corpus.{name}"
    assert format_of(path) == name
    assert format.write(records, path) == len(records)
    assert list(format.read(path)) == records
    with path.open("rb") as stream:
        assert list(format.read(stream)) == records


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_more_records_than_one_group_holds(name, tmp_path):
    format, path = FORMATS.resolve(name), tmp_path / "many"
    many = LISTS * 800
    assert format.write(many, path) == len(many)
    assert list(format.read(path)) == many
    late = [*many, Record([["a"]], ["A"], weight=3.0)]
    with pytest.raises(ValueError, match="some have weight"):
        format.write(late, path)
    assert list(format.read(path)) == many


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_what_other_tools_write(name, tmp_path):
    table = pa.table({
        "words": [["in", "Rome"], ["a"]], "tags": [["O", "LOC"], ["O"]], "other": [1, 2]
    })  # fmt: skip
    path = tmp_path / "file"
    if name == "parquet":
        pq.write_table(table, path, row_group_size=1)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=1)
    format = FORMATS.resolve(name, tokens="words", labels="tags")
    expected = [Record([["in"], ["Rome"]], ["O", "LOC"]), Record([["a"]], ["O"])]
    assert list(format.read(path)) == expected
    for source in (table, pa.RecordBatchReader.from_batches(table.schema, table.to_batches())):
        (batch,) = FORMATS.resolve("arrow", tokens="words", labels="tags").batches(source)
        assert batch == ([[["in"], ["Rome"]], [["a"]]], [["O", "LOC"], ["O"]], None)
    sizes = [len(rows) for rows, _, _ in format.batches(path, 1)]
    assert sizes == [1, 1]
    plain = FORMATS.resolve(name, tokens="words", labels=None)
    assert [record.labels for record in plain.read(path)] == [None, None]


def test_a_fit_of_batches_is_that_of_lists(tmp_path):
    format = FORMATS.resolve("parquet")
    format.write(LISTS, tmp_path / "x.parquet")
    X, y = [record.rows for record in LISTS], [record.labels for record in LISTS]
    whole = ChainCRF(l2=0.1).fit(X, y)
    found = ChainCRF(l2=0.1).fit(format.batches(tmp_path / "x.parquet", 2))
    np.testing.assert_array_equal(found.weights_, whole.weights_)


MISSING = pa.array([[None]], pa.list_(pa.string()))
WRONG = {
    "no column": ({"words": [["a"]]}, r"no column 'tokens'; there are: words"),
    "no lists": ({"tokens": ["a"]}, r"must have lists, but has string"),
    "numbers": ({"tokens": [[1, 2]]}, r"lists of strings, of lists of strings or of maps"),
    "a missing list": ({"tokens": [["a"], None]}, r"no list in row 1"),
    "a missing token": ({"tokens": [["a"], ["b", None]]}, r"token 1 of row 1"),
    "a missing cell": ({"tokens": [[["a", None]]]}, r"token 0 of row 0"),
    "labels that are numbers": ({"tokens": [["a"]], "labels": [[1]]}, r"'labels' must have lists"),
    "too few labels": ({"tokens": [["a", "b"]], "labels": [["A"]]}, r"2 tokens and 1 labels"),
    "a missing label": ({"tokens": [["a"]], "labels": MISSING}, r"label 0 of row 0"),
    "weights that are text": ({"tokens": [["a"]], "weight": ["1"]}, r"must have numbers"),
    "an attribute twice": (
        {"tokens": pa.array([[[("a", 1), ("a", 2)]]], pa.list_(pa.map_(pa.string(), pa.int8())))},
        r"token 0 of row 0 of column 'tokens' has an attribute twice",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_columns_that_are_wrong(case):
    columns, message = WRONG[case]
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    with pytest.raises(FormatError, match=message):
        list(FORMATS.resolve("parquet").read(io.BytesIO(file.getvalue())))


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_columns_that_were_asked_for_must_be_there(name, tmp_path):
    table, path = pa.table({"tokens": [["a"]], "labels": [["A"]]}), tmp_path / "file"
    twice = pa.Table.from_arrays([pa.array([["a"]])] * 2, names=["tokens"] * 2)
    for given, columns, message in (
        (table, {"labels": "tags"}, r"no column 'tags'; there are: tokens, labels"),
        (table, {"weight": "w"}, r"no column 'w'; there are: tokens, labels"),
        (table, {"tokens": "words"}, r"no column 'words'; there are: tokens, labels"),
        (twice, {}, "several columns 'tokens': rename all but one"),
    ):
        if name == "parquet":
            pq.write_table(given, path)
        else:
            with pa.ipc.new_file(path, given.schema) as writer:
                writer.write_table(given)
        with pytest.raises(FormatError, match=message):
            list(FORMATS.resolve(name, **columns).batches(path))
    unlabelled = FORMATS.resolve("arrow").batches(pa.table({"tokens": [["a"]]}))
    with pytest.raises(TypeError, match="batch 0 has no labels"):
        ChainCRF().fit(unlabelled)


def test_sources_that_are_no_tables(tmp_path):
    format = FORMATS.resolve("arrow")
    assert list(format.batches(pa.table({"tokens": pa.array([], pa.list_(pa.string()))}))) == []
    with pytest.raises(TypeError, match=r"a pyarrow.Table, .*, got dict"):
        list(format.batches({"tokens": [["a"]]}))
    table = pa.table({"tokens": [["a"]]})
    with pa.ipc.new_stream(tmp_path / "x.arrow", table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(FormatError, match=r"if it is a stream, give .*open_stream"):
        list(format.batches(tmp_path / "x.arrow"))
    ((rows, _, _),) = format.batches(pa.ipc.open_stream(tmp_path / "x.arrow"))
    assert rows == [[["a"]]]


TEXT = pa.string()
DICTIONARY = pa.dictionary(pa.int32(), TEXT)


@pytest.mark.parametrize(
    "kind", [pa.large_list(pa.large_string()), pa.list_(TEXT, 2), pa.list_(DICTIONARY)]
)
def test_forms_of_lists_and_strings(kind):
    table = pa.table({
        "tokens": pa.array([["a", "b"]], kind),
        "labels": pa.array([["A", "B"]], kind),
        "weight": pa.array([2], pa.uint8()),
    })  # fmt: skip
    assert list(FORMATS.resolve("arrow").batches(table)) == [([[["a"], ["b"]]], [["A", "B"]], [2])]


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_files_that_are_damaged(name, tmp_path):
    path = tmp_path / f"file.{name}"
    FORMATS.resolve(name).write(LISTS, path)
    whole = path.read_bytes()
    for data in (b"", b"text", whole[:-9], whole[len(whole) // 2 :]):
        path.write_bytes(data)
        with pytest.raises(FormatError, match=f"file.{name}"):
            list(FORMATS.resolve(name).read(path))


def test_what_a_table_cannot_hold(tmp_path):
    format = FORMATS.resolve("parquet")
    path = tmp_path / "x.parquet"
    for records in (
        [Record([{"w": "text"}], ["A"])],
        [Record([["a"]], ["A"]), Record([{"w": 1.0}], ["A"])],
        [Record([["a"]], ["A", "B"])],
        [Record([{"w": 10**400}], ["A"])],
        [Record([["a"]], ["A"]), Record([["a"]])],
        [Record([]), Record([["a"]], ["A"])],
    ):
        with pytest.raises(ValueError, match="cannot write records 1 to"):
            format.write(records, path)
        assert not path.exists()
    with pytest.raises(ValueError, match="not text"):
        format.encode(LISTS[0])
