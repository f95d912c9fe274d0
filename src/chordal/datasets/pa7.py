"""The words and letters of a course's assignment: small images of letters, three to a word."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._optional import needed
from chordal.datasets._files import found

Bytes = NDArray[np.uint8]
Array = NDArray[Any]

HEIGHT, WIDTH = 8, 4
NAMES = ("coursera_pgm_pa7.npz", "mat", "Part2FullDataset.mat")
SOURCE = "assignment 7 of the course Probabilistic Graphical Models"
PART_ONE = (
    *(f"{part}{n}{kind}" for part in ("Train", "Validation") for n in (1, 2) for kind in "XY"),
    "Test1X",
    "Test1Y",
    "Part1Lambdas",
    "ValidationAccuracy",
)


@dataclass(frozen=True)
class PA7:
    """Data of an assignment on learning conditional random fields.

    Attributes
    ----------
    images_train, images_test : list of uint8 arrays [3, 8, 4]
        The letters of a word, or of a part of one: 1 is ink.
    y_train, y_test : list of str arrays [3]
        "a" to "z".
    part_one : dict of arrays
        Images of the letters p (1) and q (0): "Train1X", "Train1Y", "Validation1X" and so on. A
        row has 129 numbers, a one and 128 pixels. "Part1Lambdas" are the penalties to choose
        from, "ValidationAccuracy" is what each of them should reach.
    """

    images_train: list[Bytes]
    y_train: list[NDArray[np.str_]]
    images_test: list[Bytes]
    y_test: list[NDArray[np.str_]]
    part_one: dict[str, Array]


def load_pa7(path: str | PathLike[str] | None = None) -> PA7:
    """The words (part two) and the letters p and q (part one) of assignment 7.

    Parameters
    ----------
    path : str or Path, optional
        The file coursera_pgm_pa7.npz, or the folder with the assignment's own files, such as
        Part2FullDataset.mat. Otherwise both are looked for in the folder $CHORDAL_DATA/pa7.

    Raises
    ------
    FileNotFoundError
        The message says which file to put where.
    ValueError
        An array is missing or invalid.
    """
    file = found(path, "pa7", NAMES, SOURCE)
    if file.name == "mat":
        file = found(file, "pa7", NAMES[-1:], SOURCE)
    arrays = _packed(file) if file.suffix == ".npz" else _matlab(file.parent)
    train, test = (_words(file, arrays, f"full_{part}Data") for part in ("train", "test"))
    part_one = {}
    for name in PART_ONE:
        part_one[name] = array = _array(file, arrays, name)
        if name.endswith("X") and (array.ndim != 2 or array.shape[1] != 129):
            raise ValueError(f"{file}: {name} must have 129 columns, has shape {array.shape}")
        if name.endswith("Y") and array.shape != part_one[f"{name[:-1]}X"].shape[:1]:
            raise ValueError(f"{file}: {name} must have a label per row, has shape {array.shape}")
    return PA7(*train, *test, part_one)


def _packed(file: Path) -> dict[str, Array]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise ValueError(
            f"{file} is not an npz file of plain arrays, or is damaged: {error}"
        ) from None


def _matlab(folder: Path) -> dict[str, Array]:
    """The same arrays from the assignment's own files."""
    arrays = {}
    for name in PART_ONE:
        variables = _mat(folder, name)
        if name in variables:
            arrays[name] = np.squeeze(variables[name])
    words = _mat(folder, "Part2FullDataset")
    for part in ("trainData", "testData"):
        for field in ("X", "y"):
            arrays[f"full_{part}_{field}"] = _cells(folder, words.get(part), part, field)
    return arrays


def _cells(folder: Path, words: object, part: str, field: str) -> Array:
    """One field of a struct array, whose cells have equal shapes."""
    if not isinstance(words, np.ndarray) or field not in (words.dtype.names or ()):
        raise ValueError(f"{folder}: Part2FullDataset.mat must have words {part} with {field}")
    cells = [np.asarray(cell) for cell in words[field].ravel()]
    if len({cell.shape for cell in cells}) != 1:
        raise ValueError(f"{folder}: the {field} of {part} must have equal shapes")
    return np.squeeze(np.stack(cells))


def _mat(folder: Path, name: str) -> dict[str, Any]:
    with needed("scipy", "load_pa7"):
        from scipy.io import loadmat
        from scipy.io.matlab import MatReadError

    file = folder / f"{name}.mat"
    if not file.is_file():
        raise FileNotFoundError(f"there is no {file}: put it there ({SOURCE})")
    # What SciPy raises for a damaged file depends on where the damage is.
    damage = (MatReadError, ValueError, TypeError, LookupError, ArithmeticError, EOFError)
    try:
        return dict(loadmat(file))
    except (*damage, OSError, NotImplementedError, MemoryError, zlib.error) as error:
        raise ValueError(f"{file} is not a MATLAB file, or is damaged: {error}") from None


def _array(file: Path, arrays: dict[str, Array], name: str) -> Array:
    if name not in arrays:
        raise ValueError(f"{file} has no array {name!r}")
    array = np.asarray(arrays[name])
    if array.dtype.kind not in "uif" or not np.isfinite(array).all():
        raise ValueError(f"{file}: {name} must be finite numbers, is {array.dtype}")
    return array


def _words(
    file: Path, arrays: dict[str, Array], name: str
) -> tuple[list[Bytes], list[NDArray[np.str_]]]:
    pixels, labels = (_array(file, arrays, f"{name}_{field}") for field in "Xy")
    if pixels.ndim != 3 or pixels.shape != (*labels.shape, HEIGHT * WIDTH):
        raise ValueError(
            f"{file}: {name} must have {HEIGHT * WIDTH} pixels for each label, has shapes "
            f"{pixels.shape} and {labels.shape}"
        )
    if not np.isin(pixels, (1, 2)).all():
        raise ValueError(f"{file}: the pixels of {name} must be 1 or 2")
    if not np.isin(labels, np.arange(1, 27)).all():
        raise ValueError(f"{file}: the labels of {name} must be whole numbers from 1 to 26")
    # Pixels run down the columns of an image.
    images = (pixels - 1).astype(np.uint8).reshape(*labels.shape, WIDTH, HEIGHT).swapaxes(2, 3)
    letters = np.array([chr(96 + k) for k in range(27)])[labels.astype(np.int64)]
    return list(np.ascontiguousarray(images)), list(letters)
