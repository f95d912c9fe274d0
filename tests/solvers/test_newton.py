"""Newton and Newton–CG: quadratic convergence, the same optimum as L-BFGS, clear refusals."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from chordal import ChainCRF
from chordal._errors import UnsupportedError
from chordal.objectives.likelihood import Likelihood
from chordal.oracle import Problem
from chordal.solvers.lbfgs import LBFGS
from chordal.solvers.newton import Newton
from chordal.solvers.newton_cg import NewtonCG

SETS = ["iris", "wine", "breast_cancer"]


def table(name):
    """Rows as sequences of one position: a chain without transitions is logistic regression."""
    data = getattr(datasets, f"load_{name}")()
    X = StandardScaler().fit_transform(data.data)
    return [row[None] for row in X], [[label] for label in data.target], (X, data.target)


def logistic(solver, l2=1.0):
    return ChainCRF(solver=solver, l2=l2, fit_intercept=True)


def chains(n=40, n_labels=4, n_columns=6, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n_columns, n_labels))
    X = [rng.normal(size=(length, n_columns)) for length in rng.integers(1, 9, n)]
    y = [np.argmax(x @ truth + rng.gumbel(size=(len(x), n_labels)), axis=1) for x in X]
    return X, y


@pytest.mark.parametrize("name", SETS)
def test_newton_converges_quadratically_on_logistic_regression(name):
    X, y, _ = table(name)
    crf = logistic(Newton(tol=0.0)).fit(X, y)
    report = crf.fit_report_
    assert report.status.succeeded
    assert report.n_iter == len(report.details["decrement"]) <= 12
    decrement = np.array(report.details["decrement"])
    digits = -np.log10(decrement)
    assert decrement[-1] < 1e-5  # far into the quadratic phase
    quadratic = digits[1:][digits[:-1] > 1.0] / digits[:-1][digits[:-1] > 1.0]
    assert len(quadratic) >= 2
    assert (quadratic[-2:] > 1.8).all()  # each step about doubles the digits, or more


@pytest.mark.parametrize("solver", [Newton(tol=0.0), NewtonCG(tol=0.0)], ids=lambda s: s.name)
@pytest.mark.parametrize("name", SETS)
def test_the_same_optimum_as_lbfgs(name, solver):
    X, y, _ = table(name)
    crf = logistic(solver).fit(X, y)
    other = logistic(LBFGS(max_iter=5000, tol=1e-13, memory=30)).fit(X, y)
    assert_allclose(crf.objective_, other.objective_, rtol=1e-10)
    assert_allclose(crf.weights_, other.weights_, rtol=0.0, atol=2e-6)  # L-BFGS is the coarser


@pytest.mark.parametrize("name", SETS[:2])
def test_the_optimum_of_scikit_learn(name):
    # Without a bias both minimise the same function; of two classes, sklearn scores only one.
    X, y, (rows, target) = table(name)
    crf = ChainCRF(solver=Newton(tol=0.0), l2=2.0).fit(X, y)
    peer = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-12, max_iter=10_000)
    peer.fit(rows, target)
    assert_allclose(crf.coef_, peer.coef_, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("objective", ["likelihood", "softmax_margin"])
@pytest.mark.parametrize("solver", [Newton(tol=0.0), NewtonCG(tol=0.0)], ids=lambda s: s.name)
def test_chains_reach_the_same_optimum(solver, objective):
    X, y = chains()
    options = {"objective": objective, "l2": 0.3, "fit_intercept": True, "ends": True}
    crf = ChainCRF(solver=solver, **options).fit(X, y)
    other = ChainCRF(solver=LBFGS(5000, 1e-14, memory=30), **options).fit(X, y)
    assert_allclose(crf.objective_, other.objective_, rtol=1e-11)
    assert_allclose(crf.weights_, other.weights_, rtol=0.0, atol=1e-5)
    assert crf.fit_report_.gradient_norm < 1e-7
    if solver.name == "newton_cg":
        assert crf.fit_report_.n_products > crf.fit_report_.n_iter
    else:
        assert crf.fit_report_.details["decrement"][-1] < 1e-5


def test_no_penalty_leaves_a_singular_hessian_and_newton_copes():
    X, y, _ = table("iris")  # labels overlap: the optimum is finite, but not unique
    crf = logistic(Newton(tol=0.0), l2=0.0).fit(X, y)
    best = logistic(LBFGS(20_000, 1e-14, memory=50), l2=0.0).fit(X, y)
    assert_allclose(crf.objective_, best.objective_, rtol=1e-6)
    assert crf.fit_report_.status.succeeded


@pytest.mark.parametrize("n_jobs", [2, 3])
@pytest.mark.parametrize("solver", ["newton", "newton_cg"])
def test_the_same_bits_for_any_number_of_threads(solver, n_jobs):
    X, y = chains()
    one = ChainCRF(solver=solver).fit(X, y)
    more = ChainCRF(solver=solver, n_jobs=n_jobs).fit(X, y)
    assert np.array_equal(one.weights_, more.weights_)


def test_too_many_weights_are_refused_before_any_work():
    X, y = chains(n_columns=60)
    with pytest.raises(UnsupportedError, match=r"at most 100 weights, but there are 2\d\d, whose"):
        ChainCRF(solver=Newton(max_weights=100)).fit(X, y)
    with pytest.raises(UnsupportedError, match=r"1000000, whose Hessian would take 8 TB; .*_cg"):
        Newton().check(Problem(Likelihood(), n_weights=1_000_000))
    with pytest.raises(ValueError, match="max_weights"):
        Newton(max_weights=0)


@pytest.mark.parametrize("solver", ["newton", "newton_cg", "stochastic_meta_descent"])
@pytest.mark.parametrize("objective", ["hinge", "perceptron"])
def test_objectives_without_second_derivatives_are_refused(solver, objective):
    X, y = chains()
    with pytest.raises(UnsupportedError, match=f"'{solver}' needs.*'{objective}' does not have"):
        ChainCRF(solver=solver, objective=objective).fit(X, y)


@pytest.mark.parametrize("solver", ["newton", "newton_cg"])
def test_l1_is_refused(solver):
    with pytest.raises(ValueError, match=f"'{solver}' does not support l1"):
        ChainCRF(solver=solver, l1=1.0).fit(*chains())


def test_features_of_transitions_and_attributes():
    rng = np.random.default_rng(0)
    X = [[[f"a{k}" for k in rng.integers(0, 9, 3)] for _ in range(n)] for n in (5, 1, 7, 3)]
    y = [rng.integers(0, 3, len(x)).tolist() for x in X]

    def observed(x):
        return np.array([[1.0, len(set(a) & set(b))] for a, b in pairwise(x)])

    options = {"l2": 0.5, "transition_features": observed, "ends": True}
    crf = ChainCRF(solver=Newton(tol=0.0), **options).fit(X, y)
    other = ChainCRF(solver=LBFGS(5000, 1e-14), **options).fit(X, y)
    assert_allclose(crf.objective_, other.objective_, rtol=1e-11)
    assert_allclose(crf.weights_, other.weights_, rtol=0.0, atol=1e-5)
