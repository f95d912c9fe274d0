"""CRFClassifier: scikit-learn's contract, and its equals among scikit-learn's models."""

import copy
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import approx_fprime
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, scale
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from chordal import CRFClassifier, UnsupportedError
from chordal.datasets import make_curved_classes, make_masked_classes
from chordal.execution.serial import Serial
from chordal.inference.chain import ChainInference
from chordal.objectives.likelihood import Likelihood
from chordal.oracle import SummedOracle
from chordal.solvers.sgd import SGD

EXACT = {"tol": 1e-13, "max_iter": 5000}


with warnings.catch_warnings():  # it need not derive from BaseEstimator
    warnings.simplefilter("ignore", UserWarning)
    every_check = parametrize_with_checks([CRFClassifier(), CRFClassifier(l1=0.1, l2=0.0)])


@every_check
def test_scikit_learns_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module", params=["two classes", "three classes"])
def problem(request):
    load = load_breast_cancer if request.param == "two classes" else load_iris
    X, y = load(return_X_y=True)
    return scale(X), y


def compare(ours, theirs, X, atol=1e-6):
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.intercept_.shape == theirs.intercept_.shape
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=0, atol=20 * atol)
    found, expected = ours.intercept_, theirs.intercept_
    if len(found) > 1:  # a number added to all classes changes nothing
        found, expected = found - found.mean(), expected - expected.mean()
    np.testing.assert_allclose(found, expected, rtol=0, atol=20 * atol)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=atol)
    assert (ours.predict(X) == theirs.predict(X)).all()


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic_regression(problem, C, fit_intercept):
    X, y = problem
    theirs = LogisticRegression(C=C, fit_intercept=fit_intercept, tol=1e-9, max_iter=20_000)
    ours = CRFClassifier(l2=1.0 / C, fit_intercept=fit_intercept, **EXACT)
    compare(ours.fit(X, y), theirs.fit(X, y), X)


@pytest.mark.parametrize("class_weight", ["balanced", "by hand"])
def test_weights_of_classes_and_samples(problem, class_weight):
    X, y = problem
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    if class_weight == "by hand":
        class_weight = {0: 3.0, 1: 0.5}  # a class that is not named has 1
    theirs = LogisticRegression(class_weight=class_weight, tol=1e-9, max_iter=20_000)
    ours = CRFClassifier(class_weight=class_weight, **EXACT)
    compare(ours.fit(X, y, weight), theirs.fit(X, y, weight), X)


def test_l1_leaves_the_intercept_alone(problem):
    X, y = problem
    theirs = LogisticRegression(
        C=0.2, l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=100_000, random_state=0
    )
    ours = CRFClassifier(l1=5.0, l2=0.0, **EXACT).fit(X, y)
    compare(ours, theirs.fit(X, y), X, atol=1e-5)
    assert (ours.coef_ == 0.0).any()
    assert ours.fit_report_.solver == "owlqn"


def test_a_large_l1_leaves_the_shares_of_the_classes(problem):
    X, y = problem
    ours = CRFClassifier(l1=1e4, l2=0.0, **EXACT).fit(X, y)
    assert not ours.coef_.any()
    shares = np.bincount(y) / len(y)
    np.testing.assert_allclose(ours.predict_proba(X[:1])[0], shares, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.coo_array])
def test_sparse_is_dense(problem, kind):
    X, y = problem
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    dense, sparse = CRFClassifier(**EXACT).fit(X, y), CRFClassifier(**EXACT).fit(kind(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=0, atol=1e-5)
    np.testing.assert_allclose(
        sparse.predict_proba(kind(X)), dense.predict_proba(X), rtol=0, atol=1e-6
    )


def test_float32_rows_stay_so():
    X, y = make_curved_classes(50)
    narrow = CRFClassifier().fit(X.astype(np.float32), y)
    batch = narrow.reader_.read(X.astype(np.float32), grow=False)
    assert batch.cliques[0].rows.data.dtype == np.float32
    np.testing.assert_allclose(narrow.coef_, CRFClassifier().fit(X, y).coef_, rtol=1e-4)


def test_hinge_of_two_classes_is_a_linear_svm():
    X, y = make_curved_classes(80)
    solver = SGD(max_iter=3000, period=3000, schedule="pegasos", average_after=500, random_state=0)
    ours = CRFClassifier("hinge", solver, l2=1.0, fit_intercept=False)
    theirs = LinearSVC(loss="hinge", fit_intercept=False, tol=1e-9, max_iter=10**6).fit(X, y)

    def objective(w):
        return 0.5 * w @ w + np.maximum(0.0, 1.0 - (2 * y - 1) * (X @ w)).sum()

    least = objective(theirs.coef_[0])
    assert least <= objective(ours.fit(X, y).coef_[0]) < least * 1.0005


@pytest.mark.parametrize("make", [make_curved_classes, make_masked_classes])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_squared_error_is_ridge_regression_of_indicators(make, fit_intercept):
    """Also of two classes, which then have a function each."""
    X, y = make(90)
    ours = CRFClassifier("squared_error", l2=3.0, fit_intercept=fit_intercept, **EXACT).fit(X, y)
    theirs = Ridge(alpha=3.0, fit_intercept=fit_intercept).fit(X, np.eye(y.max() + 1)[y])
    expected = theirs.predict(X)
    found = ours.decision_function(X)
    if found.ndim == 1:
        expected = expected[:, 1] - expected[:, 0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("make", [make_curved_classes, make_masked_classes])
def test_crammer_singer_is_the_hinge_of_single_variables(make):
    X, y = make(90)
    a, b = (CRFClassifier(objective, l2=1.0).fit(X, y) for objective in ("crammer_singer", "hinge"))
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-9)
    np.testing.assert_allclose(a.objective_, b.objective_, rtol=1e-9)


def test_one_vs_rest_is_a_support_vector_machine_for_each_class():
    X, y = make_masked_classes(90)
    theirs = LinearSVC(loss="hinge", fit_intercept=False, tol=1e-9, max_iter=10**6).fit(X, y)
    ours = CRFClassifier("one_vs_rest", l2=1.0, fit_intercept=False, **EXACT).fit(X, y)

    def objective(coef):
        short = 1.0 - np.where(np.eye(3)[y] == 1.0, 1.0, -1.0) * (X @ coef.T)
        return 0.5 * (coef**2).sum() + np.maximum(0.0, short).sum()

    least = objective(theirs.coef_)
    assert ours.objective_ == pytest.approx(objective(ours.coef_), rel=1e-9)
    assert least - 1e-6 <= objective(ours.coef_) < 1.0001 * least


# ------------------------------------------------------------- gradients by the formula


def oracle_of(X, y, l2, intercept=False):
    model = CRFClassifier(fit_intercept=intercept).fit(X, y)
    layout, batch = model.layout_, model.reader_.read(X, grow=False)
    shards = [layout.compile(batch, 0, len(y), y.astype(np.int32))]
    penalties = np.full(layout.n_weights, l2)
    penalties[layout.slices["intercept"]] = 0.0
    parts = (layout, shards, Likelihood(), ChainInference(), Serial())
    return SummedOracle(*parts, penalties if intercept else l2)


def test_gradient_of_two_classes():
    """Xᵀ(p − y) + 2λβ."""
    (X, y), lam = make_curved_classes(40), 0.7
    beta = np.array([0.3, -1.1])
    value, gradient = oracle_of(X, y, 2.0 * lam).value_grad(beta)
    p = 1.0 / (1.0 + np.exp(-X @ beta))
    nll = -np.log(np.where(y == 1, p, 1.0 - p)).sum()
    np.testing.assert_allclose(value, nll + lam * beta @ beta, rtol=1e-12)
    np.testing.assert_allclose(gradient, X.T @ (p - y) + 2.0 * lam * beta, rtol=1e-12)


def test_gradient_of_three_classes():
    """Xᵀ(p_c − y_c) + 2λβ_c, class by class."""
    (X, y), lam = make_curved_classes(40, 3), 0.7
    beta = np.random.default_rng(0).normal(size=(3, 2))
    value, gradient = oracle_of(X, y, 2.0 * lam).value_grad(beta.T.ravel())
    p = np.exp(X @ beta.T)
    p /= p.sum(axis=1, keepdims=True)
    nll = -np.log(p[np.arange(len(y)), y]).sum()
    np.testing.assert_allclose(value, nll + lam * (beta**2).sum(), rtol=1e-12)
    expected = (p - np.eye(3)[y]).T @ X + 2.0 * lam * beta
    np.testing.assert_allclose(gradient.reshape(2, 3).T, expected, rtol=1e-12)


def test_the_intercept_has_no_penalty():
    X, y = make_curved_classes(30, 3)
    oracle = oracle_of(X, y, 5.0, intercept=True)
    w = np.random.default_rng(0).normal(size=9)
    gradient = oracle.value_grad(w)[1]
    numeric = approx_fprime(w, lambda v: oracle.value_grad(v)[0], 1e-7)
    np.testing.assert_allclose(gradient, numeric, atol=1e-4)
    free = oracle_of(X, y, 0.0, intercept=True)
    difference = gradient - free.value_grad(w)[1]
    np.testing.assert_allclose(difference, 5.0 * np.where(np.arange(9) < 6, w, 0.0), atol=1e-10)


def test_answers_agree_with_each_other(problem):
    X, y = problem
    model = CRFClassifier().fit(X, y)
    p, scores = model.predict_proba(X), model.decision_function(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.log(p), model.predict_log_proba(X), rtol=1e-9, atol=1e-12)
    if scores.ndim == 1:
        np.testing.assert_allclose(p[:, 1], 1.0 / (1.0 + np.exp(-scores)), rtol=1e-9)
    else:
        ratio = np.log(p[:, 0] / p[:, 1])
        np.testing.assert_allclose(scores[:, 0] - scores[:, 1], ratio, rtol=1e-6, atol=1e-9)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).all()
    own = p[np.arange(len(y)), y]
    np.testing.assert_allclose(model.log_likelihood(X, y), np.log(own), rtol=1e-9, atol=1e-12)
    penalty = 0.5 * (model.coef_**2).sum()
    np.testing.assert_allclose(model.objective_, penalty - np.log(own).sum(), rtol=1e-9)


def test_extreme_scores_have_finite_logarithms():
    model = CRFClassifier(l2=1e-3).fit([[-1.0], [1.0]], ["a", "b"])
    log_p = model.predict_log_proba([[1e6], [-1e6]])
    assert np.isfinite(log_p).all()
    assert model.predict_proba([[1e6]])[0, 1] == 1.0


def test_labels_of_any_kind():
    X, y = make_curved_classes(60, 3)
    numbers = CRFClassifier().fit(X, y)
    for names in (np.array(["x", "a", "m"]), np.array([2.0, -1.0, 7.0])):
        named = CRFClassifier().fit(X, names[y])
        assert named.classes_.tolist() == sorted(names.tolist())
        assert (named.predict(X) == names[numbers.predict(X)]).all()


def test_threads_change_nothing(problem):
    X, y = problem
    one, three = (CRFClassifier(n_jobs=n).fit(X, y) for n in (1, 3))
    assert (one.coef_ == three.coef_).all()
    assert (one.intercept_ == three.intercept_).all()


@pytest.mark.parametrize("solver", ["sgd", "averaged_perceptron", "passive_aggressive", "arow"])
def test_online_solvers(problem, solver):
    X, y = problem
    model = CRFClassifier(solver=solver, random_state=0, max_iter=50).fit(X, y)
    assert model.score(X, y) > 0.95
    again = CRFClassifier(solver=solver, random_state=0, max_iter=50).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-6, atol=1e-9)
    assert again.fit_report_.solver == solver


def test_sgd_comes_to_the_same_optimum(problem):
    X, y = problem
    exact = CRFClassifier(l2=5.0, **EXACT).fit(X, y)
    solver = SGD(max_iter=500, period=500, average_after=100, random_state=0)
    found = CRFClassifier(solver=solver, l2=5.0).fit(X, y)
    np.testing.assert_allclose(found.coef_, exact.coef_, rtol=0, atol=0.02)
    np.testing.assert_allclose(found.predict_proba(X), exact.predict_proba(X), rtol=0, atol=0.02)


# -------------------------------------------------------------------------------- going on learning


def test_warm_start(problem):
    X, y = problem
    model = CRFClassifier(warm_start=True, **EXACT).fit(X, y)
    n_iter = model.n_iter_
    assert model.fit(X, y).n_iter_ < n_iter / 4
    compare(model, CRFClassifier(**EXACT).fit(X, y), X)
    with pytest.raises(ValueError, match="must have the classes of the previous fit"):
        model.fit(X, np.where(y == 0, 7, y))


def test_partial_fit_pulls_towards_what_was_learned(problem):
    X, y = problem
    first, second = slice(0, None, 2), slice(1, None, 2)
    model = CRFClassifier(**EXACT).partial_fit(X[first], y[first], classes=np.unique(y))
    start = model.coef_.copy(), model.intercept_.copy()
    held = copy.deepcopy(model).set_params(l2=1e9).partial_fit(X[second], y[second])
    np.testing.assert_allclose(held.coef_, start[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(held.intercept_, start[1], rtol=0, atol=1e-6)
    model.partial_fit(X[second], y[second])
    both = model.log_likelihood(X, y).sum()
    assert both > CRFClassifier().fit(X[second], y[second]).log_likelihood(X, y).sum()
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        model.partial_fit(X, y, classes=[0, 9])
    with pytest.raises(ValueError, match=r"y\[0\] is 'z', which is not one of the classes"):
        CRFClassifier().partial_fit(X, y.astype(str)).partial_fit(X[:1], ["z"])


def test_partial_fit_of_one_class_with_all_classes_named():
    model = CRFClassifier().partial_fit([[0.0], [1.0]], ["a", "a"], classes=["a", "b"])
    assert model.classes_.tolist() == ["a", "b"]
    before = model.predict_proba([[5.0]])[0, 1]
    assert before < 0.01 < model.partial_fit([[5.0]], ["b"]).predict_proba([[5.0]])[0, 1]


def test_validation_stops_early(problem):
    X, y = problem
    model = CRFClassifier(l2=1e-6, tol=0.0, max_iter=300, validation_interval=1, n_iter_no_change=3)
    model.fit(X[::2], y[::2], validation_data=(X[1::2], y[1::2]))
    scores = model.fit_report_.validation
    assert len(scores) < 300
    assert model.score(X[1::2], y[1::2]) == max(score for _, score in scores)


def test_callback_and_interruption(problem):
    X, y = problem
    seen = []
    model = CRFClassifier().fit(X, y, callback=lambda state: seen.append(state) or len(seen) == 2)
    assert model.n_iter_ == len(seen) == 2

    def interrupt(state):
        if state.iteration == 3:
            raise KeyboardInterrupt

    model = CRFClassifier()
    with pytest.warns(UserWarning, match="Ctrl-C ended the fit"):
        model.fit(X, y, callback=interrupt)
    assert model.n_iter_ == 3
    assert model.score(X, y) > 0.8


def test_pipeline_and_grid_search():
    X, y = make_curved_classes(200)
    pipeline = make_pipeline(PolynomialFeatures(3, include_bias=False), CRFClassifier())
    grid = {"polynomialfeatures__degree": [1, 3], "crfclassifier__l2": [100.0, 1.0]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_ == {"polynomialfeatures__degree": 3, "crfclassifier__l2": 1.0}
    assert search.score(X, y) > 0.9


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"l2": -1.0}, "l2 must be a number of at least 0"),
        ({"l1": "much"}, "l1 must be a number"),
        ({"solver": "lbgfs"}, "did you mean 'lbfgs'"),
        ({"objective": "likelyhood"}, "did you mean 'likelihood'"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1"),
        ({"class_weight": "fair"}, "class_weight"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"solver": "sgd", "l1": 1.0}, "does not support l1 > 0"),
        ({"solver": "arow", "objective": "softmax_margin"}, "leave objective at .auto."),
    ],
    ids=str,
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        CRFClassifier(**parameters).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[0.0], [np.nan]], [0, 1], "contains NaN"),
        ([0.0, 1.0], [0, 1], "Expected 2D array, got 1D array"),
        ([["a"], ["b"]], [0, 1], "could not convert string to float"),
        ([[0.0], [1.0]], [0, 1, 1], "inconsistent numbers of samples"),
        ([[0.0], [1.0]], [0, 0], "at least 2 classes, got one class"),
        ([[0.0], [1.0]], [0.5, 1.25], "Unknown label type"),
        (sp.csr_array([[0.0], [np.inf]]), [0, 1], "infinity"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_bad_data(X, y, message):
    with pytest.raises(ValueError, match=message):
        CRFClassifier().fit(X, y)


def test_bad_data_later():
    X, y = make_curved_classes(30)
    model = CRFClassifier().fit(X, y)
    with pytest.raises(ValueError, match="X has 1 features, but CRFClassifier is expecting 2"):
        model.predict(X[:, :1])
    with pytest.raises(ValueError, match="is the label 5, which was not seen in training"):
        model.log_likelihood(X[:1], [5])
    with pytest.raises(ValueError, match="must have the same length, got 30 and 3"):
        model.log_likelihood(X, y[:3])
    with pytest.raises(ValueError, match="sample_weight is zero for every example"):
        model.fit(X, y, np.zeros(len(y)))
    with pytest.raises(ValueError, match="validation_data must be a pair"):
        model.fit(X, y, validation_data=X)
    with pytest.raises(UnsupportedError, match="projection"):
        CRFClassifier(solver=SGD(schedule="pegasos", projection=True)).fit(X, y)


def test_a_failed_fit_leaves_the_model_as_it_was():
    X, y = make_curved_classes(30)
    model = CRFClassifier().fit(X, y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="features are too large"):
        model.fit(1e200 * X, y)
    assert (model.predict_proba(X) == before).all()


def test_chordal_is_imported_without_scikit_learn():
    code = (
        "import sys, chordal, chordal.estimators\n"
        "assert 'CRFClassifier' in dir(chordal)\n"
        "assert 'sklearn' not in sys.modules\n"
        "chordal.CRFClassifier, chordal.RBFFeatures\n"
        "assert 'sklearn' in sys.modules and 'matplotlib' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
