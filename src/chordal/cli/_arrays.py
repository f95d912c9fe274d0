"""Examples of numbers from an npz file: sequences of rows, images, or rows of a table."""

from __future__ import annotations

import zipfile
import zlib
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import FormatError

Array = NDArray[Any]
MOST_BYTES = 1 << 32  # unpacked


def load_arrays(path: str) -> tuple[list[Array], list[Array] | None]:
    """Examples and their labels; None for labels that the file does not have.

    The array X has one of three forms. Sequences are rows [n_rows, n_features], and `lengths` says
    how many rows each sequence has. Images are pixels [n_pixels, n_features], and `shapes` [n, 2]
    has their heights and widths. Images of one size are [n, height, width, channels]. The array y
    has a label for each row or pixel.
    """
    arrays, X, y = _numbers(path)
    if X.ndim == 4:
        if y is not None and y.shape != X.shape[:3]:
            raise FormatError(path, f"y must have the shape {X.shape[:3]} of X, has {y.shape}")
        return list(X), None if y is None else list(y)
    if X.ndim != 2:
        raise FormatError(path, f"X must have 2 or 4 dimensions, has {X.ndim}")
    if y is not None and y.shape != X.shape[:1]:
        raise FormatError(path, f"y must have {len(X)} labels, one per row of X, has {y.shape}")
    shapes = _shapes(path, arrays, len(X))
    cuts = np.concatenate([[0], np.cumsum(shapes.prod(axis=1))]).tolist()
    parts = [slice(a, b) for a, b in pairwise(cuts)]
    if shapes.shape[1] == 1:
        return [X[own] for own in parts], None if y is None else [y[own] for own in parts]
    sizes = [tuple(map(int, shape)) for shape in shapes]
    pairs = list(zip(parts, sizes, strict=True))
    images = [X[own].reshape(*size, X.shape[1]) for own, size in pairs]
    return images, None if y is None else [y[own].reshape(size) for own, size in pairs]


def load_rows(path: str) -> tuple[Array, Array | None]:
    """Rows [n, n_features] for a classifier, and y: labels [n], or 0 and 1 [n, n_labels]."""
    _, X, y = _numbers(path)
    if X.ndim != 2:
        raise FormatError(path, f"a classifier takes rows X [n, n_features], X has {X.ndim} axes")
    if y is not None and (y.ndim not in (1, 2) or len(y) != len(X)):
        raise FormatError(path, f"y must have {len(X)} labels, one per row of X, has {y.shape}")
    return X, y


def _numbers(path: str) -> tuple[dict[str, Array], Array, Array | None]:
    """The arrays of a file, X among them, which must be finite, and y if there is one."""
    arrays = _plain_arrays(path)
    if "X" not in arrays or arrays["X"].dtype.kind not in "fiub":
        raise FormatError(path, "there is no array X of numbers in it")
    X = arrays["X"]
    if not np.isfinite(X).all():
        raise FormatError(path, "X holds NaN or infinity; clean or impute it")
    return arrays, X, arrays.get("y")


def _plain_arrays(path: str) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > MOST_BYTES:
            raise FormatError(path, f"it holds {size:,} bytes, more than {MOST_BYTES:,}")
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name] for name in ("X", "y", "lengths", "shapes") if name in found}
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, MemoryError) as error:
        raise FormatError(path, f"not an npz file of plain arrays, or damaged: {error}") from None


def _shapes(path: str, arrays: dict[str, Array], n: int) -> NDArray[np.int64]:
    """How many rows each example has: a column of lengths, or heights and widths."""
    name = "shapes" if "shapes" in arrays else "lengths"
    if name not in arrays:
        raise FormatError(
            path,
            "X has rows of all examples: add an array lengths (rows of each sequence) or shapes "
            "(height and width of each image)",
        )
    found, ndim = arrays[name], 2 if name == "shapes" else 1
    if found.dtype.kind not in "iu" or found.ndim != ndim or (ndim == 2 and found.shape[1] != 2):
        shape = "[n, 2]" if name == "shapes" else "[n]"
        raise FormatError(
            path, f"{name} must be whole numbers {shape}, is {found.dtype} {found.shape}"
        )
    shapes = found.reshape(len(found), -1).astype(np.int64)
    if (shapes < 0).any() or (shapes > n).any() or int(shapes.prod(axis=1).sum()) != n:
        raise FormatError(path, f"{name} must add up to the {n} rows of X")
    return shapes
