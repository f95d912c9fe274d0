"""CoNLL columns: blocks of any size, notes, bad input, and what is written is read back."""

import io
import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chordal._errors import FormatError
from chordal.formats import Record, _lines
from chordal.formats.conll import CoNLL
from chordal.text import Columns

TEXT = (
    b"-DOCSTART- -X- O O\n\n"
    b"# sent 1\nIn IN O\nRome NNP B-LOC\n\n\n"
    b"# # O\n# # O\n\n"
    b"-DOCSTART-\n# sent 3\nYes UH O\n#lone\n"
)


def stream(text):
    return io.BytesIO(text)


def read(text, **options):
    return list(CoNLL(**options).read(stream(text)))


def test_rows_labels_and_notes():
    first, second = read(TEXT.replace(b"# # O\n# # O\n\n", b""), comment="#")
    assert first.rows == [["In", "IN"], ["Rome", "NNP"]]
    assert first.labels == ["O", "B-LOC"]
    assert list(first.comments) == ["-DOCSTART- -X- O O", "# sent 1"]
    assert (second.rows, second.labels) == ([["Yes", "UH"]], ["O"])
    assert list(second.comments) == ["-DOCSTART-", "# sent 3", "#lone"]


def test_a_word_may_begin_like_a_comment():
    # Without comments every line counts; with them, what comes before the first token does not.
    assert [r.rows for r in read(b"# # B\n# # I\n\n# # B\n")] == [[["#", "#"]] * 2, [["#", "#"]]]
    assert [r.rows for r in read(b"# # B\na a O\n# # I\n", comment="#")] == [
        [["a", "a"], ["#", "#"]]
    ]
    # Between tabs a comment is what has none.
    tabs = b"# text = a b\n#\tSYM\tB\n#x\tX\tO\n#lone\na\tA\tO\n"
    (record,) = read(tabs, comment="#", separator="\t")
    assert record.rows == [["#", "SYM"], ["#x", "X"], ["a", "A"]]
    assert list(record.comments) == ["# text = a b", "#lone"]


def test_the_label_may_stand_anywhere_or_nowhere():
    assert read(b"L w p\n", label=0)[0][:2] == ([["w", "p"]], ["L"])
    assert read(b"w L p\n", label=1)[0][:2] == ([["w", "p"]], ["L"])
    assert read(b"w L p\n", label=-2)[0][:2] == ([["w", "p"]], ["L"])
    assert read(b"w p\n", label=None)[0][:2] == ([["w", "p"]], None)


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("size", [*range(1, 60), 1 << 20])
def test_blocks_of_any_size_hold_the_same(size, eager):
    conll = CoNLL(comment="#")
    text = TEXT.replace(b"# # O\n# # O\n\n", b"")
    for data in (text, text.replace(b"\n", b"\r\n"), text[:-7], b"\xef\xbb\xbf" + text):
        blocks = list(conll.blocks(stream(data), size=size, eager=eager))
        rows = [sequence for block in blocks for sequence in block.rows()]
        assert rows == [[["In", "IN", "O"], ["Rome", "NNP", "B-LOC"]], [["Yes", "UH", "O"]]]
        assert [line for block in blocks for line in block.lines] == [4, 5, 10]


def test_memory_is_bounded_by_the_block():
    text = b"word POS label\n" * 10 + b"\n"
    sizes = [len(b.text) for b in CoNLL().blocks(stream(text * 5000), size=10_000)]
    assert len(sizes) > 70
    assert max(sizes) <= 20_000


def test_eager_blocks_come_when_a_sequence_is_complete():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as file:
        blocks = CoNLL().blocks(file, eager=True)
        os.write(writing, b"a A\n\nb B\n")
        assert next(blocks).rows() == [[["a", "A"]]]
        os.write(writing, b"\n")
        assert next(blocks).rows() == [[["b", "B"]]]
        threading.Timer(0.05, os.close, [writing]).start()
        assert list(blocks) == []


def test_load_reads_all_at_once():
    columns = CoNLL().load(stream(b"a A\n\nb B"))
    assert columns.rows() == [[["a", "A"]], [["b", "B"]]]
    for empty in (b"", b"\n\n", b"\xef\xbb\xbf"):
        assert CoNLL().load(stream(empty)).rows() == []
        assert read(empty) == []


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (b"a A\n\nb\n", {}, ":3:2: expected 2 columns as in the first row, found 1: b"),
        (b"a A\r\nb B C\r\n", {}, ":2:5: expected 2 columns as in the first row, found 3: b B C"),
        (b"a A O\n\n# text = x\n", {}, "found 4: # text = x (if it is a comment, set comment='#')"),
        (b"a\tO\nNew York\tO\n", {}, "set separator='\\t')"),
        (b"a\tO\nb O\n", {"separator": "\t"}, ":2:4: expected 2 columns"),
        (b"a \xe9\n", {}, ":1:3: not UTF-8; convert the file to UTF-8"),
        (b"a A\n\nb \xc3", {}, ":3:3: not UTF-8"),
        (b"a A\n\0\n", {}, ":2:1: a NUL byte"),
        (b"a A\rb B\n", {}, ":1:4: a carriage return inside a line"),
        ("a A\n".encode("utf-16"), {}, ":1: UTF-16 text"),
        ("a A\n".encode("utf-16-le"), {}, ":1:2: a NUL byte"),
        (b"word\n", {}, ": there is no column -1 of labels beside others; there are 1 columns"),
        (b"a b c\n", {"label": 3}, ": there is no column 3 of labels"),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_bad_files(text, options, message, size, tmp_path, monkeypatch):
    path = tmp_path / "data.txt"
    path.write_bytes(text)
    with pytest.raises(FormatError) as caught:
        list(CoNLL(**options).read(path))
    assert str(caught.value).startswith(f"{path}:")
    assert message in str(caught.value)
    if "column -1" not in message and "column 3" not in message:
        with pytest.raises(FormatError) as again:
            list(CoNLL(**options).blocks(path, size=size))
        assert str(again.value) == str(caught.value)


def test_the_number_of_columns_is_that_of_the_first_block():
    text = b"a A\n\n" * 1000 + b"b\n"
    with pytest.raises(FormatError, match="<stream>:2001:2: expected 2 columns"):
        list(CoNLL().blocks(stream(text), size=100))


def test_a_line_of_100_megabytes():
    word = b"x" * 100_000_000
    (columns,) = CoNLL().blocks(stream(b"a O\n\n" + word + b" O\n\nb O\n"), size=1 << 27)
    assert len(columns) == 3
    begin, end = columns.cells[1, 0].tolist()
    assert end - begin == len(word)
    several = list(CoNLL().blocks(stream(b"a O\n\n" + word + b" O\n\nb O\n"), eager=True))
    assert sum(map(len, several)) == 3


def test_what_never_ends_is_refused(monkeypatch):
    monkeypatch.setattr("chordal.formats._passages.LIMIT", 10_000)
    with pytest.raises(FormatError, match="<stream>:3: a sequence of more than"):
        list(CoNLL().blocks(stream(b"a O\n\n" + b"a O\n" * 5000), size=1000))
    assert _lines.LIMIT > 200_000_000


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"separator": ""}, "separator must be"),
        ({"separator": "ab"}, "separator must be"),
        ({"separator": "\n"}, "separator must be"),
        ({"separator": "é"}, "separator must be"),
        ({"comment": ""}, "comment must be"),
        ({"document": "a b"}, "document must be"),
    ],
)
def test_bad_options(options, match):
    with pytest.raises(ValueError, match=match):
        CoNLL(**options)


# ------------------------------------------------------------------------------------ writing

cells = st.text(alphabet=st.sampled_from("aé# -,_語"), max_size=4)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.integers(1, 3).flatmap(
            lambda n: st.lists(st.tuples(cells, cells, cells), min_size=n, max_size=n)
        ),
        max_size=4,
    ),
    st.sampled_from([None, "\t", ","]),
    st.sampled_from([None, "#"]),
    st.sampled_from([-1, 0, 1]),
)
def test_what_is_written_is_read_back_or_refused(sequences, separator, comment, label):
    conll = CoNLL(separator, label, comment, document="-")
    records = [Record([[*row[:2]] for row in s], [row[2] for row in s]) for s in sequences]
    kept = []
    for record in records:
        try:
            conll.encode(record)
        except ValueError:
            continue
        kept.append(record)
    target = io.BytesIO()
    assert conll.write(kept, target) == len(kept)
    found = list(conll.read(stream(target.getvalue())))
    assert [(r.rows, r.labels) for r in found] == [(r.rows, r.labels) for r in kept]


def test_ordinary_words_are_not_refused():
    text = b"# # B-NP\n, , O\n-DOCSTART-x NN O\n\n"
    target = io.BytesIO()
    CoNLL().write(CoNLL().read(stream(text)), target)
    assert target.getvalue() == text


def test_columns_are_written_with_labels():
    conll = CoNLL(separator="\t", comment="#")
    columns = conll.load(stream("é\t\tO\nb c\tB\tO\n\nx\tX\tO\n".encode()))
    assert conll.encode_columns(columns) == "é\t\tO\nb c\tB\tO\n\nx\tX\tO\n\n".encode()
    labels = [["B-ö", ""], ["B-ö"]]
    text = conll.encode_columns(columns.drop(1), labels)
    assert text == "é\tO\tB-ö\nb c\tO\t\n\nx\tO\tB-ö\n\n".encode()
    assert conll.encode_columns(columns[:0], []) == b""
    with pytest.raises(ValueError, match="same number of sequences"):
        conll.encode_columns(columns, labels[:1])
    with pytest.raises(ValueError, match="must have the same length"):
        conll.encode_columns(columns, [["O"], ["O"]])
    with pytest.raises(ValueError, match="of a row cannot be a cell"):
        conll.encode_columns(columns, [["O", "a\tb"], ["O"]])
    with pytest.raises(ValueError, match="cells must lie within"):
        Columns(b"ab", columns.cells, columns.lengths)


def test_notes_are_written_again():
    conll = CoNLL(comment="#")
    text = b"-DOCSTART- O\n\n# one\nIn O\n\n# two\nYes O\n\n"
    target = io.BytesIO()
    conll.write(conll.read(stream(text)), target)
    assert target.getvalue() == text
    target = io.BytesIO()
    CoNLL(document=None).write(conll.read(stream(text)), target)
    assert target.getvalue() == b"In O\n\nYes O\n\n"


@pytest.mark.parametrize(
    ("record", "match"),
    [
        (([["a b"]], ["O"]), "'a b' of token 0 cannot be a cell"),
        (([["a"], [""]], ["O", "O"]), "'' of token 1 cannot be a cell"),
        (([["a\n"]], ["O"]), "cannot be a cell"),
        (([["a"], ["b", "c"]], ["O", "O"]), "token 1 has 3 columns, the first has 2"),
        (([["a"]], ["O", "O"]), "1 tokens and 2 labels"),
        (([["a"]], [1]), "labels must be str"),
        (([[1]], ["O"]), "must be str, got int"),
        ((["a"], ["O"]), "must be a list of strings, got str"),
        (([{"a": 1}], ["O"]), "must be a list of strings, got dict"),
        (([], []), "no empty sequences"),
        (([["-DOCSTART-"]], ["O"]), "would not be read back as a token"),
        (([["a"]], ["O"], (), 2.0), "cannot store weights"),
        (([["\ud800"]], ["O"]), r"record 1 to <stream>: '\\ud800' has no UTF-8 form"),
    ],
)
def test_what_cannot_be_written(record, match):
    with pytest.raises(ValueError, match=match):
        CoNLL().write([Record(*record)], io.BytesIO())


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "out.txt"
    path.write_bytes(b"old")
    good = Record([["a"]], ["O"])
    with pytest.raises(ValueError, match=r"cannot write record 2 to .*out.txt"):
        CoNLL().write([good, Record([["a b"]], ["O"])], path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["out.txt"]
