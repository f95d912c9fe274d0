"""Horses: 328 small images with masks."""

from __future__ import annotations

from os import PathLike

from chordal.datasets._files import found
from chordal.datasets._image_folders import at_most, labelled_folder, two_classes
from chordal.datasets._images import LabelledImages, labelled_images

NAMES = ("weizmann_horses_64.npz", "weizmann_horse_db/rgb", "rgb")
SOURCE = "the horses of Borenstein and Ullman"
CLASSES = ["background", "horse"]


def load_weizmann_horses(path: str | PathLike[str] | None = None) -> LabelledImages:
    """The Weizmann horses of Borenstein and Ullman (2002): background 0, horse 1.

    Images have 64 pixels along their longer side.

    Parameters
    ----------
    path : str or Path, optional
        The folder weizmann_horse_db as it is distributed, with folders rgb and figure_ground, or
        the file weizmann_horses_64.npz, made of it; or the folder of either. By default
        $CHORDAL_DATA/images.

    Raises
    ------
    FileNotFoundError
        The message says which file to put where.
    ValueError
        An image or array is missing or invalid.
    """
    file = found(path, "images", NAMES, SOURCE)
    if file.name == "rgb":
        folders = "rgb", "figure_ground/*.jpg"
        return labelled_folder(file.parent, *folders, at_most(64), two_classes, CLASSES)
    return labelled_images(file, "mask", CLASSES, packed=True)
