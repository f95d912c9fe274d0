"""Where data files lie: where the caller says, or in the folder that CHORDAL_DATA names."""

from __future__ import annotations

import gzip
import os
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 1 << 28


def found(path: Any, folder: str, names: Sequence[str], source: str) -> Path:
    """The first of these files that is there.

    Parameters
    ----------
    path : str, Path or None
        A file, or a folder that holds one of `names`; None: the folder $CHORDAL_DATA/`folder`.
    source : str
        Where the file comes from, for the message when there is none.
    """
    root = os.environ.get("CHORDAL_DATA")
    if path is not None:
        place = Path(path)
        if place.is_file():
            return place
    elif root:
        place = Path(root) / folder
    else:
        raise FileNotFoundError(
            f"there is no data: put {_either(names)} ({source}) into a folder {folder!r}, and name "
            "the folder that holds it in the environment variable CHORDAL_DATA, or give path"
        )
    for name in names:
        if (place / name).exists():
            return place / name
    raise FileNotFoundError(f"there is no {_either(names)} in {place}: put it there ({source})")


def arrays_of(file: Path) -> dict[str, NDArray[Any]]:
    """The plain arrays of an npz file; nothing in it is run."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise ValueError(f"{file} is no npz file of plain arrays, or damaged: {error}") from None


def sentences_of(file: Path, n_columns: int, separator: str | None = None) -> list[list[list[str]]]:
    """The rows of every sentence of a file of columns, plain or gzipped; blank lines between."""
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            data: bytes = stream.read(MOST_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{file} is no gzip file, or damaged: {error}") from None
    if len(data) > MOST_BYTES:
        raise ValueError(f"{file} holds more than {MOST_BYTES} bytes")
    sentences: list[list[list[str]]] = [[]]
    for number, line in enumerate(data.decode("utf-8").split("\n"), start=1):
        row = line.rstrip("\r").split(separator)
        if not line.strip():
            sentences.append([])
        elif len(row) != n_columns:
            raise ValueError(
                f"{file}, line {number}: must have {n_columns} columns, has {len(row)}"
            )
        else:
            sentences[-1].append(row)
    return [sentence for sentence in sentences if sentence]


def _either(names: Sequence[str]) -> str:
    return " or ".join(names)
