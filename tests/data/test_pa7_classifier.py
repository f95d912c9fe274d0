"""Coursera's Probabilistic Graphical Models, assignment 7, part 1: letters p and q, by SGD.

5,000 steps of 0.1 / (1 + √k), one example each and in their order, starting with the second; the
penalty λ/2 ‖θ‖² of every step leaves the bias (the first column, all ones) alone.
"""

import numpy as np
import pytest

from chordal import CRFClassifier
from chordal.solvers.sgd import SGD

pytestmark = pytest.mark.data

N_STEPS = 5000


@pytest.fixture(scope="module")
def pa7(require):
    with np.load(require("pa7/coursera_pgm_pa7.npz"), allow_pickle=False) as arrays:
        return {name: array.astype(np.float64) for name, array in arrays.items() if "1" in name} | {
            name: arrays[name] for name in ("Part1Lambdas", "ValidationAccuracy")
        }


def assignment(X, y, lam):
    """θ of the assignment's LRTrainSGD."""
    theta = np.zeros(X.shape[1])
    for k in range(1, N_STEPS + 1):
        x, label = X[k % len(X)], y[k % len(X)]
        penalty = np.append(0.0, lam * theta[1:])
        theta -= (
            0.1 / (1.0 + np.sqrt(k)) * ((1.0 / (1.0 + np.exp(-x @ theta)) - label) * x + penalty)
        )
    return theta


def classifier(pa7, lam):
    X, y = (np.roll(pa7[name], -1, axis=0) for name in ("Train1X", "Train1Y"))
    passes = N_STEPS // len(y)
    solver = SGD(
        max_iter=passes, period=passes, schedule="inverse_sqrt", shuffle=False, keep_best=False
    )
    return CRFClassifier(solver=solver, l2=lam * len(y)).fit(X[:, 1:], y)


@pytest.mark.parametrize("lam", [0.0, 0.1, 8.0])
def test_weights_are_the_assignments(pa7, lam):
    theta = assignment(pa7["Train1X"], pa7["Train1Y"], lam)
    found = classifier(pa7, lam)
    np.testing.assert_allclose(found.coef_[0], theta[1:], rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.intercept_, theta[:1], rtol=0, atol=1e-12)


def test_training_accuracy(pa7):
    assert classifier(pa7, 0.0).score(pa7["Train1X"][:, 1:], pa7["Train1Y"]) == 0.96


def test_validation_accuracy(pa7):
    """The vector that the assignment gives, at every λ."""
    X, y = pa7["Validation1X"][:, 1:], pa7["Validation1Y"]
    found = [classifier(pa7, lam).score(X, y) for lam in pa7["Part1Lambdas"]]
    assert len(found) == 11
    np.testing.assert_allclose(found, pa7["ValidationAccuracy"], rtol=0, atol=1e-12)


def test_a_little_regularisation_helps_on_test_data(pa7):
    X, y = pa7["Test1X"][:, 1:], pa7["Test1Y"]
    scores = {lam: classifier(pa7, lam).score(X, y) for lam in (0.0, 0.1)}
    assert scores[0.1] >= scores[0.0]
    assert scores[0.0] < 0.96
