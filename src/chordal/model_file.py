"""Model files: one file, memory-mapped, never pickle.

The container is safetensors: eight bytes with the length of a JSON header, the header, then the
arrays one after another. The header's metadata hold everything that is not an array, as JSON, and
a checksum. Arrays are used where the file is mapped, so that processes share its pages.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._atomic import atomic_write
from chordal.estimators import ChainCRF
from chordal.estimators._chain_state import from_state, to_state

FORMAT = 1  # raised when older versions of chordal could not read what is written
MAX_HEADER = 100_000_000

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


def save(model: ChainCRF, path: Path) -> None:
    """Write a fitted model; the file appears whole or not at all.

    Weights that float16 or float32 hold exactly, as after `model.compact(dtype="float32")`, are
    stored in that.

    Examples
    --------
    >>> import tempfile
    >>> crf = ChainCRF().fit([[["w=a"], ["w=b"]]], [["A", "B"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(crf, f"{folder}/model.chordal")
    ...     load(f"{folder}/model.chordal").predict([[["w=b"], ["w=a"]]])
    [['B', 'A']]
    """
    facts, arrays = to_state(model)
    arrays["weights"] = _narrowest(arrays["weights"])
    text = json.dumps({"class": type(model).__name__, **facts}, allow_nan=True)
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


def load(path: Path) -> ChainCRF:
    """Open a model file; its arrays stay in the file, mapped into memory.

    Raises
    ------
    ModelFileError
        The file is empty, truncated, changed, not a model, or from a newer version.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size == 0:
            raise ModelFileError(path, "the file is empty")
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    header, begin = _header(path, memory)
    metadata = header.pop("__metadata__", None)
    _check_version(path, metadata)
    arrays = {name: _array(path, name, entry, memory, begin) for name, entry in header.items()}
    used = sum(array.nbytes for array in arrays.values())
    if used != size - begin:
        raise ModelFileError(
            path, f"its arrays take {used} bytes, but {size - begin} follow the header"
        )
    text = metadata["model"]
    in_order = sorted(arrays, key=lambda name: header[name]["data_offsets"][0])
    if _checksum(text, header, [arrays[name] for name in in_order]) != metadata.get("checksum"):
        raise ModelFileError(path, "the checksum is wrong: the file was damaged or changed")
    try:
        facts = json.loads(text)
        return from_state(facts, arrays)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        what = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise ModelFileError(path, f"not a valid model: {what}") from error


def _header(path: Path, memory: mmap.mmap) -> tuple[dict[str, Any], int]:
    if len(memory) < 8:
        raise ModelFileError(path, "the file is truncated")
    length = int.from_bytes(memory[:8], "little")
    if length > MAX_HEADER or not memory[8:9] == b"{":
        raise ModelFileError(path, "not a chordal model file")
    if 8 + length > len(memory):
        raise ModelFileError(path, "the file is truncated in its header")
    try:
        header = json.loads(memory[8 : 8 + length])
    except (ValueError, RecursionError) as error:
        raise ModelFileError(path, f"its header cannot be read: {error}") from error
    if not isinstance(header, dict):
        raise ModelFileError(path, "its header is not a JSON object")
    return header, 8 + length


def _check_version(path: Path, metadata: Any) -> None:
    if not isinstance(metadata, dict) or metadata.get("format") != "chordal":
        raise ModelFileError(path, "a safetensors file, but not a chordal model")
    version = metadata.get("version")
    if not (isinstance(version, str) and version.isascii() and version.isdigit()):
        raise ModelFileError(path, f"its version {version!r} is not a number")
    if int(version) > FORMAT:
        raise ModelFileError(
            path,
            f"written by a newer chordal (file format {version}; this one reads up to {FORMAT}); "
            "upgrade chordal, or save the model again with the older one",
        )
    if not isinstance(metadata.get("model"), str):
        raise ModelFileError(path, "its header has no model")


def _array(path: Path, name: str, entry: Any, memory: mmap.mmap, begin: int) -> NDArray[Any]:
    try:
        dtype = _DTYPES[entry["dtype"]]
        shape = [int(n) for n in entry["shape"]]
        first, last = (int(at) for at in entry["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(path, f"the header's entry of array {name!r} is wrong") from error
    count = 1
    for n in shape:
        count *= n
    if min(shape, default=0) < 0 or not 0 <= first <= last:
        raise ModelFileError(path, f"the header's entry of array {name!r} is wrong")
    if begin + last > len(memory):
        raise ModelFileError(path, f"the file is truncated: array {name!r} is not all there")
    if count * dtype.itemsize != last - first or (begin + first) % dtype.itemsize:
        raise ModelFileError(path, f"array {name!r} does not fit its place in the file")
    return np.frombuffer(memory, dtype=dtype, count=count, offset=begin + first).reshape(shape)


def _narrowest(weights: NDArray[np.float64]) -> NDArray[Any]:
    """The same numbers in the fewest bytes that hold them exactly."""
    for dtype in (np.float16, np.float32):
        with np.errstate(over="ignore"):
            narrow = weights.astype(dtype)
        if (narrow == weights).all():
            return narrow
    return weights


def _checksum(text: str, table: Mapping[str, Any], blocks: list[NDArray[Any]]) -> str:
    """Changes with any bit: CRC-32 of what is text, and sums of the arrays' 64-bit words.

    A CRC of the arrays would take longer than all the rest of opening a file.
    """
    crc = zlib.crc32(json.dumps([text, dict(table)], sort_keys=True).encode())
    total = 0
    for k, block in enumerate(blocks, start=1):
        raw = block.reshape(-1).view(np.uint8)
        whole = len(raw) // 8 * 8
        words = np.frombuffer(raw[:whole], dtype="<u8")
        rest = int.from_bytes(raw[whole:].tobytes(), "little")
        total += k * (int(np.add.reduce(words, dtype=np.uint64)) + rest + len(raw))
    return f"{crc:08x}{total % 2**64:016x}"
