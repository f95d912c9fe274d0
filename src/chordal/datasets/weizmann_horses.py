"""Horses: 328 small images with masks."""

from __future__ import annotations

from typing import Any

from chordal.datasets._files import found
from chordal.datasets._images import LabelledImages, labelled_images

NAMES = ("weizmann_horses_64.npz",)
SOURCE = "the horses of Borenstein and Ullman, at most 64 pixels wide and high"


def load_weizmann_horses(path: Any = None) -> LabelledImages:
    """The Weizmann horses of Borenstein and Ullman (2002): background 0, horse 1.

    Parameters
    ----------
    path : str or Path, optional
        The file weizmann_horses_64.npz, or its folder; by default $CHORDAL_DATA/images.

    Raises
    ------
    FileNotFoundError
        Saying which file to put where.
    ValueError
        Where an array is missing or not as it should be.
    """
    file = found(path, "images", NAMES, SOURCE)
    return labelled_images(file, "mask", ["background", "horse"], packed=True)
