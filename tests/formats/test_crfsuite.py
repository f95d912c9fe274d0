"""CRFsuite's items: its own meaning of escapes and values, checked by the tool itself."""

import io
import itertools
import re
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chordal._errors import FormatError
from chordal.formats import Record
from chordal.formats.crfsuite import CRFsuite


def read(text):
    return list(CRFsuite().read(io.BytesIO(text)))


def read_by_blocks(text, size=1 << 21):
    """Rows of each sequence as the compiled reader has them: attributes and their values."""
    found = []
    for items in CRFsuite().blocks(io.BytesIO(text), size):
        rows = [
            [(re.sub(r"\\([:\\])", r"\1", name), value) for name, value in row]
            for row in items.rows()
        ]
        ends = [0, *np.cumsum(items.lengths).tolist()]
        found += [rows[a:b] for a, b in itertools.pairwise(ends)]
    return found


def as_pairs(record):
    """The same of a record: attributes that have a value of 0 count for nothing."""
    rows = [
        row.items() if isinstance(row, dict) else [(k, 1.0) for k in row] for row in record.rows
    ]
    return [[(name, value) for name, value in row if value] for row in rows]


def summed(row):
    total = {}
    for name, value in row:
        total[name] = total.get(name, 0.0) + value
    return total


def written(*records):
    target = io.BytesIO()
    CRFsuite().write(records, target)
    return target.getvalue()


@pytest.mark.parametrize(
    ("line", "label", "row"),
    [
        (rb"O", "O", []),
        (b"O\ta\tb", "O", ["a", "b"]),
        (b"O\ta:2\tb", "O", {"a": 2.0, "b": 1.0}),
        (b"O\ta:1\tb:", "O", ["a", "b"]),
        (b"O\ta:-1.5e3", "O", {"a": -1500.0}),
        (b"O\ta\ta:2\ta:3", "O", {"a": 6.0}),
        (b"O\ta\ta", "O", ["a", "a"]),
        (rb"O	a\:b	c\\d	e\f	g" + b"\\", "O", ["a:b", r"c\d", r"e\f", "g\\"]),
        (rb"O	a\\:2	b\\\:", "O", {"a\\": 2.0, "b\\:": 1.0}),
        (rb"B\:x	a", "B:x", ["a"]),
        (b"O\t:", "O", [""]),
        (b"O\t:3", "O", {"": 3.0}),
        (b"\t\tO\t\ta\t", "O", ["a"]),
        (b"O\tw=a b\t@x\t@bos", "O", ["w=a b", "@x", "@bos"]),
        ("O\tw=語".encode(), "O", ["w=語"]),
        (b"O\ta:0", "O", {"a": 0.0}),
    ],
)
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n\r\n", b"\n\n\n\n"])
def test_meaning(line, label, row, end):
    (record,) = read(line + end)
    assert (record.rows, record.labels, record.weight) == ([row], [label], 1.0)
    ((found,),) = read_by_blocks(line + end)
    assert summed(found) == summed(as_pairs(record)[0])


def test_sequences_and_weights():
    records = read(b"@weight:2.5\tA\ta\nB\tb\n\n\n@weight:0\nC\tc\n\nD\td\n")
    assert [(r.labels, r.weight) for r in records] == [
        (["A", "B"], 2.5),
        (["C"], 0.0),
        (["D"], 1.0),
    ]
    assert read(b"") == read(b"\n\n") == read(b"@weight:2\n") == []
    assert read_by_blocks(b"\n\n") == read_by_blocks(b"@weight:2\n") == []
    assert read_by_blocks(written(*records)) == [as_pairs(r) for r in records]
    assert read(written(*records)) == records


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"O\ta\n\nO\ta:b\n", ":3:3: the value 'b' must be a finite number"),
        (b"O\tb\tb:nan\n", ":1:5: the value 'nan'"),
        (b"O\ta:1_0\n", "must be a finite number"),
        (b"O\ta: 1\n", "must be a finite number"),
        (b"O\ta:1e999\n", "must be a finite number"),
        (b"O\ta:1e\n", "must be a finite number"),
        (b"O\ta:inf\n", "must be a finite number"),
        (b"O\ta:1:2\n", ":1:3: two colons in 'a:1:2'; write one in a name as '\\:'"),
        ("O\té\tb:x\n".encode(), ":1:6: "),
        (b"B:1\ta\n", ":1:1: a label has no value"),
        (b"@x:1\tO\n", ":1:1: unknown declaration '@x'"),
        (b"@weight:-1\tO\n", "at least 0"),
        (b"@weight\tO\n", "at least 0"),
        (b"O\t\xff\n", ":1:3: not UTF-8"),
        (b"O\ta\0\n", ":1:4: a NUL byte"),
        (b"O\ta\rO\tb\n", ":1:4: a carriage return"),
    ],
)
def test_bad_files(text, message, tmp_path):
    path = tmp_path / "items"
    path.write_bytes(text)
    with pytest.raises(FormatError) as caught:
        list(CRFsuite().read(path))
    assert str(caught.value).startswith(f"{path}:")
    assert message in str(caught.value)
    with pytest.raises(FormatError, match=re.escape(str(caught.value))):
        list(CRFsuite().blocks(path))


@pytest.mark.parametrize(
    ("record", "match"),
    [
        (Record([["a"]]), "there are no labels"),
        (Record([], []), "no empty sequences"),
        (Record([["a"]], [""]), "must not be blank"),
        (Record([["a"]], ["@x"]), "begin with @"),
        (Record([["a\tb"]], ["O"]), "holds a tab"),
        (Record(["a"], ["O"]), "token 0 must be a list or dict"),
        (Record([[1]], ["O"]), "must be str, got int"),
        (Record([{1: 2}], ["O"]), "must be str, got int"),
        (Record([{"a": float("nan")}], ["O"]), "must be a finite number"),
        (Record([{"a": None}], ["O"]), "must be a finite number"),
    ],
)
def test_what_cannot_be_written(record, match):
    with pytest.raises(ValueError, match=match):
        written(record)


def test_endless_nesting_is_refused():
    token = {}
    token["a"] = token
    with pytest.raises(ValueError, match="nested too deeply"):
        written(Record([token], ["O"]))


def test_containers_are_written_as_estimators_read_them():
    token = {
        "word": "a:b",
        "len": 2,
        "up": True,
        "win": ["x", "y"],
        "n": {"m": {"k": 0.5}},
        "s": {"z"},
    }
    text = written(Record([token], ["O"]))
    assert text == b"O\tword\\:a\\:b\tlen:2.0\tup\twin\\:x\twin\\:y\tn\\:m\\:k:0.5\ts\\:z\n\n"


names = st.text(alphabet=st.sampled_from("ab:\\@ é="), max_size=6)
rows = st.one_of(
    st.lists(names, max_size=4),
    st.dictionaries(names, st.floats(allow_nan=False, allow_infinity=False), max_size=4),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(rows, names.filter(lambda n: n.strip() and n[0] != "@")), min_size=1, max_size=4
    )
)
def test_what_is_written_is_read_back(tokens):
    record = Record([row for row, _ in tokens], [label for _, label in tokens])
    (found,) = read(written(record))
    assert found.labels == record.labels
    for a, b in zip(found.rows, record.rows, strict=True):
        as_dict = dict.fromkeys(a, 1.0) if isinstance(a, list) and isinstance(b, dict) else a
        assert as_dict == b


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text("a:\\@\t 1é", max_size=12), max_size=6),
    st.integers(1, 40),
    st.sampled_from(["\n", "\r\n"]),
)
def test_blocks_hold_what_records_do(lines, size, end):
    text = end.join(line and f"L\t{line}" for line in lines).encode()
    try:
        expected = [as_pairs(record) for record in read(text)]
    except FormatError as error:
        with pytest.raises(FormatError, match=re.escape(str(error))):
            read_by_blocks(text, size)
    else:
        found = read_by_blocks(text, size)
        assert [[summed(row) for row in rows] for rows in found] == [
            [summed(row) for row in rows] for rows in expected
        ]


# A tool reads the file in its own way; its model tells what it has read.
TOOL = shutil.which("crfsuite")


@pytest.mark.skipif(TOOL is None, reason="there is no crfsuite on the PATH")
def test_crfsuite_reads_the_same(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    sequences = [
        ([{"w=a:b": 1.0, "c\\d": 2.0}, ["x\\:y", "z z"]], ["B:x", "O"]),
        ([["w=a:b", "e\\"], {"": 0.5, "c\\d": -1.0}], ["O", "é\\"]),
    ]
    path = tmp_path / "items"
    CRFsuite().write([Record(*s) for s in sequences], path)
    trainer = pycrfsuite.Trainer(verbose=False)
    for record in CRFsuite().read(path):
        trainer.append(record.rows, record.labels)
    trainer.set_params({"c2": 1.0, "max_iterations": 20})
    trainer.train(str(tmp_path / "ours"))
    options = ["-p", "c2=1", "-p", "max_iterations=20"]
    subprocess.run([TOOL, "learn", *options, "-m", tmp_path / "theirs", path], check=True)
    dumps = [
        subprocess.run([TOOL, "dump", tmp_path / name], check=True, capture_output=True).stdout
        for name in ("ours", "theirs")
    ]
    features = [dump[dump.index(b"TRANSITIONS") :] for dump in dumps]
    assert b"w=a:b" in features[0]
    assert features[0] == features[1]


@given(st.lists(st.text("a:\\@\t ", max_size=12), min_size=1, max_size=4))
def test_lines_are_read_alike_with_and_without_a_weight(lines):
    """Sequences without values take a short cut; a weight sends them the long way."""
    text = "\n".join(f"L\t{line}" for line in lines)

    def rows(text):
        try:
            return [row for record in read(text.encode()) for row in record.rows]
        except FormatError as error:
            return error.what

    assert rows(text) == rows(f"@weight:2\t{text}")
