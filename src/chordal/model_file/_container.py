"""The container of model files: facts and arrays, read and checked.

It is safetensors: eight bytes with the length of a JSON header, the header, then the
arrays one after another. The header's metadata hold everything that is not an array, as JSON, and
a checksum. The arrays are read into one block of memory and used where they are; the checksum is
that of what was read. What happens to the file later does not matter: a mapped file that is
truncated or written over would kill whoever reads it.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Mapping
from io import BufferedReader
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._atomic import atomic_write

FORMAT = 1  # raised when older versions of chordal could not read what is written
MAX_HEADER = 32_000_000
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


class ModelFileError(ValueError):
    """A model file that cannot be used, and why."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{os.fspath(path)}: {reason}")


def write(path: Path, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write facts and arrays; the file appears whole or not at all."""
    text = json.dumps(facts, default=np.generic.item)
    arrays = {**arrays, "weights": _narrowest(arrays["weights"])}
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
        "model": text,
        "checksum": _checksum(text, table, blocks),
    }
    header = json.dumps({"__metadata__": metadata, **table}).encode()
    header += b" " * (-(8 + len(header)) % 64)
    with atomic_write(path) as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        for block in blocks:
            file.write(block.tobytes())


def read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays of a file; lengths, places and the checksum are right."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            raise ModelFileError(path, "the file is empty")
        header, begin = _header(path, file, size)
        metadata = header.pop("__metadata__", None)
        _check_version(path, metadata)
        arrays = _arrays(path, header, file, size - begin)
    text = metadata["model"]
    if _checksum(text, header, list(arrays.values())) != metadata.get("checksum"):
        raise ModelFileError(path, "the checksum is wrong: the file was damaged or changed")
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(path, f"not a valid model: {error}") from error
    if not isinstance(facts, dict):
        raise ModelFileError(path, "not a valid model: its facts are not a JSON object")
    return facts, arrays


def _header(path: Path, file: BufferedReader, size: int) -> tuple[dict[str, Any], int]:
    """The header, and how many bytes come before the arrays."""
    start = file.read(9)
    if len(start) < 8:
        raise ModelFileError(path, "the file is truncated")
    length = int.from_bytes(start[:8], "little")
    if length > MAX_HEADER or not start[8:] == b"{":
        raise ModelFileError(path, "not a chordal model file")
    if 8 + length > size:
        raise ModelFileError(path, "the file is truncated in its header")
    try:
        header = json.loads(start[8:] + file.read(length - 1))
    except (ValueError, RecursionError) as error:
        raise ModelFileError(path, f"its header cannot be read: {error}") from error
    if not isinstance(header, dict):
        raise ModelFileError(path, "its header is not a JSON object")
    return header, 8 + length


def _check_version(path: Path, metadata: object) -> None:
    if not isinstance(metadata, dict) or metadata.get("format") != "chordal":
        raise ModelFileError(path, "a safetensors file, but not a chordal model")
    version = metadata.get("version")
    if not (isinstance(version, str) and re.fullmatch("[1-9][0-9]{0,8}", version)):
        raise ModelFileError(path, f"its version must be a number from 1 on, got {version!r}")
    if int(version) > FORMAT:
        raise ModelFileError(
            path,
            f"written by a newer chordal (file format {version}; this one reads up to {FORMAT}); "
            "upgrade chordal, or save the model again with the older one",
        )
    if not isinstance(metadata.get("model"), str):
        raise ModelFileError(path, "its header has no model")


def _arrays(
    path: Path, table: Mapping[str, Any], file: BufferedReader, size: int
) -> dict[str, NDArray[Any]]:
    """The arrays in the order of the file, whose last `size` bytes they fill without gaps and
    overlaps; nothing is read before that is known.
    """
    if len(table) > MAX_ARRAYS:
        raise ModelFileError(path, f"must have at most {MAX_ARRAYS} arrays, got {len(table)}")
    places = {name: _place(path, name, entry) for name, entry in table.items()}
    order = sorted(places, key=lambda name: places[name][:2])
    at = 0
    for name in order:
        first, count, dtype = places[name]
        last = first + count * dtype.itemsize
        if last > size:
            raise ModelFileError(path, f"the file is truncated: array {name!r} is not all there")
        if first != at or first % dtype.itemsize:
            raise ModelFileError(path, f"array {name!r} does not fit its place in the file")
        at = last
    if at != size:
        raise ModelFileError(path, f"its arrays take {at} bytes, but {size} follow the header")
    memory = np.empty(size, dtype=np.uint8)
    if file.readinto(memory.data) != size:
        raise ModelFileError(path, "the file was truncated while it was read")
    memory.flags.writeable = False
    return {
        name: np.frombuffer(memory, dtype=dtype, count=count, offset=first)
        for name, (first, count, dtype) in ((name, places[name]) for name in order)
    }


def _place(path: Path, name: str, entry: Mapping[str, Any]) -> tuple[int, int, np.dtype[Any]]:
    """First byte, length and type that the header gives an array; all have one dimension."""
    try:
        dtype = _DTYPES[entry["dtype"]]
        (count,), (first, last) = entry["shape"], entry["data_offsets"]
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(path, f"the header's entry of array {name!r} is wrong") from error
    numbers = all(type(n) is int and n >= 0 for n in (count, first, last))
    if not numbers or len(entry) != 3 or last - first != count * dtype.itemsize:
        raise ModelFileError(path, f"the header's entry of array {name!r} is wrong")
    return first, count, dtype


def _narrowest(weights: NDArray[np.float64]) -> NDArray[Any]:
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
