"""Synthetic stereo pairs: two views of a scene, and its disparities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chordal._optional import needed
from chordal._validate import check_number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class StereoScene:
    """Two views of a scene.

    Attributes
    ----------
    left, right : float arrays [height, width], grey values
    disparity : int array [height, width]
        By how many pixels each pixel of the left view is further left in the right view. Near
        objects have large values.
    """

    left: Floats
    right: Floats
    disparity: Ints


def make_stereo_scene(
    height: int = 60,
    width: int = 80,
    n_disparities: int = 8,
    n_things: int = 6,
    noise: float = 0.08,
    random_state: int = 0,
) -> StereoScene:
    """Textured objects at different distances in front of a wall, with noise.

    Regions visible in one view only get other texture, so they have no match.

    Examples
    --------
    >>> scene = make_stereo_scene()
    >>> scene.left.shape, int(scene.disparity.max()) < 8
    ((60, 80), True)
    """
    with needed("scipy", "make_stereo_scene"):
        from scipy.ndimage import gaussian_filter

    for name, value in (("height", height), ("width", width), ("n_things", n_things)):
        check_number(name, value, minimum=1, integer=True)
    check_number("n_disparities", n_disparities, minimum=2, integer=True)
    check_number("noise", noise)
    rng = np.random.default_rng(random_state)
    disparity = np.zeros((height, width), dtype=np.int64)
    rows, columns = np.mgrid[:height, :width]
    for d in np.sort(rng.integers(1, n_disparities, n_things)):  # near things last, in front
        y, x = rng.uniform(0, height), rng.uniform(0, width)
        high, wide = rng.uniform(0.12, 0.3, size=2) * (height, width)
        if rng.random() < 0.5:
            inside = ((rows - y) / high) ** 2 + ((columns - x) / wide) ** 2 < 1.0
        else:
            inside = (np.abs(rows - y) < high) & (np.abs(columns - x) < wide)
        disparity[inside] = d
    texture = rng.random((height, width + n_disparities))
    texture = 0.5 * texture + 0.5 * gaussian_filter(texture, 1.5) * 2.0
    left = texture[:, n_disparities:].copy()
    right = rng.random((height, width))
    for d in range(n_disparities):  # far first, near ones cover them
        at = (disparity == d) & (columns >= d)
        right[rows[at], columns[at] - d] = left[at]
    left += noise * rng.normal(size=left.shape)
    right += noise * rng.normal(size=right.shape)
    return StereoScene(left, right, disparity)
