"""Gestures: twenty small sets of videos, a bag of visual words for every window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_number
from chordal.datasets._files import arrays_of, found

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


def load_gestures(number: int, path: Any = None) -> Gestures:
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
    arrays = arrays_of(file)
    try:
        train, test = (
            [arrays[f"set{number:02d}_{part}_{name}"] for name in ("X", "y", "offsets")]
            for part in ("tr", "te")
        )
    except KeyError as error:
        raise ValueError(f"{file} has no array {error}") from None
    return Gestures(*_videos(file, *train), *_videos(file, *test))


def _videos(file: Any, X: Any, y: Any, offsets: Any) -> tuple[list[Floats], list[Ints]]:
    good = X.ndim == 2 and X.shape[1] == N_FEATURES and y.shape == X.shape[:1]
    good = good and offsets.ndim == 1 and len(offsets) >= 2
    if not good or offsets[0] != 0 or offsets[-1] != len(X) or (np.diff(offsets) <= 0).any():
        raise ValueError(f"{file}: rows of {N_FEATURES}, labels and offsets do not fit together")
    if not np.isfinite(X).all():
        raise ValueError(f"{file}: all features must be finite")
    cuts = offsets[1:-1]
    return np.split(X.astype(np.float64), cuts), np.split(y.astype(np.int64), cuts)
