"""Opening: compressed or not, damaged or not; and files that are written whole or not at all."""

import bz2
import errno
import gzip
import io
import lzma
import os
import stat
import subprocess
import sys
import threading

import pytest

from chordal._atomic import atomic_write
from chordal._errors import FormatError
from chordal.formats import _files, open_source, open_target

zstandard = pytest.importorskip("zstandard")

TEXT = b"".join(b"%d word\n" % i for i in range(60_000))
COMPRESS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
posix = pytest.mark.skipif(os.name != "posix", reason="of POSIX systems")
each_kind = pytest.mark.parametrize("kind", COMPRESS)


def everything(place, size=10_000, eager=False):
    with open_source(place) as source:
        blocks = list(iter(lambda: source.read(size, eager), b""))
    return b"".join(blocks)


@each_kind
@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("size", [1, 777, 1 << 26])
def test_compressed_bytes_are_recognised(kind, eager, size):
    text = TEXT[:3000] if size == 1 else TEXT
    assert everything(io.BytesIO(COMPRESS[kind](text)), size, eager) == text


@each_kind
def test_the_name_does_not_matter(kind, tmp_path):
    path = tmp_path / "plain.txt"
    path.write_bytes(COMPRESS[kind](TEXT))
    assert everything(path) == everything(str(path)) == TEXT


@each_kind
def test_members_may_follow_each_other(kind):
    data = COMPRESS[kind](b"one\n") + COMPRESS[kind](b"") + COMPRESS[kind](TEXT)
    assert everything(io.BytesIO(data)) == b"one\n" + TEXT


@each_kind
def test_a_truncated_file_is_named(kind, tmp_path):
    path = tmp_path / "data"
    data = COMPRESS[kind](TEXT)
    for end in (len(data) - 1, len(data) // 2, 12):
        path.write_bytes(data[:end])
        with pytest.raises(FormatError, match=f"data: the {kind} data end too early"):
            everything(path)


@each_kind
def test_a_second_member_may_not_be_cut_either(kind):
    data = COMPRESS[kind](TEXT) + COMPRESS[kind](TEXT)[:-3]
    with pytest.raises(FormatError, match="end too early"):
        everything(io.BytesIO(data))


@each_kind
def test_damage_never_passes(kind):
    """A flipped bit is an error, or it changed nothing (such as the time in gzip's header)."""
    data = bytearray(COMPRESS[kind](TEXT[:2000]))
    errors = 0
    for i in range(0, len(data), max(1, len(data) // 60)):
        data[i] ^= 0x10
        try:
            found = everything(io.BytesIO(bytes(data)))
        except FormatError:
            errors += 1
        else:
            # zstd's frames may lack a checksum; with a broken magic number it is plain bytes.
            assert found == TEXT[:2000] or kind == "zstd" or found == bytes(data)
        data[i] ^= 0x10
    assert errors > 10


def test_zstd_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    missing = pytest.raises(ImportError, match=r'needs zstandard, .* "chordal\[zstd\]"')
    with missing:
        everything(io.BytesIO(COMPRESS["zstd"](TEXT)))
    with missing, open_target("x.zst"):
        pass
    assert not os.path.exists("x.zst")


@pytest.mark.parametrize("eager", [False, True])
def test_byte_order_marks(eager):
    mark = b"\xef\xbb\xbf"
    assert everything(io.BytesIO(mark + TEXT), eager=eager) == TEXT
    assert everything(io.BytesIO(mark), eager=eager) == b""
    assert everything(io.BytesIO(mark + b"a" + mark), 1, eager=eager) == b"a" + mark
    assert everything(io.BytesIO(gzip.compress(mark + TEXT)), eager=eager) == TEXT
    for encoding in ("utf-16", "utf-32"):
        with pytest.raises(FormatError, match="<stream>:1: UTF-16 text; convert"):
            everything(io.BytesIO("a b".encode(encoding)), eager=eager)


def test_streams_that_give_little_at_a_time():
    class Slow(io.RawIOBase):
        def __init__(self, data):
            self.data = io.BytesIO(data)

        def readable(self):
            return True

        def readinto(self, buffer):
            piece = self.data.read(min(len(buffer), 3))
            buffer[: len(piece)] = piece
            return len(piece)

    assert everything(Slow(TEXT[:999])) == TEXT[:999]
    assert everything(Slow(gzip.compress(TEXT[:999]))) == TEXT[:999]


def test_eager_reading_does_not_wait_for_a_full_block():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as file:
        os.write(writing, b"one line\n")
        with open_source(file) as source:
            found = b""
            while len(found) < 9:
                found += source.read(1 << 20, eager=True)
            assert found == b"one line\n"
        threading.Timer(0.05, os.close, [writing]).start()
        assert source.read(1 << 20) == b""


def test_standard_input():
    code = (
        "from chordal.formats import open_source\n"
        "with open_source('-') as s: print(s.name, len(s.read(10**9)))"
    )
    for data in (TEXT, gzip.compress(TEXT)):
        run = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True)
        assert run.stdout.split() == [b"<stdin>", b"%d" % len(TEXT)], run.stderr


@pytest.mark.parametrize("place", [None, 3, b"bytes", ["a"]])
def test_what_cannot_be_opened(place):
    with pytest.raises(TypeError, match="must be a path, a binary stream or '-'"):
        everything(place)
    with (
        pytest.raises(TypeError, match="must be a path, a binary stream or '-'"),
        open_target(place),
    ):
        pass


def test_text_streams_are_refused():
    with pytest.raises(TypeError, match="must be a binary stream"):
        everything(io.StringIO("text"))
    with pytest.raises(TypeError, match="binary stream"), open_target(io.StringIO()):
        pass


# ------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst", ".GZ"])
def test_what_is_written_is_read_back(suffix, tmp_path):
    path = tmp_path / f"file{suffix}"
    with open_target(path) as file:
        file.write(TEXT)
    assert everything(path) == TEXT
    assert (len(path.read_bytes()) < len(TEXT)) == bool(suffix)
    first = path.read_bytes()
    with open_target(path) as file:
        file.write(TEXT)
    assert path.read_bytes() == first
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_the_old_file_survives(suffix, error, tmp_path):
    path = tmp_path / f"model{suffix}"
    path.write_bytes(b"old")

    def write(file):
        file.write(TEXT)
        raise error

    with pytest.raises(type(error)), open_target(path) as file:
        write(file)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]


@posix
@pytest.mark.parametrize("size", [20_000, 10_000_000])  # one fails at the end, one in the middle
def test_a_full_disk(size, tmp_path):
    """A limit on the size of files fails as a full disk does: in write, flush or close."""
    path = tmp_path / "model"
    path.write_bytes(b"old")
    code = (
        "import resource, signal, sys\n"
        "from chordal._atomic import atomic_write\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "with atomic_write(sys.argv[1]) as file:\n"
        "    for i in range(int(sys.argv[2]) // 1000): file.write(bytes(1000))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(path), str(size)], capture_output=True, text=True
    )
    assert run.returncode == 1
    assert run.stderr.endswith(f"File too large: '{path}'\n")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model"]


@posix
def test_permissions_and_links_are_kept(tmp_path):
    path, link = tmp_path / "model", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_new_file_has_the_usual_permissions(tmp_path):
    with atomic_write(tmp_path / "new"):
        pass
    (tmp_path / "usual").touch()
    modes = {(tmp_path / name).stat().st_mode for name in ("new", "usual")}
    assert len(modes) == 1


@posix
def test_devices_and_pipes_are_written_to_directly(tmp_path):
    with atomic_write("/dev/null") as file:
        file.write(b"text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(OSError, match="No space left on device"), atomic_write("/dev/full") as file:
        file.write(b"text")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    thread = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    thread.start()
    with atomic_write(pipe) as file:
        file.write(b"text")
    thread.join()
    assert found == [b"text"]


@posix
def test_standard_output_by_its_device(tmp_path):
    code = (
        "from chordal._atomic import atomic_write\n"
        "with atomic_write('/dev/stdout') as file: file.write(b'text')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (run.stdout, run.stderr) == (b"text", b"")
    with open(tmp_path / "out", "wb") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file)
    assert (tmp_path / "out").read_bytes() == b"text"


def test_errors_name_what_the_user_named(tmp_path):
    path = tmp_path / "missing" / "model"
    with pytest.raises(FileNotFoundError, match="missing") as caught, atomic_write(path):
        pass
    assert ".chordal-" not in str(caught.value)
    with pytest.raises(IsADirectoryError, match="it is a folder"), atomic_write(tmp_path):
        pass


def test_hostile_zstd_is_opened_bit_by_bit(monkeypatch):
    """200 MB of zeros are some kB; no more than a part of them is in memory at a time."""
    data = zstandard.ZstdCompressor(level=19).compress(bytes(200_000_000))
    with open_source(io.BytesIO(data)) as source:
        assert source.read(10) == bytes(10)
        raw = source._stream.raw
        assert isinstance(raw, _files._ZstdReader)
        assert len(raw._output) < 40_000_000
