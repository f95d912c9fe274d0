"""Plain arrays from npz files: no pickle, no more memory than the data may need, shapes checked."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MOST_BYTES = 1 << 28  # unpacked: several times what the largest set needs


def arrays_of(file: Path, **kinds: str) -> dict[str, Array]:
    """These arrays of the file, each of a kind and number of dimensions, such as "u2" or "if1"."""
    try:
        with zipfile.ZipFile(file) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > MOST_BYTES:
                raise ValueError(f"it holds {size} bytes, more than {MOST_BYTES}")
        with np.load(file, allow_pickle=False) as archive:
            missing = [name for name in kinds if name not in archive.files]
            arrays = {name: archive[name] for name in kinds if name not in missing}
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, MemoryError) as error:
        raise ValueError(
            f"{file} is not an npz file of plain arrays, or is damaged: {error}"
        ) from None
    if missing:
        raise ValueError(f"{file} has no array {missing[0]!r}")
    for name, array in arrays.items():
        kind, ndim = kinds[name][:-1], int(kinds[name][-1])
        if array.dtype.kind not in kind or array.ndim != ndim:
            raise ValueError(
                f"{file}: {name} must have {ndim} dimensions of kind {kind!r}, is {array.dtype} of "
                f"shape {array.shape}"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{file}: {name} must be finite numbers")
    return arrays


def require(condition: object, file: Path, what: str) -> None:
    """Refuse a file whose arrays do not fit each other."""
    if not condition:
        raise ValueError(f"{file}: {what}")


def items(file: Path, name: str, array: Array, offsets: Array) -> Iterator[Array]:
    """array[offsets[i]:offsets[i + 1]] for each i."""
    good = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(array)
    require(
        good and (np.diff(offsets) >= 0).all(),
        file,
        f"offsets must rise from 0 to the length of {name} ({len(array)})",
    )
    return (array[a:b] for a, b in pairwise(offsets.tolist()))
