"""What all formats share: the registry, compression, and the way from any to any."""

import gzip
import io
import pickle

import pytest

from chordal._errors import FormatError
from chordal.formats import FORMATS, Record, format_of

RECORDS = [Record([["In"], ["Köln"]], ["O", "B-LOC"]), Record([["Yes"]], ["O"])]
#: Tables of Arrow have tests of their own.
TEXT = [name for name in FORMATS.names() if name not in ("arrow", "parquet")]
each_format = pytest.mark.parametrize("name", TEXT)


def test_the_folder():
    assert FORMATS.names() == ["arrow", "conll", "conllu", "crfsuite", "jsonl", "parquet"]
    with pytest.raises(ValueError, match="unknown format 'conl'; did you mean 'conll'"):
        FORMATS.get("conl")


def plain(records):
    return [(list(r.rows), list(r.labels)) for r in records]


@each_format
@pytest.mark.parametrize("other", TEXT)
def test_from_any_to_any(name, other, tmp_path):
    first, second = FORMATS.resolve(name), FORMATS.resolve(other)
    assert first.name == name
    assert first.write(RECORDS, tmp_path / "a.gz") == 2
    second.write(first.read(tmp_path / "a.gz"), tmp_path / "b.xz")
    assert plain(second.read(tmp_path / "b.xz")) == plain(RECORDS)


@each_format
def test_reading_is_lazy(name):
    """The first record is there before the last line, which is bad, has been looked at."""
    form = FORMATS.resolve(name)
    target = io.BytesIO()
    form.write(RECORDS * 20_000, target)
    records = form.read(io.BytesIO(target.getvalue() + b"\xff\n"))
    assert plain([next(records)]) == plain(RECORDS[:1])
    with pytest.raises(FormatError, match="not UTF-8"):
        list(records)


@each_format
def test_empty_files(name):
    form = FORMATS.resolve(name)
    for data in (b"", b"\n", b"\r\n\r\n", b"\xef\xbb\xbf", gzip.compress(b"")):
        assert list(form.read(io.BytesIO(data))) == []
    target = io.BytesIO()
    assert form.write([], target) == 0
    assert target.getvalue() == b""


@each_format
def test_crlf_and_a_missing_last_line_break(name):
    form = FORMATS.resolve(name)
    target = io.BytesIO()
    form.write(RECORDS, target)
    text = target.getvalue()
    for data in (text.replace(b"\n", b"\r\n"), text.rstrip(b"\n"), b"\n\n" + text + b"\n\n"):
        assert plain(form.read(io.BytesIO(data))) == plain(RECORDS)


@each_format
def test_missing_files(name):
    with pytest.raises(FileNotFoundError, match="no/such/file"):
        list(FORMATS.resolve(name).read("no/such/file"))


@each_format
def test_truncated_files(name, tmp_path):
    form = FORMATS.resolve(name)
    path = tmp_path / "data.gz"
    form.write(RECORDS * 100, path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FormatError, match=r"data\.gz: the gzip data end too early"):
        list(form.read(path))


@each_format
def test_suffixes_lead_to_the_format(name):
    for suffix in FORMATS.get(name).suffixes:
        assert format_of(f"x{suffix}") == format_of(f"X{suffix.upper()}.gz") == name


def test_errors_survive_pickling():
    error = FormatError("a", "what", line=3, column=5)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.line, copy.column) == ("a:3:5: what", 3, 5)
