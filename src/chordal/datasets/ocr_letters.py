"""Handwritten words: 52,152 letters of 16 × 8 pixels, in 6,877 words."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal.datasets._files import Official, found

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

HEIGHT, WIDTH = 16, 8
N_PIXELS = HEIGHT * WIDTH
N_FOLDS = 10
MOST_BYTES = 1 << 28  # of the text: nearly twenty times what there is
NAMES = ("letter.data.gz", "letter.data")
SOURCE = "the OCR letters of Rob Kassel and Ben Taskar"
OFFICIAL = {
    "letter.data.gz": Official(
        "https://ai.stanford.edu/~btaskar/ocr/letter.data.gz",
        "535363d0b7bc34246b1f8731719540f526b6807b12dda5d430d011d160bc7882",
    )
}


@dataclass(frozen=True)
class OCRLetters:
    """Handwritten words. The first letter of each was capital, and is left out.

    Attributes
    ----------
    images : list of uint8 arrays [length, 16, 8]
        The letters of a word: 1 is ink.
    y : list of str arrays [length]
        "a" to "z".
    folds : int array [n_words]
        0 to 9: the official split for cross-validation.
    """

    images: list[Bytes]
    y: list[NDArray[np.str_]]
    folds: Ints

    @property
    def X(self) -> list[Floats]:
        """The pixels of each letter in a row [length, 128]."""
        return [images.reshape(-1, N_PIXELS).astype(np.float64) for images in self.images]


def load_ocr_letters(path: str | PathLike[str] | None = None) -> OCRLetters:
    """The handwritten words of Kassel (1995), as Taskar, Guestrin and Koller (2003) prepared them.

    Parameters
    ----------
    path : str or Path, optional
        The file letter.data.gz (or letter.data) as it is distributed, or its folder. Otherwise it
        is looked for in the folder $CHORDAL_DATA/ocr and in the user's cache, and downloaded.

    Raises
    ------
    FileNotFoundError
        The message says which file to put where.
    ValueError
        The message names the first invalid line.
    """
    file = found(path, "ocr", NAMES, SOURCE, OFFICIAL)
    data = np.frombuffer(_text(file), dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if len(ends) == 0:
        raise ValueError(f"{file} has no line that ends: it is empty, or cut off")
    if ends[-1] != len(data) - 1:
        raise ValueError(f"{file} ends within line {len(ends) + 1}: it is cut off")
    begins = np.concatenate([[0], ends[:-1] + 1])
    pixels, heads = _pixels(file, data, begins, ends)
    letters, columns = _heads(file, data, begins, heads)
    limits = _words(file, *columns)
    images = pixels.reshape(-1, HEIGHT, WIDTH)
    return OCRLetters(
        np.split(images, limits[1:-1]),
        np.split(letters, limits[1:-1]),
        columns[3][limits[:-1]],
    )


def _text(file: Path) -> bytes:
    """The text of the file, unpacked; not more than could be."""
    try:
        with file.open("rb") as plain:
            stream = gzip.GzipFile(fileobj=plain) if file.suffix == ".gz" else plain
            data: bytes = stream.read(MOST_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{file} is not a gzip file, or is damaged: {error}") from None
    if len(data) > MOST_BYTES:
        raise ValueError(f"{file} holds more than {MOST_BYTES} bytes: it is not {SOURCE}")
    return data


def _pixels(file: Path, data: Bytes, begins: Ints, ends: Ints) -> tuple[Bytes, Ints]:
    """The last 128 fields of every line [n, 128], and where each line's other fields end."""
    # A line ends with its last pixel, a tab, both or neither of which a copy may have changed.
    last = ends - 1
    last = last - (data[last] == ord("\r"))
    last = last - (data[last] == ord("\t"))
    first = last - 2 * (N_PIXELS - 1)
    short = np.flatnonzero(first - 1 <= begins)
    if len(short):
        raise _wrong(file, short[0], f"must have {6 + N_PIXELS} fields")
    fields = np.lib.stride_tricks.sliding_window_view(data, 2 * N_PIXELS)[first - 1]
    wrong = (fields[:, ::2] != ord("\t")).any(axis=1)
    pixels = fields[:, 1::2] - np.uint8(ord("0"))
    wrong |= (pixels > 1).any(axis=1)
    if wrong.any():
        raise _wrong(file, int(np.argmax(wrong)), f"must end with {N_PIXELS} pixels, each 0 or 1")
    return pixels, first - 1


def _heads(
    file: Path, data: Bytes, begins: Ints, heads: Ints
) -> tuple[NDArray[np.str_], tuple[Ints, Ints, Ints, Ints]]:
    """Letters, and the numbers next_id, word_id, position and fold."""
    text = data.tobytes()
    rows = [text[a:b].split(b"\t") for a, b in zip(begins.tolist(), heads.tolist(), strict=True)]
    for n, row in enumerate(rows):
        good = len(row) == 6 and len(row[1]) == 1 and b"a" <= row[1] <= b"z"
        if not good or not all(_is_number(row[k]) for k in (0, 2, 3, 4, 5)):
            what = "must begin with id, letter (a to z), next_id, word_id, position, fold"
            raise _wrong(file, n, what)
    letters = np.array([row[1] for row in rows], dtype="S1").astype("U1")
    numbers = np.array([[int(row[k]) for k in (2, 3, 4, 5)] for row in rows], dtype=np.int64)
    if (fold := numbers[:, 3]).min() < 0 or fold.max() >= N_FOLDS:
        at = int(np.argmax((fold < 0) | (fold >= N_FOLDS)))
        raise _wrong(file, at, f"must have a fold from 0 to {N_FOLDS - 1}, has {fold[at]}")
    return letters, (numbers[:, 0], numbers[:, 1], numbers[:, 2], fold)


def _is_number(field: bytes) -> bool:
    return len(field) <= 9 and field.removeprefix(b"-").isdigit()


def _words(file: Path, next_id: Ints, word: Ints, position: Ints, fold: Ints) -> Ints:
    """Where words begin and end; a word is one run of lines, its letters numbered."""
    goes_on = next_id[:-1] != -1
    if next_id[-1] != -1:
        raise _wrong(file, len(next_id) - 1, "must end a word, next_id -1: the file is cut off")
    same = (word[1:] == word[:-1]) & (fold[1:] == fold[:-1]) & (position[1:] > position[:-1])
    if (goes_on & ~same).any():
        at = int(np.argmax(goes_on & ~same)) + 1
        raise _wrong(file, at, "must go on with the word of the line before, in its fold")
    return np.concatenate([[0], np.flatnonzero(~goes_on) + 1, [len(next_id)]])


def _wrong(file: Path, row: int | np.integer[Any], what: str) -> ValueError:
    return ValueError(f"{file}, line {int(row) + 1}: {what}")
