"""A letter X in 32 × 32 pixels, the picture of many demonstrations of denoising."""

from __future__ import annotations

from os import PathLike

import numpy as np
from numpy.typing import NDArray

from chordal.datasets._files import found
from chordal.datasets._npz import arrays_of, require

NAMES = ("ugm_X.npz",)
SOURCE = "the picture of the demonstrations in Schmidt's UGM"


def load_ugm_x(path: str | PathLike[str] | None = None) -> NDArray[np.uint8]:
    """The picture [32, 32] of zeros and ones.

    Parameters
    ----------
    path : str or Path, optional
        The file ugm_X.npz, or its folder; by default $CHORDAL_DATA/images.

    Raises
    ------
    FileNotFoundError
        The message says which file to put where.
    ValueError
        The array is missing or invalid.
    """
    file = found(path, "images", NAMES, SOURCE)
    image = arrays_of(file, X="u2")["X"].astype(np.uint8)
    require(image.shape == (32, 32) and image.max() <= 1, file, "X must be 32 × 32 of 0 and 1")
    return image
