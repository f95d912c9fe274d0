"""Distorted copies of images: more data to learn from, without more labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal._optional import needed
from chordal._validate import check_number

Floats = NDArray[np.float64]


def distorted(
    images: ArrayLike,
    random_state: int | np.random.Generator | None = None,
    *,
    shift: float = 1.0,
    rotate: float = 10.0,
    stretch: float = 0.1,
    order: int = 1,
) -> Floats:
    """A shifted, rotated and stretched copy of each image, by random amounts.

    Parameters
    ----------
    images : array [n, height, width]
    random_state : int, Generator or None
        The same seed gives the same copies.
    shift : float
        Maximum shift in pixels, in each direction.
    rotate : float
        Maximum rotation about the centre in degrees, in both directions.
    stretch : float
        Maximum relative change of height and of width; 0.1 is a tenth.
    order : int
        Of the spline that pixels are read from: 0 takes the nearest pixel, which keeps black and
        white apart; 1 (the default) mixes the four around.

    Returns
    -------
    array [n, height, width]
        Pixels from outside the image are 0.

    Examples
    --------
    >>> image = np.zeros((1, 5, 5))
    >>> image[0, 2, 2] = 1.0
    >>> moved = distorted(image, 3, shift=1.0, rotate=0.0, stretch=0.0, order=0)
    >>> np.argwhere(moved[0] == 1.0)
    array([[2, 1]])
    """
    with needed("scipy", "distorted"):
        from scipy.ndimage import affine_transform

    array = np.asarray(images, dtype=np.float64)
    if array.ndim != 3:
        raise ValueError(
            f"images must be an array [n, height, width], got {array.ndim} dimensions; "
            "reshape rows of pixels"
        )
    if not np.isfinite(array).all():
        raise ValueError("images hold NaN or infinity; clean them")
    for name, value in (("shift", shift), ("rotate", rotate), ("stretch", stretch)):
        check_number(name, value)
    if stretch >= 1.0:
        raise ValueError(f"stretch must be below 1, got {stretch}")
    check_number("order", order, integer=True)
    if order > 5:
        raise ValueError(f"order must be at most 5, got {order}")
    rng = np.random.default_rng(random_state)
    n = len(array)
    angles = np.deg2rad(rng.uniform(-rotate, rotate, n))
    scales = 1.0 + rng.uniform(-stretch, stretch, (n, 2))
    shifts = rng.uniform(-shift, shift, (n, 2))
    centre = (np.array(array.shape[1:]) - 1.0) / 2.0
    out = np.empty_like(array)
    for k in range(n):
        # Where each pixel of the copy comes from: back from the shift, the rotation, the stretch.
        cos, sin = np.cos(angles[k]), np.sin(angles[k])
        back = np.array([[cos, sin], [-sin, cos]]) / scales[k][:, None]
        offset = centre - back @ (centre + shifts[k])
        affine_transform(array[k], back, offset, output=out[k], order=order)
    return out
