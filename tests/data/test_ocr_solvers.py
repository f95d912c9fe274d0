"""Second-order and mini-batch solvers on Taskar's handwritten words."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from chordal import ChainCRF
from chordal.solvers.adam import Adam
from chordal.solvers.lbfgs import LBFGS
from chordal.solvers.minibatch_lbfgs import MinibatchLBFGS
from chordal.solvers.newton_cg import NewtonCG

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def words(require):
    """Pixels, letters and fold of each word."""
    with np.load(require("ocr/taskar_ocr_letters.npz"), allow_pickle=False) as data:
        pixels = np.unpackbits(data["pixels_packed"], axis=1).astype(np.float64)
        cuts = data["offsets"][1:-1]
        return np.split(pixels, cuts), np.split(data["labels"], cuts), data["fold"]


def model(solver, l2=1.0):
    return ChainCRF(solver=solver, l2=l2, transitions="all", fit_intercept=True, ends=True)


def test_newton_cg_reaches_the_optimum_of_lbfgs(words):
    X, y, _ = words
    X, y = X[:150], y[:150]
    found = model(NewtonCG(tol=1e-11), l2=10.0).fit(X, y)
    other = model(LBFGS(5000, 1e-13, memory=30), l2=10.0).fit(X, y)
    assert_allclose(found.objective_, other.objective_, rtol=1e-10)
    assert_allclose(found.weights_, other.weights_, rtol=0.0, atol=1e-4)
    assert found.fit_report_.n_iter < 0.5 * other.fit_report_.n_iter


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "passes", "share"), [(Adam, 30, 0.005), (MinibatchLBFGS, 40, 0.001)]
)
def test_mini_batches_come_near_the_optimum(words, solver, passes, share):
    X, y, fold = words
    train = np.flatnonzero(fold != 0)
    X, y = [X[i] for i in train], [y[i] for i in train]
    fitted = model(solver(max_iter=passes, random_state=0)).fit(X, y)
    optimum = 15_251.908
    assert optimum < fitted.objective_ < (1.0 + share) * optimum
