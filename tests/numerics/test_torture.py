"""Scores from 1e-320 to 1e300, −inf and sums that overflow, against 400 digits of mpmath."""

import functools
import itertools
import warnings

import mpmath
import numpy as np
import pytest

from chordal import ChainCRF
from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import Chain

INF = float("inf")
SIZES = [1e-320, 1e-300, 1e-150, 1e-16, 1e-3, 1.0, 30.0, 700.0, 745.5, 1e4, 1e8, 1e16, 1e100, 1e300]
METHODS = ["chain", "tree", "junction_tree", "exhaustive"]


@functools.cache
def exponential(difference):
    return mpmath.exp(difference) if difference > -2000 else mpmath.mpf(0)


def truth(p):
    """log Z and the marginals of variables, by a list of all labellings with 400 digits."""
    n, labels = p.structure.n_variables, int(p.structure.label_counts[0])
    with mpmath.workdps(400):
        unary = [mpmath.mpf(float(v)) for v in p.unary]
        tables = [mpmath.mpf(float(v)) for v in p.untied().tables]
        scores = {
            y: sum(unary[t * labels + k] for t, k in enumerate(y))
            + sum(
                tables[t * labels**2 + a * labels + b]
                for t, (a, b) in enumerate(itertools.pairwise(y))
            )
            for y in itertools.product(range(labels), repeat=n)
        }
        best = max(scores.values())
        shares = {y: exponential(s - best) for y, s in scores.items()}
        total = mpmath.fsum(shares.values())
        marginals = np.zeros((n, labels))
        for y, share in shares.items():
            for t, k in enumerate(y):
                marginals[t, k] += float(share / total)
        return float(best + mpmath.log(total)), marginals.reshape(-1), float(best)


def model(size, seed, tied=True, forbidden=0.0):
    rng = np.random.default_rng(seed)
    chain = Chain([4], 3)
    unary = size * rng.choice([-1.0, -0.5, 0.0, 0.25, 1.0], size=12)
    tables = size * rng.normal(size=9 if tied else 27).clip(-1, 1)
    tables[rng.random(len(tables)) < forbidden] = -INF
    return Potentials(chain, unary, tables, np.zeros(3, dtype=np.int32) if tied else None)


def check(p, method):
    log_z, marginals, best = truth(p)
    found = INFERENCE.resolve(method).marginals(p)
    # A score of size s is known to s · 2^-53, and a probability to e^that.
    finite = np.concatenate([p.unary, p.tables])
    size = np.abs(finite[np.isfinite(finite)]).max()
    np.testing.assert_allclose(
        found.log_partition[0], log_z, rtol=1e-14, atol=1e-300 + 1e-14 * size
    )
    np.testing.assert_allclose(found.parts.unary.reshape(4, 3).sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert ((found.parts.unary >= 0) & (found.parts.unary <= 1 + 1e-12)).all()
    if size < 1e8:
        np.testing.assert_allclose(found.parts.unary, marginals, rtol=0, atol=1e-13 + 1e-14 * size)
    decoded = INFERENCE.resolve(method).map(p)
    np.testing.assert_allclose(decoded.score[0], best, rtol=1e-14, atol=1e-14 * size)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", SIZES)
def test_scores_of_every_size(size, method):
    for seed in range(2 if size > 1e16 else 4):  # exponentials of 400 digits take long
        check(model(size, seed, tied=seed % 2 == 0), method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1e-300, 1.0, 700.0, 1e8])
def test_forbidden_transitions(size, method):
    checked = 0
    for seed in range(8):
        p = model(size, seed, forbidden=0.4)
        if truth(p)[2] > -INF:
            check(p, method)
            checked += 1
    assert checked > 2


@pytest.mark.parametrize("method", METHODS)
def test_sizes_far_apart(method):
    """One variable decides everything, another one nothing."""
    rng = np.random.default_rng(0)
    for seed in range(6):
        p = model(1.0, seed)
        scale = 10.0 ** rng.integers(-300, 7, size=12)
        check(p.like(p.unary * scale, p.tables), method)


@pytest.mark.parametrize("method", METHODS)
def test_sums_that_would_overflow_are_refused(method):
    with pytest.raises(ValueError, match="sums could overflow"):
        INFERENCE.resolve(method).marginals(
            Potentials(Chain([4], 2), np.full(8, 1e308), np.zeros(12))
        )


@pytest.mark.parametrize("value", [0.0, -700.0, 1e5, -1e300])
def test_equal_scores_are_uniform(value):
    p = Potentials(Chain([50], 7), np.full(350, value), np.zeros(49), np.zeros(49, dtype=np.int32))
    for method in ("chain", "tree", "junction_tree"):
        found = INFERENCE.resolve(method).marginals(p)
        np.testing.assert_allclose(found.parts.unary, 1 / 7, rtol=1e-12)
        expected = 50 * value + 50 * np.log(7)
        np.testing.assert_allclose(found.log_partition, expected, rtol=1e-14)


@pytest.mark.parametrize("method", ["chain", "tree"])
def test_one_hot_transitions(method):
    """Each label has one successor: as many labellings as labels."""
    n, length = 5, 200
    table = np.full((n, n), -INF)
    table[np.arange(n), (np.arange(n) + 1) % n] = 0.0
    unary = np.random.default_rng(0).normal(size=(length, n))
    p = Potentials(
        Chain([length], n), unary.ravel(), table.ravel(), np.zeros(length - 1, dtype=np.int32)
    )
    scores = np.array([sum(unary[t, (k + t) % n] for t in range(length)) for k in range(n)])
    expected = np.exp(scores - scores.max())
    found = INFERENCE.resolve(method).marginals(p)
    log_z = scores.max() + np.log(expected.sum())
    np.testing.assert_allclose(found.log_partition[0], log_z, rtol=1e-12)
    first = found.parts.unary.reshape(length, n)[0]
    np.testing.assert_allclose(first, expected / expected.sum(), rtol=1e-9)


def test_a_million_positions():
    """Without coupling, log Z is a sum that is known."""
    length, n = 1_000_000, 3
    unary = np.random.default_rng(0).normal(size=(length, n)) * 5
    p = Potentials(Chain([length], n), unary.ravel(), np.zeros(9), np.zeros(length - 1, np.int32))
    found = INFERENCE.resolve("chain").marginals(p)
    top = unary.max(axis=1, keepdims=True)
    shares = np.exp(unary - top)
    total = shares.sum(axis=1, keepdims=True)
    expected = np.sum(top + np.log(total))
    np.testing.assert_allclose(found.log_partition[0], expected, rtol=1e-12)
    marginals = found.parts.unary.reshape(length, n)
    np.testing.assert_allclose(marginals, shares / total, rtol=1e-9, atol=1e-15)


def test_five_thousand_labels():
    n = 5000
    rng = np.random.default_rng(0)
    unary, left, right = rng.normal(size=(2, n)), rng.normal(size=n), rng.normal(size=n)
    p = Potentials(Chain([2], n), unary.ravel(), np.add.outer(left, right).ravel())
    expected = sum(np.logaddexp.reduce(unary[t] + side) for t, side in enumerate((left, right)))
    found = INFERENCE.resolve("chain").log_partition(p)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


@pytest.mark.parametrize("factor", [1e-10, 1e-5, 1e5, 1e10])
@pytest.mark.parametrize("solver", ["lbfgs", "newton", "sgd", "adam", "averaged_perceptron"])
def test_features_of_every_scale_train_or_are_refused(solver, factor):
    """A fit that says CONVERGED is at the minimum, up to a share of the objective of zero weights.

    The share is 1e-4; of `adam`, which watches its gradient beside the first one, 2e-2.
    """
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 4)) * factor for _ in range(10)]
    y = [(x[:, 0] > 0).astype(int) for x in X]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        crf = ChainCRF(solver=solver, random_state=0).fit(X, y)
        best = ChainCRF(solver="lbfgs", tol=1e-10, max_iter=10_000).fit(X, y).objective_
    assert np.isfinite(crf.weights_).all()
    if crf.fit_report_.status.name == "CONVERGED" and solver != "averaged_perceptron":
        start = 60 * np.log(2.0)
        assert crf.objective_ - best <= (2e-2 if solver == "adam" else 1e-4) * start
    for own in crf.predict_marginals(X):
        np.testing.assert_allclose(own.sum(axis=1), 1.0, rtol=0, atol=1e-9)


def test_rows_in_float32_are_those_numbers():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 4)).astype(np.float32) for _ in range(5)]
    y = [(x[:, 0] > 0).astype(int) for x in X]
    one, other = ChainCRF().fit(X, y), ChainCRF().fit([x.astype(float) for x in X], y)
    assert one.weights_.tobytes() == other.weights_.tobytes()
    small = one.compact(dtype="float32")
    for a, b in zip(small.predict_marginals(X), one.predict_marginals(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)
