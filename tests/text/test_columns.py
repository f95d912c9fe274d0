"""Columns: the compiled reader against one in plain Python, and the class around its arrays."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from chordal import _kernels
from chordal.text import Columns

SEQUENCES = [[["in", "IN", "O"], ["Köln", "NNP", "B"]], [["Yes", "UH", "O"]]]


def read(text, separator=-1, comment=None, document=None, n_columns=0, at_end=True):
    """Sequences of rows, notes, lines, consumed bytes and lines, problem."""
    cells, n, lengths, lines, notes, consumed, n_lines, problem = _kernels.columns_read(
        text, separator, comment, document, n_columns, at_end
    )
    columns = Columns(text, cells.reshape(-1, n, 2) if n else cells.reshape(0, 0, 2), lengths)
    return columns.rows(), notes.reshape(-1, 3).tolist(), lines.tolist(), consumed, n_lines, problem


def reference(text, separator=-1, comment=None, document=None):
    """The same rows and notes, written without regard to speed."""
    sequences, notes, rows, n_columns = [], [], [], 0
    for line in text.decode().split("\n"):
        line = line.removesuffix("\r")
        words = line.replace("\t", " ").split(" ")
        cells = [w for w in words if w] if separator == -1 else line.split(chr(separator))
        stripped = line.rstrip(" \t") if separator == -1 else line
        lone = not set(stripped) & set(" \t" if separator == -1 else chr(separator))
        first = not rows
        ends = {"", " ", "\t", chr(separator) if separator >= 0 else ""}
        if not line.strip(" \t"):
            sequences, rows = [*sequences, rows] if rows else sequences, []
        elif document and line.startswith(document) and line[len(document) :][:1] in ends:
            sequences, rows = [*sequences, rows] if rows else sequences, []
            notes.append((len(sequences), line))
        elif (
            comment
            and line.startswith(comment)
            and ((first or n_columns != 1) if lone else (separator == -1 and first))
        ):
            notes.append((len(sequences), line))
        else:
            n_columns = n_columns or len(cells)
            if len(cells) != n_columns:
                return None
            rows.append(cells)
    return [*sequences, rows] if rows else sequences, notes


texts = st.lists(
    st.sampled_from(
        ["\n", "\r\n", "\n\n", " ", "\t", "a b\n", "a\tb\n", "é", "#", "# ", "-D-", "x"]
    ),
    max_size=25,
).map("".join)


@settings(max_examples=400, deadline=None)
@given(
    texts,
    st.sampled_from([-1, 9, 44]),
    st.sampled_from([None, "#"]),
    st.sampled_from([None, "-D-"]),
)
def test_it_reads_what_plain_python_reads(text, separator, comment, document):
    data = text.encode()
    expected = reference(data, separator, comment, document)
    marks = [mark and mark.encode() for mark in (comment, document)]
    rows, notes, lines, *_, problem = read(data, separator, *marks)
    if expected is None:
        assert problem is not None
        return
    assert problem is None
    assert rows == expected[0]
    assert [(i, data[a:b].decode()) for i, a, b in notes] == expected[1]
    assert len(lines) == sum(map(len, rows))


@settings(max_examples=200, deadline=None)
@given(texts, st.integers(min_value=0, max_value=60))
def test_a_text_cut_in_two_is_the_text(text, cut):
    data = text.encode()
    rows, notes, lines, _, _, problem = read(data, 9, b"#", b"-D-")
    if problem is not None:
        return
    first, begun, _, consumed, n_lines, problem = read(data[:cut], 9, b"#", b"-D-", at_end=False)
    assert problem is None
    width = len(first[0][0]) if first else 0
    rest = read(data[consumed:], 9, b"#", b"-D-", n_columns=width)
    assert first + rest[0] == rows
    # Notes that wait for their sequence come again with it.
    kept = [data[a:b] for i, a, b in begun if i < len(first)]
    kept += [data[consumed + a : consumed + b] for _, a, b in rest[1]]
    assert kept == [data[a:b] for _, a, b in notes]
    assert [line + n_lines for line in rest[2]] == lines[len(lines) - len(rest[2]) :]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", []),
        (b"\n \n\t\n\r\n", []),
        (b"a b", [[["a", "b"]]]),
        (b"a b\r", [[["a", "b"]]]),
        (b" a \t b \r\n\r\n\r\nc d\r\n", [[["a", "b"]], [["c", "d"]]]),
        ("a\u3000b c\n".encode(), [[["a\u3000b", "c"]]]),  # blanks are space and tab alone
        ("a\u2028b \x85\n".encode(), [[["a\u2028b", "\x85"]]]),
    ],
)
def test_blanks(text, expected):
    assert read(text)[0] == expected


def test_cells_may_be_empty_between_tabs():
    assert read(b"a\t\tb\n\tc\t\n", 9)[0] == [[["a", "", "b"], ["", "c", ""]]]


@pytest.mark.parametrize(
    ("text", "separator", "line", "column", "what"),
    [
        (b"a b\n\na b c\n", -1, 3, 5, "expected 2 columns as in the first row, found 3: a b c"),
        (b"a b\na\n", -1, 2, 2, "expected 2 columns as in the first row, found 1: a"),
        (b"a\tb\na b\n", 9, 2, 4, "found 1: a b"),
        (b"a\na b\n", -1, 2, 3, "expected 1 column as"),
        (b"ok\n\xff\n", -1, 2, 1, "not UTF-8"),
        (b"a\0b\n", -1, 1, 2, "NUL"),
        (b"a\rb\n", -1, 1, 2, "carriage return"),
        (b"a b\rc d\re f", -1, 1, 4, "carriage return"),
    ],
)
def test_problems(text, separator, line, column, what):
    *_, problem = read(text, separator)
    assert problem[:2] == (line, column)
    assert what in problem[2]


def test_long_lines_are_cut_in_messages():
    *_, problem = read(b"a b\n" + "é".encode() * 500 + b"\n")
    assert problem[2].endswith(": " + "é" * 30 + "…")


@settings(max_examples=500, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=6),
            st.text(max_size=4).map(str.encode),
            st.sampled_from([b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\x80"]),
            st.sampled_from([b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xf0\x80\x80\x80", b"a" * 9]),
        ),
        max_size=6,
    ).map(b"".join)
)
def test_utf8_is_that_of_python(text):
    text = text.replace(b"\0", b"").replace(b"\r", b"")
    *_, problem = read(text, 0x1F)
    try:
        text.decode()
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        column = error.start - (text.rfind(b"\n", 0, error.start) + 1) + 1
        assert problem == (line, column, "not UTF-8; convert the file to UTF-8")
    else:
        assert problem is None or "expected" in problem[2]


def test_the_lock_is_released():
    """Another thread runs while a long text is read."""
    text = b"word POS label\n" * 2_000_000
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        begin = time.perf_counter()
        _kernels.columns_read(text, -1, None, None, 0, True)
        end = time.perf_counter()
    finally:
        done.set()
        thread.join()
    assert sum(begin < t < end for t in ticks) >= 3


# ---------------------------------------------------------------------------------- class Columns


def test_from_sequences():
    columns = Columns.from_sequences(SEQUENCES)
    assert (len(columns), columns.n_columns, columns.n_rows) == (2, 3, 3)
    assert columns.rows() == SEQUENCES
    assert columns.column(-1) == [["O", "B"], ["O"]]
    assert columns.cells.dtype == np.uint32


@pytest.mark.parametrize("sequences", [[], [[]], [[], [["a"]], []]])
def test_empty_sequences(sequences):
    columns = Columns.from_sequences(sequences)
    assert len(columns) == len(sequences)
    assert columns.rows() == sequences
    assert columns[:1].rows() == sequences[:1]


def test_parts_share_the_text_and_slices_the_cells():
    columns = Columns.from_sequences(SEQUENCES)
    for part in (columns[1:], columns.drop(2), columns.drop(0), columns.select([1]), columns[:0]):
        assert part.text is columns.text
    for part in (columns[1:], columns.drop(-1), columns.select(slice(0, 2))):
        assert np.shares_memory(part.cells, columns.cells)
    assert columns.drop(0).rows() == [[r[1:] for r in s] for s in SEQUENCES]
    assert columns.select([2, 0]).rows() == [[[r[2], r[0]] for r in s] for s in SEQUENCES]
    assert columns[5:].rows() == columns[2:1].rows() == []


def test_slices_are_those_of_the_list():
    sequences = [[[f"{i}.{t}"] for t in range(i % 4)] for i in range(9)]
    columns = Columns.from_sequences(sequences)
    for a in (None, 0, 2, -3, 20):
        for b in (None, 0, 5, -1, 20):
            assert columns[a:b].rows() == sequences[a:b]


def test_codes_number_in_order_of_appearance():
    codes, names = Columns.from_sequences([[["é"], ["b"]], [["é"], [""]]]).codes(0)
    assert_array_equal(codes, [0, 1, 0, 2])
    assert names == ["é", "b", ""]


def test_cells_outside_of_the_text_are_refused():
    cells = np.array([[[0, 9]]], dtype=np.uint32)
    with pytest.raises(ValueError, match="must lie within the text"):
        Columns(b"abc", cells, np.array([1])).rows()


@pytest.mark.parametrize(
    ("sequences", "error", "match"),
    [
        ([[["a"], ["a", "b"]]], ValueError, r"X\[0\]\[1\] must have 1 columns"),
        ([["ab"]], TypeError, r"X\[0\]\[0\] must be a list of strings"),
        ([[[1]]], TypeError, r"X\[0\]\[0\] must be str, got int"),
        ([[["\ud800"]]], ValueError, "cannot be written as UTF-8"),
    ],
)
def test_bad_sequences(sequences, error, match):
    with pytest.raises(error, match=match):
        Columns.from_sequences(sequences)


def test_bad_parts():
    columns = Columns.from_sequences(SEQUENCES)
    with pytest.raises(TypeError, match="sliced with step 1"):
        columns[::2]
    with pytest.raises(TypeError, match="sliced with step 1"):
        columns[0]
    for call in (columns.column, columns.drop, lambda k: columns.select([k])):
        with pytest.raises(ValueError, match="there are 3 columns, numbered from 0; got 3"):
            call(3)


def test_more_columns():
    columns = Columns.from_sequences([[["in", "IN"], ["Rome", "NNP"]], [], [["Yes", "UH"]]])
    more = columns[1:].with_columns([[], ["é"]], [[], [""]])
    assert more.rows() == [[], [["Yes", "UH", "é", ""]]]
    assert columns.with_columns().rows() == columns.rows()
    both = columns.with_columns([["a", "b"], [], ["a"]])
    assert both.column(2) == [["a", "b"], [], ["a"]]
    with pytest.raises(ValueError, match="a cell for every row"):
        columns.with_columns([["a"], [], ["a"]])
    with pytest.raises(TypeError, match="must be str, got int"):
        columns.with_columns([["a", "b"], [], [3]])
