"""Planes under a loss: the point of the next plane."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal.oracle.plane_model import PlaneModel, best_mixture


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("l2", [0.01, 1.0])
def test_the_next_point_is_as_high_as_asked(seed, l2):
    """Between 0.1 and 0.5 of the gap above the minimum, and nearer than that to the best."""
    rng = np.random.default_rng(seed)
    model = PlaneModel(l2, 4)
    planes = [(float(rng.normal()), rng.normal(size=4)) for _ in range(12)]
    for offset, slope in planes:
        model.add(offset, slope)
    lowest = model.take(best_mixture(model.gram / l2, model.offsets, model.alpha), 20)

    def height(v):
        return max(0.0, max(b + a @ v for b, a in planes)) + 0.5 * l2 * v @ v

    assert_allclose(height(model.v), lowest, rtol=1e-6, atol=1e-9)
    at = model.v + rng.normal(size=4)
    gap = height(at) - lowest
    found = model.near(at, gap)
    assert 0.1 * gap - 1e-9 <= height(found) - lowest <= 0.5 * gap + 1e-9
    assert np.linalg.norm(found - at) < np.linalg.norm(model.v - at)
    # No other point as near to `at` is lower.
    radius = np.linalg.norm(found - at)
    for _ in range(200):
        step = rng.normal(size=4)
        other = at + radius * step / np.linalg.norm(step)
        assert height(other) >= height(found) - 1e-7
