"""The container of model files, checkpoints and data sets: facts and arrays, read and checked.

It is safetensors: eight bytes with the length of a JSON header, the header, then the
arrays one after another. The header's metadata hold everything that is not an array, as JSON, and
a checksum. The arrays are read into one block of memory and used where they are; the checksum is
that of what was read. What happens to the file later does not matter. Files are not mapped: to
truncate a mapped file would crash every process that reads it.
"""

from __future__ import annotations

import copyreg
import json
import os
import re
import stat
import zlib
from collections.abc import Mapping
from io import BufferedReader
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._atomic import atomic_write
from chordal._bounded_json import MAX_BYTES, check_size, parsed

FORMAT = 1  # raised when older versions of chordal could not read what is written
MAX_ARRAYS = 10_000

_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "U32": np.dtype("<u4"),
    "U8": np.dtype("<u1"),
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

Path = str | os.PathLike[str]


class FileError(ValueError):
    """A file that cannot be used, and why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{os.fspath(path)}: {reason}")

    def __reduce__(self) -> tuple[Any, ...]:
        """By its text: errors cross from worker processes."""
        return copyreg.__newobj__, (type(self), *self.args)  # type: ignore[attr-defined]

    def prefixed(self, where: str) -> FileError:
        """The same error with a text that begins with `where`."""
        return type(self).__new__(type(self), f"{where}{self}")


class ModelFileError(FileError):
    """A model file that cannot be used, and why."""


class Kind(NamedTuple):
    """What a file holds: the name of its facts in the header, what it is called, its error."""

    key: str
    name: str
    error: type[FileError]


class CheckpointError(FileError):
    """A checkpoint that a fit cannot go on from, and why."""


MODEL = Kind("model", "model", ModelFileError)
CHECKPOINT = Kind("checkpoint", "checkpoint", CheckpointError)
KINDS = (MODEL, CHECKPOINT)


def write(
    path: Path, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], kind: Kind = MODEL
) -> None:
    """Write facts and arrays; the file appears whole or not at all."""
    text = json.dumps(facts, default=np.generic.item)
    # Long elements first, so that every array is aligned.
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    table: dict[str, Any] = {}
    blocks = []
    at = 0
    for name, array in ordered:
        little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
        table[name] = {
            "dtype": _NAMES[little.dtype],
            "shape": list(little.shape),
            "data_offsets": [at, at + little.nbytes],
        }
        at += little.nbytes
        blocks.append(little)
    metadata = {
        "format": "chordal",
        "version": str(FORMAT),
        kind.key: text,
        "checksum": _checksum(text, table, blocks),
    }
    header = json.dumps({"__metadata__": metadata, **table}).encode()
    header += b" " * (-(8 + len(header)) % 64)
    try:
        check_size(header)
    except ValueError as error:  # it could not be read again
        raise kind.error(path, f"cannot be written, its header is too large: {error}") from None
    with atomic_write(path) as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        for block in blocks:
            file.write(block.view(np.uint8).data)  # without a copy


def opened(path: Path, kind: Kind = MODEL) -> BufferedReader:
    """A file, open to be read; an error for a pipe or a device, which could wait for ever."""
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # to open a folder is an error
        what = "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"
        raise kind.error(path, f"is {what}; give the path of a {kind.name} file on disk")
    return open(path, "rb")


def read(path: Path, kind: Kind = MODEL) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays of a file; lengths, places and the checksum are right."""
    with opened(path, kind) as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            raise kind.error(path, "the file is empty")
        header, begin = _header(path, file, size, kind)
        metadata = header.pop("__metadata__", None)
        _check_version(path, metadata, kind)
        places = _places(path, header, size - begin, kind)
        memory = _loaded(path, file, size - begin, kind)
    arrays = {
        name: np.frombuffer(memory, dtype=dtype, count=count, offset=first)
        for name, (first, count, dtype) in places.items()
    }
    text = metadata[kind.key]
    found = metadata.get("checksum")
    if _checksum(text, header, list(arrays.values())) != found:
        raise kind.error(path, "the checksum is wrong: the file was damaged or changed")
    try:
        facts = parsed(text)
    except ValueError as error:
        raise kind.error(path, f"not a valid {kind.name}: {error}") from error
    if not isinstance(facts, dict):
        raise kind.error(path, f"not a valid {kind.name}: its facts are not a JSON object")
    return facts, arrays


def _header(path: Path, file: BufferedReader, size: int, kind: Kind) -> tuple[dict[str, Any], int]:
    """The header, and how many bytes come before the arrays."""
    start = file.read(9)
    if len(start) < 8:
        raise kind.error(path, "the file is truncated")
    length = int.from_bytes(start[:8], "little")
    if length >= 1 << 48 or not start[8:] == b"{":
        raise kind.error(path, f"not a chordal {kind.name} file")
    if length > MAX_BYTES:
        raise kind.error(path, f"its header has {length} bytes, more than {MAX_BYTES}")
    if 8 + length > size:
        raise kind.error(path, "the file is truncated in its header")
    try:
        header = parsed(start[8:] + file.read(length - 1))
    except ValueError as error:
        raise kind.error(path, f"its header cannot be read: {error}") from error
    if not isinstance(header, dict):
        raise kind.error(path, "its header is not a JSON object")
    return header, 8 + length


def _check_version(path: Path, metadata: object, kind: Kind) -> None:
    if not isinstance(metadata, dict) or metadata.get("format") != "chordal":
        raise kind.error(path, f"a safetensors file, but not a chordal {kind.name}")
    version = metadata.get("version")
    if not (isinstance(version, str) and re.fullmatch("[1-9][0-9]{0,8}", version)):
        raise kind.error(path, f"its version must be a number from 1 on, got {version!r}")
    if int(version) > FORMAT:
        raise kind.error(
            path,
            f"written by a newer chordal (file format {version}; this one reads up to {FORMAT}); "
            "upgrade chordal, or write the file again with the older one",
        )
    if not isinstance(metadata.get(kind.key), str):
        other = next((known for known in KINDS if known.key in metadata), None)
        holds = "" if other is None else f": it holds a {other.name}"
        raise kind.error(path, f"its header has no {kind.name}{holds}")


def _places(
    path: Path, table: Mapping[str, Any], size: int, kind: Kind
) -> dict[str, tuple[int, int, np.dtype[Any]]]:
    """Where the arrays are, in the order of the file, whose last `size` bytes they fill without
    gaps and overlaps; nothing is read before that is known.
    """
    if len(table) > MAX_ARRAYS:
        raise kind.error(path, f"must have at most {MAX_ARRAYS} arrays, got {len(table)}")
    places = {name: _place(path, name, entry, kind) for name, entry in table.items()}
    order = sorted(places, key=lambda name: places[name][:2])
    at = 0
    for name in order:
        first, count, dtype = places[name]
        last = first + count * dtype.itemsize
        if last > size:
            raise kind.error(path, f"the file is truncated: array {name!r} is not all there")
        if first != at or first % dtype.itemsize:
            raise kind.error(path, f"array {name!r} does not fit its place in the file")
        at = last
    if at != size:
        raise kind.error(path, f"its arrays take {at} bytes, but {size} follow the header")
    return {name: places[name] for name in order}


def _loaded(path: Path, file: BufferedReader, size: int, kind: Kind) -> NDArray[np.uint8]:
    """The rest of a file, read."""
    memory = np.empty(size, dtype=np.uint8)
    if file.readinto(memory.data) != size:
        raise kind.error(path, "the file was truncated while it was read")
    memory.flags.writeable = False
    return memory


def _place(
    path: Path, name: str, entry: Mapping[str, Any], kind: Kind
) -> tuple[int, int, np.dtype[Any]]:
    """First byte, length and type that the header gives an array; all have one dimension."""
    try:
        dtype = _DTYPES[entry["dtype"]]
        (count,), (first, last) = entry["shape"], entry["data_offsets"]
    except (KeyError, TypeError, ValueError) as error:
        raise kind.error(path, f"the header's entry of array {name!r} is wrong") from error
    numbers = all(type(n) is int and n >= 0 for n in (count, first, last))
    if not numbers or len(entry) != 3 or last - first != count * dtype.itemsize:
        raise kind.error(path, f"the header's entry of array {name!r} is wrong")
    return first, count, dtype


def narrowest(weights: NDArray[np.float64]) -> NDArray[Any]:
    """The same numbers in the fewest bytes that hold them exactly."""
    for dtype in (np.float16, np.float32):
        with np.errstate(over="ignore"):
            narrow = weights.astype(dtype)
        if (narrow == weights).all():
            return narrow
    return weights


def _checksum(text: str, table: Mapping[str, Any], blocks: list[NDArray[Any]]) -> str:
    """Changes with any bit: CRC-32 of what is text, and of sums of the arrays.

    A CRC of the arrays themselves would take longer than all the rest of opening a file. Their
    64-bit words stand in rows of 1024; sums of rows and of columns say where a word changed.
    """
    crc = zlib.crc32(json.dumps([text, dict(table)], sort_keys=True).encode())
    sums = 0
    for block in blocks:
        raw = block.view(np.uint8)
        whole = len(raw) // 8192 * 8192
        words = raw[:whole].view("<u8").reshape(-1, 1024)
        for part in (words.sum(axis=0), words.sum(axis=1), raw[whole:]):
            sums = zlib.crc32(part.tobytes(), sums)
    return f"{crc:08x}{sums:08x}"
