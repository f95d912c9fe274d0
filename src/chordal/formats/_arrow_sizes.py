"""What the compressed batches of an Arrow file claim to hold, before anything is decompressed.

pyarrow decompresses a batch as a whole, so a small file could ask for any amount of memory. The
footer lists where the batches are. The description of a batch lists its buffers, and a compressed
buffer begins with eight bytes: its size when decompressed, or −1 if it is stored as it is. Footer
and descriptions are FlatBuffers: a table begins with the distance to the list of its fields.

Reference: Apache Arrow, columnar format, "Serialization and interprocess communication".
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import IO, NamedTuple

MAGIC = b"ARROW1"
DICTIONARY = 2  # a message with a table of values, which holds a batch


def decompressed_sizes(file: IO[bytes]) -> Iterator[int]:
    """The bytes of each batch once decompressed; 0 for batches that are not compressed.

    ValueError if the file does not end like an Arrow file, or its parts are not where it says.

    Examples
    --------
    >>> import io
    >>> import pyarrow as pa
    >>> file, table = io.BytesIO(), pa.table({"n": pa.array([7] * 1000)})
    >>> options = pa.ipc.IpcWriteOptions(compression="zstd")
    >>> with pa.ipc.new_file(file, table.schema, options=options) as writer:
    ...     writer.write_table(table)
    >>> list(decompressed_sizes(file))
    [8000]
    """
    try:
        for offset, described, _ in _blocks(file):
            yield _decompressed(file, offset, described)
    except struct.error as error:
        raise ValueError(f"its parts are not where it says: {error}") from None


class Table(NamedTuple):
    """A table of a FlatBuffer."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> Table:
        """The table that everything else hangs on."""
        return cls(data, _number("<I", data, 0))

    def field(self, k: int) -> int | None:
        """The place of the k-th field, if the table has it."""
        fields = self.at - _number("<i", self.data, self.at)
        if 4 + 2 * k >= _number("<H", self.data, fields):
            return None
        distance = _number("<H", self.data, fields + 4 + 2 * k)
        return self.at + distance if distance else None

    def table(self, k: int) -> Table | None:
        """The table that the k-th field refers to."""
        place = self.field(k)
        return None if place is None else Table(self.data, place + _number("<I", self.data, place))

    def rows(self, k: int, form: str) -> Iterator[tuple[int, ...]]:
        """The rows of numbers that the k-th field refers to, read by a form of `struct`."""
        place = self.field(k)
        if place is None:
            return
        first = place + _number("<I", self.data, place)
        for row in range(_number("<I", self.data, first)):
            yield struct.unpack_from(form, self.data, first + 4 + row * struct.calcsize(form))


def _blocks(file: IO[bytes]) -> Iterator[tuple[int, ...]]:
    """Where each batch begins, and the lengths of its description and of its buffers."""
    end = file.seek(0, os.SEEK_END)
    (length,) = struct.unpack("<i", _read(file, end - 10, 4))
    if _read(file, end - 6, 6) != MAGIC or not 0 < length <= end - 10:
        raise ValueError("it does not end like an Arrow file")
    footer = Table.root(_read(file, end - 10 - length, length))
    for k in (2, 3):  # dictionaries, batches
        yield from footer.rows(k, "<qi4xq")


def _decompressed(file: IO[bytes], offset: int, described: int) -> int:
    """The bytes of one batch once decompressed."""
    begin = 8 if _read(file, offset, 4) == b"\xff\xff\xff\xff" else 4
    message = Table.root(_read(file, offset + begin, described - begin))
    kind, batch = message.field(1), message.table(2)
    if batch is not None and kind is not None and _number("<B", message.data, kind) == DICTIONARY:
        batch = batch.table(1)
    if batch is None or batch.field(3) is None:
        return 0
    total = 0
    for place, length in batch.rows(2, "<qq"):
        if length:
            (size,) = struct.unpack("<q", _read(file, offset + described + place, 8))
            total += length if size < 0 else size
    return total


def _number(form: str, data: bytes, at: int) -> int:
    if at < 0:
        raise struct.error(f"a place before the beginning, {at}")
    found: int = struct.unpack_from(form, data, at)[0]
    return found


def _read(file: IO[bytes], at: int, n: int) -> bytes:
    """Bytes of a file, all of which must be there."""
    if at < 0 or n < 0:
        raise struct.error(f"a place before the beginning, {at}")
    if at >= 1 << 63:
        raise struct.error(f"a place beyond any file, {at}")
    file.seek(at)
    found = file.read(n)
    if len(found) != n:
        raise struct.error(f"it ends before byte {at + n}")
    return found
