"""GrabCut: 50 small photographs, an object before its background."""

from __future__ import annotations

from os import PathLike

from chordal.datasets._files import found
from chordal.datasets._image_folders import by_colour, divided, labelled_folder
from chordal.datasets._images import LabelledImages, labelled_images

NAMES = ("grabcut_96.npz", "GrabCut/data_GT", "data_GT")
SOURCE = "the GrabCut images of Rother, Kolmogorov and Blake"
CLASSES = ["background", "object", "unknown"]
GREYS = [(0, 0, 0), (255, 255, 255), (128, 128, 128)]


def load_grabcut(path: str | PathLike[str] | None = None) -> LabelledImages:
    """The images of Rother, Kolmogorov and Blake (2004): background 0, object 1, unknown 2.

    Images are made smaller by a whole factor, so that they have at most 96 pixels to a side.

    Parameters
    ----------
    path : str or Path, optional
        The folder with data_GT and boundary_GT, as they are distributed, or the file
        grabcut_96.npz, made of them; or the folder of either. By default $CHORDAL_DATA/images.

    Raises
    ------
    FileNotFoundError
        The message says which file to put where.
    ValueError
        An image or array is missing or invalid.
    """
    file = found(path, "images", NAMES, SOURCE)
    if file.name == "data_GT":
        folders = "data_GT", "boundary_GT/*.bmp"
        size = divided(lambda of: -(-max(of) // 96))
        return labelled_folder(
            file.parent, *folders, size, by_colour(GREYS), CLASSES, ignore_label=2
        )
    return labelled_images(file, "label", CLASSES, ignore_label=2)
