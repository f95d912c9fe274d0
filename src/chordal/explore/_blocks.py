"""Blocks of data inside a page: named columns of numbers and a JSON header, compressed."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Types of columns, by the names of their typed arrays in JavaScript.
TYPES = {
    "u1": "Uint8Array",
    "u2": "Uint16Array",
    "u4": "Uint32Array",
    "f4": "Float32Array",
    "f8": "Float64Array",
}


def block(facts: Mapping[str, Any], columns: Mapping[str, NDArray[Any]]) -> str:
    """Facts and columns as text of base64.

    Before compression, the bytes are the length of the header (uint32), the header in JSON, and
    the columns. Header and columns are padded, so that each column begins at a multiple of 8. All
    numbers are little-endian.
    """
    places, parts, end = {}, [], 0
    for name, column in columns.items():
        kind = column.dtype.str[1:]
        data = column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes()
        places[name] = [TYPES[kind], end, len(column)]
        parts.append(data + bytes(-len(data) % 8))
        end += len(parts[-1])
    header = json.dumps({**facts, "columns": places}, separators=(",", ":"), allow_nan=False)
    head = header.encode("ascii")
    head += b" " * (-(len(head) + 4) % 8)
    raw = b"".join([len(head).to_bytes(4, "little"), head, *parts])
    return base64.b64encode(gzip.compress(raw, compresslevel=6, mtime=0)).decode("ascii")


def small(numbers: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers from 0 on in the narrowest type that holds them.

    >>> small(np.array([3, 255])).dtype, small(np.array([256])).dtype
    (dtype('uint8'), dtype('uint16'))
    """
    largest = int(numbers.max(initial=0))
    kind = np.uint8 if largest < 1 << 8 else np.uint16 if largest < 1 << 16 else np.uint32
    return numbers.astype(kind)


def plain(value: float, digits: int = 6) -> float | None:
    """A number as JSON can hold it: None for what is not finite."""
    return round(float(value), digits) if np.isfinite(value) else None
