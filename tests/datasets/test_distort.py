"""Distorted images: moved, turned and stretched as said, and by a seed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal.datasets import distorted

STILL = {"shift": 0.0, "rotate": 0.0, "stretch": 0.0}


@pytest.fixture
def blobs():
    """Smooth blobs away from the borders, at different places."""
    rng = np.random.default_rng(0)
    i, j = np.mgrid[:31, :25]
    centres = np.array([15.0, 12.0]) + rng.uniform(-4, 4, (200, 2))
    square = (i - centres[:, 0, None, None]) ** 2 + (j - centres[:, 1, None, None]) ** 2
    return np.exp(-square / 8.0), centres


def centroids(images):
    """Where the ink is, on average, and how it spreads along both axes."""
    i, j = np.mgrid[: images.shape[1], : images.shape[2]]
    mass = images.sum(axis=(1, 2))
    at = np.stack([(images * i).sum(axis=(1, 2)), (images * j).sum(axis=(1, 2))], 1) / mass[:, None]
    spread = np.stack([
        (images * (axis - at[:, k, None, None]) ** 2).sum(axis=(1, 2)) / mass
        for k, axis in enumerate((i, j))
    ], axis=1)  # fmt: skip
    return at, spread


def test_nothing_to_do_changes_nothing(blobs):
    for order in (0, 1, 3):
        copy = distorted(blobs[0], 0, **STILL, order=order)
        assert_allclose(copy, blobs[0], atol=1e-12)


def test_the_same_seed_gives_the_same_copies(blobs):
    images, _ = blobs
    before = images.copy()
    assert_array_equal(distorted(images, 1), distorted(images, 1))
    assert (distorted(images, 1) != distorted(images, 2)).any()
    assert_array_equal(images, before)


def test_shifts_are_up_to_the_amount_in_all_directions(blobs):
    moved, _ = centroids(distorted(blobs[0], 0, **{**STILL, "shift": 2.0}))
    step = moved - blobs[1]
    assert np.abs(step).max() < 2.01
    assert (step.max(axis=0) > 1.8).all()
    assert (step.min(axis=0) < -1.8).all()


def test_rotations_are_about_the_centre(blobs):
    images, centres = blobs
    moved, _ = centroids(distorted(images, 0, **{**STILL, "rotate": 30.0}))
    a, b = centres - [15.0, 12.0], moved - [15.0, 12.0]
    assert_allclose(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1), atol=0.05)
    far = np.linalg.norm(a, axis=1) > 2.0
    angle = np.rad2deg(np.arctan2(b[:, 1], b[:, 0]) - np.arctan2(a[:, 1], a[:, 0]))[far]
    angle = (angle + 180.0) % 360.0 - 180.0
    assert 25.0 < np.abs(angle).max() < 31.0
    assert angle.min() < -20.0
    assert angle.max() > 20.0


def test_height_and_width_stretch_by_themselves(blobs):
    _, before = centroids(blobs[0])
    _, after = centroids(distorted(blobs[0], 0, **{**STILL, "stretch": 0.3}))
    ratio = np.sqrt(after / before)
    assert 0.66 < ratio.min() < 0.78
    assert 1.22 < ratio.max() < 1.36
    assert abs(np.corrcoef(ratio.T)[0, 1]) < 0.3


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        (np.zeros((3, 16)), {}, r"images must be an array \[n, height, width\], got 2 dim"),
        (np.full((1, 2, 2), np.nan), {}, "images hold NaN"),
        (np.zeros((1, 2, 2)), {"shift": -1}, "shift must be a number of at least 0"),
        (np.zeros((1, 2, 2)), {"rotate": "a"}, "rotate must be a number"),
        (np.zeros((1, 2, 2)), {"stretch": 1.0}, "stretch must be below 1"),
        (np.zeros((1, 2, 2)), {"order": 6}, "order must be at most 5"),
    ],
)
def test_bad_input_is_refused(images, options, message):
    with pytest.raises(ValueError, match=message):
        distorted(images, 0, **options)
