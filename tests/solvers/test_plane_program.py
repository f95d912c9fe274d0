"""The program of cutting planes reaches the gap it is asked for."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from chordal.oracle.plane_program import PlaneProgram

N_EXAMPLES, N_PLANES, N_WEIGHTS = 5, 10, 24


@pytest.mark.parametrize("l2", [0.01, 0.5, 20.0])
def test_masses_that_nearly_sum_to_one_do_not_stop_the_ascent(l2):
    rng = np.random.default_rng(0)
    slopes = csr_array(rng.normal(size=(N_EXAMPLES * N_PLANES, N_WEIGHTS)))
    owner = np.repeat(np.arange(N_EXAMPLES), N_PLANES)
    offsets = 5.0 + rng.random(len(owner))  # no loss is 0 at the minimum
    alpha = np.full(len(owner), 0.1)
    assert 0.0 < 1.0 - sum(alpha[:N_PLANES]) < 1e-15  # what is left is rounding
    program = PlaneProgram(l2, slopes, offsets, owner)
    v, lower, alpha = program.solve(alpha, np.zeros(N_WEIGHTS), 1e-9, rng)
    heights = (offsets + slopes @ v).reshape(N_EXAMPLES, N_PLANES)
    upper = np.maximum(heights.max(axis=1), 0.0).sum() + 0.5 * l2 * v @ v
    assert 0.0 <= upper - lower <= 2e-9
    assert alpha.min() >= 0.0
    assert (alpha.reshape(N_EXAMPLES, N_PLANES).sum(axis=1) <= 1.0 + 1e-12).all()
