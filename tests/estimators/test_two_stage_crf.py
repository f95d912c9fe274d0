"""Two-stage training: scores of positions first, links between labels second."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from chordal import ChainCRF, TwoStageCRF, UnsupportedError

EXACT = {"tol": 1e-12, "max_iter": 2000}


def sequences(n, seed=0, sticky=0.75, noise=0.9):
    """Three labels that like to stay, each with a noisy column of its own; length 10."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        codes = [int(rng.integers(3))]
        for _ in range(9):
            codes.append(codes[-1] if rng.random() < sticky else int(rng.integers(3)))
        codes = np.array(codes)
        X.append(np.eye(3)[codes] + noise * rng.normal(size=(10, 3)))
        y.append(np.array(["u", "v", "w"])[codes])
    return X, y


@pytest.fixture(scope="module")
def data():
    return sequences(60)


def chain_objective(scores, codes, l2):
    """−log-likelihood + penalty as a function of (scale, transitions), in plain NumPy."""
    s, c = np.stack(scores), np.stack(codes)
    gold = np.take_along_axis(s, c[:, :, None], axis=2).sum()
    counts = np.zeros((3, 3))
    np.add.at(counts, (c[:, :-1], c[:, 1:]), 1.0)

    def value(v):
        scale, table = v[0], v[1:].reshape(3, 3)
        forward = scale * s[:, 0]
        for t in range(1, s.shape[1]):
            forward = logsumexp(forward[:, :, None] + table, axis=1) + scale * s[:, t]
        total = logsumexp(forward, axis=1).sum() - scale * gold - (counts * table).sum()
        return total + 0.5 * l2 * (table**2).sum()

    return value


@pytest.mark.parametrize("scale", [False, True])
def test_the_second_stage_is_the_optimum_for_fixed_scores(data, scale):
    X, y = data[0][:25], data[1][:25]
    unary = LogisticRegression()
    model = TwoStageCRF(unary, ChainCRF(l2=0.5, **EXACT), cv="same", scale=scale).fit(X, y)
    unary.fit(np.concatenate(X), np.concatenate(y))
    scores = [unary.predict_log_proba(x) for x in X]
    codes = [np.searchsorted(["u", "v", "w"], labels) for labels in y]
    value = chain_objective(scores, codes, 0.5)
    bounds = [(None, None) if scale else (1.0, 1.0)] + [(None, None)] * 9
    best = minimize(value, np.array([1.0] + [0.0] * 9), bounds=bounds, options={"ftol": 1e-13})
    assert_allclose(model.crf_.transitions_.ravel(), best.x[1:], atol=1e-3)
    assert_allclose(model.scale_, best.x[0], atol=1e-3)
    assert_allclose(model.reports_[0].objective, best.fun, rtol=1e-7)
    assert_allclose(model.crf_.coef_, model.scale_ * np.eye(3), rtol=1e-12)
    assert (model.scale_ != 1.0) == scale


def test_scores_come_from_models_that_did_not_see_the_sequence(data):
    """A tree that learns by heart is never wrong on what it has seen."""
    X, y = data
    X_test, y_test = sequences(40, seed=1)
    memory = DecisionTreeClassifier(random_state=0)
    same = TwoStageCRF(memory, cv="same").fit(X, y)
    apart = TwoStageCRF(memory, cv=5, random_state=0).fit(X, y)
    # Scores that are always right leave nothing for transitions to explain.
    assert np.abs(same.crf_.transitions_).max() < 0.2 * np.abs(apart.crf_.transitions_).max()
    scaled = TwoStageCRF(memory, cv=5, scale=True, random_state=0).fit(X, y)
    assert scaled.scale_ < 0.2
    # What is learned from honest scores holds for new sequences.
    assert scaled.log_likelihood(X_test, y_test).mean() > -10.0 * np.log(3.0)
    assert same.log_likelihood(X_test, y_test).mean() < -100.0


def test_folds_hold_whole_sequences_and_follow_the_seed(data):
    X, y = data
    seen, apart = [], []

    class Recorder(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            self.fitted = set(map(tuple, np.asarray(X).round(9)))
            seen.append(self.fitted)
            return super().fit(X, y, sample_weight)

        def predict_proba(self, X):
            apart.append((self.fitted, set(map(tuple, np.asarray(X).round(9)))))
            return super().predict_proba(X)

    a = TwoStageCRF(Recorder(), cv=4, random_state=3).fit(X, y)
    assert len(apart) == 4
    assert len(seen) == 5  # and once on everything
    assert sum(len(asked) for _, asked in apart) == 600
    for fitted, asked in apart:
        assert not fitted & asked
        assert len(fitted) + len(asked) == 600
    b = TwoStageCRF(Recorder(), cv=4, random_state=3).fit(X, y)
    assert_array_equal(a.crf_.weights_, b.crf_.weights_)
    c = TwoStageCRF(Recorder(), cv=4, random_state=4).fit(X, y)
    assert (a.crf_.weights_ != c.crf_.weights_).any()


@pytest.mark.parametrize(
    "unary",
    [
        None,
        LogisticRegression(),
        LinearSVC(),
        GaussianNB(),
        ChainCRF(transitions="none"),
    ],
    ids=lambda u: type(u).__name__,
)
def test_links_help_every_classifier(data, unary):
    X, y = data
    X_test, y_test = sequences(60, seed=1)
    crf = ChainCRF(l2=0.1, ends=True)
    model = TwoStageCRF(unary, crf, scale=True, random_state=0).fit(X, y)
    alone = model.classes_[np.concatenate(model._unary.scores(X_test)).argmax(axis=1)]
    right = np.mean(alone == np.concatenate(y_test))
    assert model.score(X_test, y_test) > right + 0.02
    marginals = model.predict_marginals(X_test)
    assert_allclose(marginals[0].sum(axis=1), 1.0)
    predicted = np.concatenate(model.predict(X_test, method="mpm"))
    assert_array_equal(predicted, model.classes_[np.concatenate(marginals).argmax(axis=1)])


@pytest.mark.parametrize("unary", [None, LogisticRegression(), LinearSVC()])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_all_jointly_reaches_the_optimum_of_one_stage(data, unary, form):
    y = data[1]
    X = [form(x) for x in data[0]]
    crf = ChainCRF(l2=0.7, fit_intercept=True, ends=True, **EXACT)
    model = TwoStageCRF(unary, crf, scale=True, joint=True, random_state=0).fit(X, y)
    whole = clone(crf).fit(X, y)
    assert_allclose(model.crf_.objective_, whole.objective_, rtol=1e-8)
    assert_allclose(model.crf_.transitions_, whole.transitions_, atol=1e-3)
    assert model.score(X, y) == whole.score(X, y)
    assert len(model.reports_) == 2
    # It starts where the second stage ended, much nearer than zero.
    assert model.reports_[1].history[0] < whole.fit_report_.history[0]


def test_joint_training_of_two_labels(data):
    X = data[0]
    y = [np.where(labels == "u", 1, 0) for labels in data[1]]
    crf = ChainCRF(l2=0.7, fit_intercept=True, **EXACT)
    model = TwoStageCRF(LogisticRegression(), crf, joint=True, random_state=0).fit(X, y)
    assert_allclose(model.crf_.objective_, clone(crf).fit(X, y).objective_, rtol=1e-8)
    svc = TwoStageCRF(LinearSVC(), crf, random_state=0).fit(X, y)
    assert svc.score(X, y) > 0.75


def test_attributes_and_pipelines(attribute_problem):
    X, y = attribute_problem
    own = TwoStageCRF(joint=True, crf=ChainCRF(l2=0.3, **EXACT), random_state=0).fit(X, y)
    plain = ChainCRF(l2=0.3, fit_intercept=True, **EXACT).fit(X, y)
    assert_allclose(own.crf_.objective_, plain.objective_, rtol=1e-8)
    tokens = [[dict.fromkeys(t, 1.0) for t in x] for x in X]
    piped = TwoStageCRF(make_pipeline(DictVectorizer(), LogisticRegression()), random_state=0)
    assert piped.fit(tokens, y).score(tokens, y) > 0.6
    with pytest.raises(UnsupportedError, match=r"linear.*Pipeline is not"):
        piped.set_params(joint=True).fit(tokens, y)


def test_prefit_is_used_as_it_is(data):
    X, y = data
    unary = LogisticRegression().fit(np.concatenate(X), np.concatenate(y))
    coef = unary.coef_.copy()
    model = TwoStageCRF(unary, cv="prefit").fit(X[:20], y[:20])
    assert model.unary_ is unary
    assert_array_equal(unary.coef_, coef)
    same = TwoStageCRF(LogisticRegression(), cv="same").fit(X, y)
    assert (model.crf_.weights_ != same.crf_.weights_).any()


def test_a_label_that_a_fold_misses(data):
    X, y = [*data[0]], [labels.copy() for labels in data[1]]
    y[0][3] = "z"  # once only
    for unary in (LogisticRegression(), LinearSVC()):
        model = TwoStageCRF(unary, random_state=0).fit(X, y)
        assert model.classes_.tolist() == ["u", "v", "w", "z"]
        assert model.score(X, y) > 0.7


def test_weights_of_sequences(data):
    X, y = data[0][:20], data[1][:20]
    times = np.arange(20) % 3
    crf = ChainCRF(**EXACT)
    lr = LogisticRegression(tol=1e-10, max_iter=1000)
    a = TwoStageCRF(lr, crf, cv="same").fit(X, y, sample_weight=times)
    repeated = np.repeat(np.arange(20), times)
    b = TwoStageCRF(lr, crf, cv="same").fit([X[i] for i in repeated], [y[i] for i in repeated])
    assert_allclose(a.crf_.transitions_, b.crf_.transitions_, atol=1e-4)


def test_it_is_a_scikit_learn_estimator(data):
    X, y = data
    model = TwoStageCRF(LogisticRegression(), ChainCRF(l2=0.5), random_state=0)
    assert clone(model).get_params()["crf__l2"] == 0.5
    with pytest.raises(NotFittedError):
        model.predict(X)
    search = GridSearchCV(model, {"crf__l2": [0.1, 10.0], "unary__C": [1.0]}, cv=2).fit(X, y)
    assert search.best_params_["crf__l2"] == 0.1
    assert model.crf.l2 == 0.5


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"unary": 3}, "unary must be a classifier with predict_proba or decision_function, got 3"),
        ({"crf": "crf"}, "crf must be a ChainCRF, got 'crf'"),
        ({"crf": ChainCRF(l2=-1)}, "l2 must be"),
        ({"crf": ChainCRF(feature_template="U:%x[0,0]")}, "does not take feature_template"),
        ({"crf": ChainCRF(transition_features=len)}, "does not take transition_features"),
        ({"crf": ChainCRF(freeze=("node",))}, "freeze must not name 'node'"),
        ({"crf": ChainCRF(solver="sgd")}, "solver 'sgd' needs one l2 for all weights"),
        ({"crf": ChainCRF(transitions="none"), "cv": "same"}, "leaves no weight to learn"),
        ({"cv": 1}, "cv must be an integer of at least 2, got 1"),
        ({"cv": "sam"}, "cv must be a number of folds, 'same' or 'prefit', got 'sam'"),
        ({"cv": 61}, "cv=61 needs at least 61 sequences, got 60"),
        ({"cv": "prefit"}, "cv='prefit' needs a fitted unary"),
        ({"unary": ChainCRF(), "joint": True}, "unary ChainCRF with transitions='none'"),
        ({"unary": KNeighborsClassifier(), "joint": True}, "KNeighborsClassifier is not"),
    ],
)
def test_bad_parameters_are_refused(data, parameters, message):
    model = TwoStageCRF(**parameters)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(*data)
    assert not hasattr(model, "crf_")


@pytest.mark.parametrize("settings", [{}, {"crf": ChainCRF(ignore_label="?")}], ids=str)
def test_data_sets_that_were_prepared_by_other_settings(tmp_path, settings):
    X, y = [[["a"], ["b"]], [["c"], ["a"]]] * 3, [["A", "B"], ["A", "?"]] * 3
    data = ChainCRF(ignore_label="?").prepare(tmp_path / "data", X, y)
    with pytest.raises(ValueError, match=r"it was read with ignore_label='\?', not ignore_label="):
        TwoStageCRF(cv=2, random_state=0, **settings).fit(data)
