"""Newton's method on logistic regression: quadratic convergence, and the optimum of others."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale

from chordal.estimators.crf_classifier import CRFClassifier


@pytest.fixture(params=["two classes", "three classes"])
def problem(request):
    load = load_breast_cancer if request.param == "two classes" else load_iris
    X, y = load(return_X_y=True)
    return scale(X), y


def test_the_decrement_falls_quadratically(problem):
    """Near the optimum, each decrement is about 0.19 times the square of the one before."""
    model = CRFClassifier(solver="newton", tol=0.0).fit(*problem)
    decrements = np.array(model.fit_report_.details["decrement"])
    assert len(decrements) <= 10
    near = decrements[decrements < 1.0]
    assert len(near) >= 3
    assert near[-1] < 1e-3
    assert (near[1:] < 0.5 * near[:-1] ** 2).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_optimum_is_that_of_others(problem, fit_intercept):
    """The objective to 1e-10, and so the weights to about its root."""
    X, y = problem
    newton = CRFClassifier(solver="newton", tol=0.0, fit_intercept=fit_intercept).fit(X, y)
    lbfgs = CRFClassifier(tol=1e-14, max_iter=10_000, fit_intercept=fit_intercept).fit(X, y)
    theirs = LogisticRegression(
        solver="newton-cholesky", tol=1e-12, max_iter=1000, fit_intercept=fit_intercept
    ).fit(X, y)

    def objective(model):
        log_p = model.predict_log_proba(X)[np.arange(len(y)), y]
        return 0.5 * (model.coef_**2).sum() - log_p.sum()

    assert newton.objective_ == pytest.approx(objective(newton), rel=1e-12)
    for other in (lbfgs, theirs):
        assert objective(newton) == pytest.approx(objective(other), rel=1e-10)
        np.testing.assert_allclose(newton.coef_, other.coef_, rtol=0, atol=1e-5)


def test_the_hessian(problem):
    """XᵀWX + 2λI, by the step from zero: H⁻¹ g there is the first Newton step."""
    X, y = problem
    if y.max() > 1:
        pytest.skip("the formula of two classes")
    lam = 40.0  # so strong that the whole step is taken
    first = CRFClassifier(solver="newton", l2=2.0 * lam, fit_intercept=False, max_iter=1).fit(X, y)
    hessian = 0.25 * X.T @ X + 2.0 * lam * np.eye(X.shape[1])
    step = -np.linalg.solve(hessian, X.T @ (0.5 - y))
    np.testing.assert_allclose(first.coef_[0], step, rtol=1e-9)
