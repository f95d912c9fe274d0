"""Images with a label for every pixel, as several sets have them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from chordal.datasets._npz import Array, arrays_of, items, require

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class LabelledImages:
    """Images with a label per pixel.

    Attributes
    ----------
    images : list of uint8 arrays [height, width, 3]
        Red, green, blue.
    labels : list of uint8 arrays [height, width]
        A number per pixel: the place in `class_names`.
    names : list of str
    class_names : list of str
    ignore_label : int or None
        The label of unknown pixels.
    """

    images: list[Bytes]
    labels: list[Bytes]
    names: list[str]
    class_names: list[str]
    ignore_label: int | None = None


def labelled_images(
    file: Path,
    mask: str,
    class_names: list[str],
    ignore_label: int | None = None,
    packed: bool = False,
) -> LabelledImages:
    """Images of a file with flat arrays rgb, shapes, offsets, names and one of labels."""
    found = arrays_of(file, rgb="u2", shapes="iu2", offsets="iu1", names="U1", **{mask: "u1"})
    rgb, shapes, label = found["rgb"], found["shapes"], found[mask]
    require(rgb.dtype == np.uint8 and rgb.shape[1] == 3, file, "rgb must be bytes in 3 columns")
    if packed:
        require(label.dtype == np.uint8, file, f"{mask} must be bytes of eight pixels")
        label = np.unpackbits(label)[: len(rgb)]
    require(len(label) == len(rgb), file, f"{mask} must have a label per pixel ({len(rgb)})")
    require(
        label.max(initial=0) < len(class_names),
        file,
        f"{mask} must be below {len(class_names)}, holds {label.max(initial=0)}",
    )
    n = len(found["names"])
    fits = shapes.shape == (n, 2) and np.array_equal(
        np.prod(shapes.astype(np.int64), axis=1), np.diff(found["offsets"].astype(np.int64))
    )
    require(fits, file, "shapes must be height and width of each image, offsets its pixels")

    def cut(array: Array, name: str, *last: int) -> list[Bytes]:
        parts = items(file, name, array, found["offsets"])
        return [part.reshape(*shape, *last) for part, shape in zip(parts, shapes, strict=True)]

    return LabelledImages(
        cut(rgb, "rgb", 3),
        cut(label.astype(np.uint8), mask),
        [str(name) for name in found["names"]],
        class_names,
        ignore_label,
    )
