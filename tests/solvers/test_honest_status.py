"""CONVERGED means near the minimum, whatever the scale of the features.

Small and large features, data that can be told apart and data that cannot: the objective of each
solver is compared with the lowest one that any of them finds.
"""

import warnings
from functools import cache

import numpy as np
import pytest

from chordal import ChainCRF, UnsupportedError
from chordal._status import Status
from chordal.solvers import SOLVERS
from chordal.solvers._online import MistakeDriven
from chordal.solvers._stopping import Slope, is_minimum
from chordal.solvers.lbfgs import LBFGS

NEAR = 0.01
SCALES = [1e-3, 1e-1, 1.0, 10.0, 1e2, 1e3, 1e4]


def sequences(separable, scale, seed):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(6, 4)) * scale for _ in range(10)]
    if separable:
        weights = rng.normal(size=(4, 3))
        return X, [(x @ weights).argmax(axis=1).tolist() for x in X]
    return X, [rng.integers(3, size=6).tolist() for _ in X]


@cache
def outcomes(separable, scale, seed):
    """By solver: the objective, by the likelihood of the model itself, and the status."""
    X, y = sequences(separable, scale, seed)
    found = {}
    for name in SOLVERS:
        if issubclass(SOLVERS.get(name), MistakeDriven):
            continue
        try:
            crf = ChainCRF("likelihood", name, l2=1.0, random_state=seed).fit(X, y)
        except UnsupportedError:
            continue
        loss = -float(np.sum(crf.log_likelihood(X, y)))
        penalty = 0.5 * float(crf.weights_ @ crf.weights_)
        found[name] = (loss + penalty, crf.fit_report_.status)
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("separable", [True, False], ids=["separable", "noise"])
def test_what_converged_is_near_the_best(separable, scale, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = outcomes(separable, scale, seed)
    assert {"lbfgs", "newton", "adam", "sgd", "minibatch_lbfgs"} <= set(found)
    best = min(value for value, _ in found.values())
    for name, (value, status) in found.items():
        assert status is not Status.CONVERGED or value <= (1 + NEAR) * best, name


def test_features_of_ordinary_size_converge():
    """Honest is not the same as silent."""
    for separable in (True, False):
        found = outcomes(separable, 1.0, 0)
        for name in ("lbfgs", "newton", "newton_cg", "adam", "minibatch_lbfgs", "sgd"):
            assert found[name][1] is Status.CONVERGED, name


def test_a_run_continues_until_its_gradient_shows_the_minimum():
    """At tol the gradient is not small yet: the run reaches what a smaller tol would."""
    rng = np.random.default_rng(1)
    X = [rng.normal(size=(8, 30)) * np.geomspace(1, 100, 30) for _ in range(60)]
    y = [rng.integers(5, size=8).tolist() for _ in X]
    falls = []
    crf = ChainCRF(max_iter=3000).fit(X, y, callback=lambda state: falls.append(state.value))
    assert crf.fit_report_.status is Status.CONVERGED
    short = next(k for k in range(10, len(falls)) if falls[k - 10] - falls[k] < 1e-5 * falls[k])
    assert short < len(falls) - 1
    assert crf.objective_ < ChainCRF(max_iter=short + 1).fit(X, y).objective_


def test_a_large_tol_asks_for_an_early_end():
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(8, 30)) * np.geomspace(1, 30, 30) for _ in range(60)]
    y = [rng.integers(5, size=8).tolist() for _ in X]
    with pytest.warns(UserWarning, match="the objective hardly falls"):
        crf = ChainCRF(solver=LBFGS(tol=1e-4)).fit(X, y)
    falls = crf.fit_report_.history
    assert falls[-11] - falls[-1] < 1e-4 * falls[-1] <= falls[-12] - falls[-2]


def test_adam_warns_where_it_stops_too_early():
    X, y = sequences(True, 1e3, 0)
    with pytest.warns(UserWarning, match="solver 'adam' did not converge"):
        crf = ChainCRF(solver="adam", random_state=0).fit(X, y)
    assert crf.fit_report_.status is not Status.CONVERGED


@pytest.mark.parametrize(
    ("value", "gradient", "length", "expected"),
    [
        (1.0, 1.5, 1.5, False),  # adam on separable features × 1000: the loss is 0, ‖w‖² is not
        (50.0, 0.1, 1.0, True),
        (50.0, 10.0, 1000.0, True),  # small for its value, compared with the start
        (0.01, 0.01, 1.0, False),
        (1e-12, 1e-8, 1.0, True),  # a minimum of 0
        (50.0, float("nan"), 1.0, True),  # not known: nothing speaks against it
    ],
)
def test_what_shows_a_minimum(value, gradient, length, expected):
    assert is_minimum(Slope(value, gradient), Slope(65.0, 1e4), length) is expected


def test_the_penalty_bounds_what_can_be_gained():
    first = Slope(65.0, 10.0)
    assert not is_minimum(Slope(50.0, 0.9), first, 10.0)
    assert is_minimum(Slope(50.0, 0.9), first, 10.0, l2=1.0)  # at most 0.9² / 2
    assert not is_minimum(Slope(50.0, 0.9), first, 10.0, l2=0.1)
