"""Folders of images as sets are distributed: photographs in one, their labels in another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chordal._optional import needed
from chordal.datasets._images import Bytes, LabelledImages

if TYPE_CHECKING:
    from PIL import Image

FORMATS, SUFFIXES = ("JPEG", "PNG", "BMP"), (".jpg", ".jpeg", ".png", ".bmp")
MOST_PIXELS = 1 << 26

Size = tuple[int, int]  # width, height
Resize = Callable[["Image.Image", Size], Bytes]


def labelled_folder(
    root: Path,
    photographs: str,
    labels: str,
    size: Callable[[Size], Size],
    read: Resize,
    class_names: list[str],
    ignore_label: int | None = None,
) -> LabelledImages:
    """Photographs of a folder, made smaller by averaging, and the labels of the like-named files.

    Parameters
    ----------
    root : Path
    photographs : str
        The folder of images below `root`.
    labels : str
        The file of labels below `root`; `*` is replaced by the name of an image.
    size : function
        The size to which an image of a size is brought.
    read : function
        From an image of labels and a size to a label per pixel.
    class_names : list of str
    ignore_label : int, optional
    """
    found = LabelledImages([], [], [], class_names, ignore_label)
    files = (root / photographs).iterdir()
    for file in sorted(f for f in files if f.suffix.lower() in SUFFIXES):
        mask = root / labels.replace("*", file.stem)
        if not mask.is_file():
            raise FileNotFoundError(f"there is no {mask} with the labels of {file}")
        photograph = _opened(file).convert("RGB")
        wanted = size(photograph.size)
        found.images.append(np.asarray(photograph.resize(wanted, _box())))
        try:
            found.labels.append(read(_opened(mask), wanted))
        except ValueError as error:
            raise ValueError(f"{mask}: {error}") from None
        found.names.append(file.stem)
    if not found.names:
        raise FileNotFoundError(f"there is no image in {root / photographs}")
    return found


def at_most(longest: int) -> Callable[[Size], Size]:
    """Sizes in proportion whose longer side is this."""

    def size(of: Size) -> Size:
        width, height = (max(1, round(longest * side / max(of))) for side in of)
        return width, height

    return size


def divided(by: Callable[[Size], int]) -> Callable[[Size], Size]:
    """Sizes divided by a whole number, which may depend on them."""

    def size(of: Size) -> Size:
        width, height = (max(1, side // by(of)) for side in of)
        return width, height

    return size


def two_classes(mask: Image.Image, size: Size) -> Bytes:
    """1 where a mask, made smaller by averaging, is bright."""
    return (np.asarray(mask.convert("L").resize(size, _box())) > 127).astype(np.uint8)


def by_colour(colours: list[tuple[int, int, int]]) -> Resize:
    """The place of a pixel's colour in this list; resizing takes the nearest pixel."""
    places: dict[tuple[int, ...], int] = {c: place for place, c in enumerate(colours)}

    def read(mask: Image.Image, size: Size) -> Bytes:
        pixels = np.asarray(mask.convert("RGB").resize(size, _nearest()))
        kinds, which = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True)
        labels = [places.get(tuple(int(c) for c in kind), -1) for kind in kinds]
        if -1 in labels:
            raise ValueError(f"a pixel has the colour {kinds[labels.index(-1)]}, of no class")
        return np.array(labels, dtype=np.uint8)[which.reshape(size[::-1])]

    return read


def _opened(file: Path) -> Image.Image:
    """An image, decoded; of the formats that sets come in, and of no more pixels than they have."""
    with needed("PIL", f"reading {file}"):
        from PIL import Image

    try:
        with Image.open(file, formats=FORMATS) as image:
            width, height = image.size
            if width * height > MOST_PIXELS:
                raise ValueError(f"it has {width} × {height} pixels")
            image.load()
            return image.copy()
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(f"{file} is not an image, or is damaged: {error}") from None


def _box() -> Image.Resampling:
    with needed("PIL", "reading images"):
        from PIL import Image

    return Image.Resampling.BOX


def _nearest() -> Image.Resampling:
    with needed("PIL", "reading images"):
        from PIL import Image

    return Image.Resampling.NEAREST
