"""GrabCut: 50 small photographs, an object before its background."""

from __future__ import annotations

from typing import Any

from chordal.datasets._files import found
from chordal.datasets._images import LabelledImages, labelled_images

NAMES = ("grabcut_96.npz",)
SOURCE = "the GrabCut images of Rother, Kolmogorov and Blake, at most 96 pixels wide and high"


def load_grabcut(path: Any = None) -> LabelledImages:
    """The images of Rother, Kolmogorov and Blake (2004): background 0, object 1, unknown 2.

    Parameters
    ----------
    path : str or Path, optional
        The file grabcut_96.npz, or its folder; by default $CHORDAL_DATA/images.

    Raises
    ------
    FileNotFoundError
        Saying which file to put where.
    ValueError
        Where an array is missing or not as it should be.
    """
    file = found(path, "images", NAMES, SOURCE)
    return labelled_images(file, "label", ["background", "object", "unknown"], void=2)
