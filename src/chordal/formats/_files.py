"""Opening what is read and written: paths, streams and "-", compressed or not."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Protocol, TypeAlias

from chordal._atomic import atomic_write
from chordal._errors import FormatError
from chordal._optional import needed
from chordal._shown import shown

Place: TypeAlias = "str | os.PathLike[str] | IO[bytes]"

PIECE = 1 << 24
MAX_GROWTH = 100  # of compressed data; text seldom shrinks to less than a fiftieth
SMALL = 1 << 19  # bytes, decompressed, that are never too many
FEW = 2048  # compressed bytes at a time: those that were taken tell how much they may become
BOM = b"\xef\xbb\xbf"
WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")  # UTF-16, and the beginning of UTF-32


class Readable(Protocol):
    """Bytes to be read."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes, at most `size` of them; all if it is negative."""


class Source:
    """Bytes of a file, decompressed, without a byte order mark; errors name the file."""

    def __init__(self, stream: IO[bytes], name: str, utf8: bool = True) -> None:
        self.name = name
        self._damage: tuple[str, tuple[type[Exception], ...]] = ("", ())
        head = stream.read(6)
        if not isinstance(head, bytes):
            raise TypeError(f"{name} must be a binary stream (open it with mode 'rb'), got text")
        while 0 < len(head) < 6 and (more := stream.read(6 - len(head))):
            head += more
        self._raw = _Rewound(head, stream)
        self._stream: Readable = self._raw
        self._given = 0  # bytes, decompressed
        for kind, magic, opener in _COMPRESSIONS:
            if head.startswith(magic):
                self._raw.most = FEW
                self._stream, errors = opener(self._raw, name)
                self._damage = (kind, errors)
        self._at_start = utf8  # where a byte order mark may be

    def read(self, size: int, eager: bool = False) -> bytes:
        """The next `size` bytes, fewer at the end; with `eager`, what has arrived so far."""
        block = self._read(size, eager)
        if not self._at_start:
            return block
        self._at_start = False
        while 0 < len(block) < len(BOM) and (more := self._read(len(BOM) - len(block), True)):
            block += more
        if block.startswith(WIDE_BOMS):
            raise FormatError(self.name, "UTF-16 text; convert the file to UTF-8", line=1)
        if block.startswith(BOM):
            # As much as was asked for: less would mean the end.
            return block[len(BOM) :] + self._read(min(size, len(BOM)), eager)
        return block

    def _read(self, size: int, eager: bool) -> bytes:
        read = getattr(self._stream, "read1", self._stream.read) if eager else self._stream.read
        kind, errors = self._damage
        try:
            block: bytes = read(min(size, PIECE))
            self._count(block)
            return block if eager or len(block) == size else self._filled(block, size)
        except EOFError as error:
            what = f"the {kind} data end too early; the file is truncated"
            raise FormatError(self.name, what) from error
        except errors as error:
            raise FormatError(self.name, f"damaged {kind} data: {error}") from error

    def _count(self, block: bytes) -> None:
        """Raise an error if a small file decompresses to a huge one."""
        self._given += len(block)
        if self._damage[0] and self._given > max(SMALL, MAX_GROWTH * self._raw.taken):
            raise FormatError(
                self.name,
                f"the {self._damage[0]} data grow to more than {MAX_GROWTH} times their size; "
                "decompress the file yourself if you trust it",
            )

    def _filled(self, block: bytes, size: int) -> bytes:
        """Read until `size` bytes or the end; a stream may return fewer bytes per call."""
        pieces, missing = [block], size - len(block)
        while missing and pieces[-1]:
            pieces.append(self._stream.read(min(missing, PIECE)))
            self._count(pieces[-1])
            missing -= len(pieces[-1])
        return b"".join(pieces)


class _Rewound:
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head = head
        self._stream = stream
        self.taken = 0  # bytes
        self.most = PIECE  # bytes at a time
        self._read1 = getattr(stream, "read1", stream.read)

    def read(self, size: int = -1) -> bytes:
        block = self._next(min(size, self.most) if size >= 0 else size)
        self.taken += len(block)
        return block

    def _next(self, size: int) -> bytes:
        head, self._head = self._head, b""
        if not head:
            return self._stream.read(size) or b""
        if 0 <= size < len(head):
            self._head = head[size:]
            return head[:size]
        return head + (self._stream.read(size - len(head) if size >= 0 else -1) or b"")

    def read1(self, size: int = -1) -> bytes:
        if self._head:
            return self.read(min(size, len(self._head)) if size >= 0 else len(self._head))
        block: bytes = self._read1(size) or b""
        self.taken += len(block)
        return block


class _ZstdReader(io.RawIOBase):
    """Frames of zstandard, one after another, and an error where the last one's end is missing.

    Input is handed over by the kilobyte: a hostile one grows to some 32 MB at most.
    """

    def __init__(self, stream: _Rewound, name: str) -> None:
        with needed("zstandard", f"reading {name}"):
            import zstandard

        self._decompressor = zstandard.ZstdDecompressor()
        self.damage: type[Exception] = zstandard.ZstdError
        self._stream = stream
        self._frame: Any = None
        self._input = self._output = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._output:
            piece = self._input or self._stream.read1(1024)
            self._input = b""
            if not piece:
                if self._frame is not None:
                    raise EOFError
                return 0
            if self._frame is None:
                self._frame = self._decompressor.decompressobj()
            self._output = self._frame.decompress(piece)
            if self._frame.eof:
                self._input = self._frame.unused_data
                self._frame = None
        n = min(len(buffer), len(self._output))
        buffer[:n] = self._output[:n]
        self._output = self._output[n:]
        return n


# Openers: what reads a compressed stream, and the errors of damaged data. Each imports its module
# when it is needed.


def _gzip(stream: Any, _: str) -> tuple[Readable, tuple[type[Exception], ...]]:
    import gzip
    import zlib

    return gzip.GzipFile(fileobj=stream, mode="rb"), (OSError, zlib.error)


def _bzip2(stream: Any, _: str) -> tuple[Readable, tuple[type[Exception], ...]]:
    import bz2

    return bz2.BZ2File(stream), (OSError,)


def _xz(stream: Any, _: str) -> tuple[Readable, tuple[type[Exception], ...]]:
    import lzma

    return lzma.LZMAFile(stream), (lzma.LZMAError,)


def _zstd(stream: _Rewound, name: str) -> tuple[Readable, tuple[type[Exception], ...]]:
    reader = _ZstdReader(stream, name)
    return io.BufferedReader(reader), (reader.damage,)


_COMPRESSIONS: list[tuple[str, bytes, Callable[[Any, str], tuple[Any, Any]]]] = [
    ("gzip", b"\x1f\x8b", _gzip),
    ("bzip2", b"BZh", _bzip2),
    ("xz", b"\xfd7zXZ\x00", _xz),
    ("zstd", b"\x28\xb5\x2f\xfd", _zstd),
]


def name_of(place: Place) -> str:
    """What messages call a path or stream.

    >>> name_of("-"), name_of("a/b.txt"), name_of(io.BytesIO())
    ('<stdin>', 'a/b.txt', '<stream>')
    """
    if isinstance(place, (str, os.PathLike)):
        return "<stdin>" if place == "-" else os.fspath(place)
    name = getattr(place, "name", None)
    return name if isinstance(name, str) else "<stream>"


@contextmanager
def open_source(place: Place) -> Iterator[Source]:
    """Open a path, a binary stream or "-" (standard input) for reading.

    gzip, bzip2, xz and zstd are detected by their first bytes, not by the name.

    >>> import gzip
    >>> with open_source(io.BytesIO(gzip.compress(b"text"))) as source:
    ...     source.read(100)
    b'text'
    """
    if isinstance(place, (str, os.PathLike)) and place != "-":
        _refuse_folder(place)
        with open(place, "rb") as file:
            yield Source(file, name_of(place))
    elif place == "-":
        yield Source(sys.stdin.buffer, name_of(place))
    elif not isinstance(place, str) and hasattr(place, "read"):
        yield Source(place, name_of(place))
    else:
        raise TypeError(
            f"must be a path, a binary stream or '-', got {type(place).__name__}: {place!r:.60}"
        )


def _refuse_folder(place: str | os.PathLike[str]) -> None:
    """An error that says what to give instead."""
    if os.path.isdir(place):
        from chordal.prepared import is_dataset

        what = "it is a folder: give a file"
        if is_dataset(place):
            what = "it holds prepared data, which serve to train: give the file they were made from"
        raise IsADirectoryError(errno.EISDIR, what, os.fspath(place))


def recoded(place: Place, encoding: str) -> IO[bytes]:
    """A stream of UTF-8 made of a path, a binary stream or "-" in another encoding.

    >>> with open_source(recoded(io.BytesIO("Zürich".encode("latin-1")), "latin-1")) as source:
    ...     source.read(100).decode()
    'Zürich'
    """
    if place == "-":
        stream: IO[bytes] = sys.stdin.buffer
    else:
        stream = open(place, "rb") if isinstance(place, (str, os.PathLike)) else place  # noqa: SIM115
    return io.BufferedReader(_Recoded(Source(stream, name_of(place), utf8=False), encoding))


class _Recoded(io.RawIOBase):
    """UTF-8 instead of another encoding."""

    def __init__(self, source: Source, encoding: str) -> None:
        self.name = source.name
        self._source, self._encoding = source, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ready, self._read = b"", 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            piece = self._source.read(1 << 16, eager=True)
            try:
                self._ready = self._decoder.decode(piece, final=not piece).encode()
            except (UnicodeError, ValueError) as error:
                place = self._read + getattr(error, "start", 0) + 1
                what = f"not {self._encoding} at byte {place}; the file has another encoding"
                raise FormatError(self.name, what) from None
            self._read += len(piece)
            if not piece:
                break
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n


@contextmanager
def open_target(place: Place) -> Iterator[Any]:
    """Open a path, a binary stream or "-" (standard output) for writing.

    A path is written completely or not at all, and compressed if it ends in .gz, .bz2, .xz or .zst.
    A terminal gets control characters written out; a pipe or a file gets the bytes as they are.
    """
    if isinstance(place, (str, os.PathLike)) and place != "-":
        with atomic_write(place) as file, _compressed(file, os.fspath(place)) as target:
            yield target
    elif place == "-":
        yield _Terminal(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer
        sys.stdout.buffer.flush()
    elif hasattr(place, "write") and not isinstance(place, io.TextIOBase):
        yield place
    else:
        raise TypeError(
            f"must be a path, a binary stream or '-', got {type(place).__name__}: {place!r:.60}"
        )


class _Terminal(io.RawIOBase):
    """A terminal, which would obey escape sequences in data: they are written out instead."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._stream.write(shown(self._decoder.decode(bytes(data))).encode())
        return len(data)

    def flush(self) -> None:
        self._stream.flush()


@contextmanager
def _compressed(file: IO[bytes], name: str) -> Iterator[Any]:
    """The file, or what compresses into it; the file itself stays open."""
    suffix = os.path.splitext(name)[1].lower()
    if suffix == ".gz":
        import gzip

        # No name and no time: the same data give the same file.
        with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as stream:
            yield stream
    elif suffix == ".bz2":
        import bz2

        with bz2.BZ2File(file, "wb") as bz2_stream:
            yield bz2_stream
    elif suffix == ".xz":
        import lzma

        with lzma.LZMAFile(file, "wb") as xz_stream:
            yield xz_stream
    elif suffix == ".zst":
        with needed("zstandard", f"writing {name}"):
            import zstandard

        with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as zst_stream:
            yield zst_stream
    else:
        yield file
