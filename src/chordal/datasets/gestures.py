"""Gestures: twenty small sets of videos, a bag of visual words for every window."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_number
from chordal.datasets._files import found
from chordal.datasets._npz import arrays_of, items, require

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

N_SETS, N_FEATURES = 20, 60
NAMES = ("chalearn_bof_20sets.npz",)
SOURCE = "bags of features of ChaLearn's development sets 1 to 20 (CGD2011)"


@dataclass(frozen=True)
class Gestures:
    """One set of videos: what was seen and which gesture it was, window by window; 0 is rest.

    Attributes
    ----------
    X_train, X_test : list of float arrays [n_windows, 60]
    y_train, y_test : list of int arrays [n_windows]
    """

    X_train: list[Floats]
    y_train: list[Ints]
    X_test: list[Floats]
    y_test: list[Ints]


def load_gestures(number: int, path: str | PathLike[str] | None = None) -> Gestures:
    """One of twenty sets of ChaLearn's gesture challenge.

    Parameters
    ----------
    number : int
        1 to 20.
    path : str or Path, optional
        The file chalearn_bof_20sets.npz, or its folder. Otherwise it is looked for in the folder
        $CHORDAL_DATA/gesture.
    """
    check_number("number", number, minimum=1, integer=True)
    if number > N_SETS:
        raise ValueError(f"number must be from 1 to {N_SETS}, got {number}")
    file = found(path, "gesture", NAMES, SOURCE)
    return Gestures(*_videos(file, f"set{number:02d}_tr"), *_videos(file, f"set{number:02d}_te"))


def _videos(file: Path, part: str) -> tuple[list[Floats], list[Ints]]:
    kinds = {f"{part}_X": "f2", f"{part}_y": "iu1", f"{part}_offsets": "iu1"}
    X, y, offsets = arrays_of(file, **kinds).values()
    require(X.shape[1] == N_FEATURES, file, f"{part}_X must have {N_FEATURES} columns")
    require(y.shape == X.shape[:1], file, f"{part}_y must have a label for each row of {part}_X")
    windows = items(file, f"{part}_X", X.astype(np.float64), offsets)
    return list(windows), list(items(file, f"{part}_y", y.astype(np.int64), offsets))
