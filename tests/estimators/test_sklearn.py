"""ChainCRF among scikit-learn's tools."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

from chordal import ChainCRF


class Window(TransformerMixin, BaseEstimator):
    """Adds the attributes of the position before."""

    def __init__(self, previous=True):
        self.previous = previous

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        if not self.previous:
            return X
        return [
            [[*t, *(f"-1:{a}" for a in before)] for before, t in zip([[], *x], x, strict=False)]
            for x in X
        ]


PARAMETERS = {
    "objective": "likelihood",
    "solver": "owlqn",
    "inference": "chain",
    "l1": 0.5,
    "l2": 0.25,
    "freeze": ("bias",),
    "states": "all",
    "transitions": "none",
    "template": "U:%x[0,0]",
    "transition_features": len,
    "bias": True,
    "ends": True,
    "min_freq": 3,
    "max_iter": 17,
    "tol": 1e-3,
    "validation_interval": 2,
    "n_iter_no_change": 5,
    "n_jobs": 2,
    "random_state": 1,
    "warm_start": True,
    "verbose": 2,
}


def test_parameters_are_kept_as_given():
    crf = ChainCRF(**PARAMETERS)
    assert crf.get_params() == PARAMETERS
    assert ChainCRF().get_params().keys() == PARAMETERS.keys()
    assert ChainCRF().set_params(**PARAMETERS).get_params() == PARAMETERS
    with pytest.raises(ValueError, match="Invalid parameter 'c2'"):
        crf.set_params(c2=1.0)


def test_clone_has_parameters_and_no_weights(attribute_problem):
    crf = ChainCRF(l2=0.3, ends=True).fit(*attribute_problem)
    other = clone(crf)
    assert other.get_params() == crf.get_params()
    assert not hasattr(other, "weights_")
    with pytest.raises(NotFittedError):
        other.predict(attribute_problem[0])
    assert (other.fit(*attribute_problem).weights_ == crf.weights_).all()


def test_fit_does_not_change_parameters(attribute_problem):
    crf = ChainCRF(l1=0.1)
    before = crf.get_params()
    assert crf.fit(*attribute_problem) is crf
    assert crf.get_params() == before


def neighbours(x):
    return x[1:] + x[:-1]


def copies(crf):
    protocols = range(2, pickle.HIGHEST_PROTOCOL + 1)
    return [
        copy.deepcopy(crf),
        *(pickle.loads(pickle.dumps(crf, protocol)) for protocol in protocols),
    ]


@pytest.mark.parametrize("kind", ["attributes", "dense", "csr", "transition features"])
def test_copies_predict_the_same(attribute_problem, dense_problem, kind):
    X, y = attribute_problem if kind == "attributes" else dense_problem
    X = [sp.csr_array(x) for x in X] if kind == "csr" else X
    function = neighbours if kind == "transition features" else None
    crf = ChainCRF(ends=True, random_state=0, transition_features=function).fit(X, y)
    for other in copies(crf):
        assert (other.weights_ == crf.weights_).all()
        assert other.predict(X) == crf.predict(X)
        assert other.sample(X, 3) == crf.sample(X, 3)
        assert (other.log_likelihood(X, y) == crf.log_likelihood(X, y)).all()
        assert other.top_features(5) == crf.top_features(5)
        assert other.fit_report_ == crf.fit_report_
        assert other.classes_.tolist() == crf.classes_.tolist()


def test_copies_are_apart(attribute_problem):
    """What a copy goes on to learn does not reach the original."""
    X, y = attribute_problem
    crf = ChainCRF().fit(X, y)
    expected = [m.tolist() for m in crf.predict_marginals(X)]
    for other in copies(crf):
        other.partial_fit([[["unheard"]]], [["new"]])
        assert other.predict([[["unheard"]]]) == [["new"]]
        assert crf.classes_.tolist() == ["L0", "L1", "L2", "L3"]
        assert [m.tolist() for m in crf.predict_marginals(X)] == expected


def test_names_of_all_kinds_survive_pickling():
    X = [[["a\0b", "ünïcödé", "日本", "\ud800", ""], ["x" * 10_000]]]
    crf = ChainCRF().fit(X, [["A", "B"]])
    other = pickle.loads(pickle.dumps(crf))
    assert other.top_features(10) == crf.top_features(10)
    assert (other.predict_marginals(X)[0] == crf.predict_marginals(X)[0]).all()


def test_grid_search(attribute_problem):
    X, y = attribute_problem
    grid = {"l2": [1e4, 0.5], "transitions": ["seen", "all"]}
    search = GridSearchCV(ChainCRF(), grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_["l2"] == 0.5
    assert len(search.cv_results_["mean_test_score"]) == 4
    assert search.best_score_ == pytest.approx(
        cross_val_score(search.best_estimator_, X, y, cv=3, error_score="raise").mean(), abs=1e-12
    )
    assert search.predict(X) == ChainCRF(**search.best_params_).fit(X, y).predict(X)
    assert search.score(X, y) > 0.6


def test_grid_search_in_processes(attribute_problem):
    X, y = attribute_problem
    serial, parallel = (
        GridSearchCV(ChainCRF(), {"l2": [10.0, 0.5]}, cv=2, n_jobs=n, error_score="raise").fit(X, y)
        for n in (1, 2)
    )
    assert (
        parallel.cv_results_["mean_test_score"].tolist()
        == serial.cv_results_["mean_test_score"].tolist()
    )
    assert (parallel.best_estimator_.weights_ == serial.best_estimator_.weights_).all()


@pytest.mark.parametrize("kind", ["attributes", "dense", "csr"])
def test_cross_validation(attribute_problem, dense_problem, kind):
    X, y = attribute_problem if kind == "attributes" else dense_problem
    X = [sp.csr_array(x) for x in X] if kind == "csr" else X
    folds = KFold(4, shuffle=True, random_state=0)
    scores = cross_val_score(ChainCRF(), X, y, cv=folds, error_score="raise")
    expected = []
    for train, test in folds.split(X):
        crf = ChainCRF().fit([X[i] for i in train], [y[i] for i in train])
        expected.append(crf.score([X[i] for i in test], [y[i] for i in test]))
    assert scores.tolist() == pytest.approx(expected, abs=1e-12)


def test_cross_validation_by_another_score(attribute_problem):
    def likelihood(crf, X, y):
        return crf.log_likelihood(X, y).mean()

    X, y = attribute_problem
    weak, good = (
        cross_val_score(ChainCRF(l2=l2), X, y, scoring=likelihood, cv=3, error_score="raise").mean()
        for l2 in (1e5, 1.0)
    )
    assert weak < good < 0.0


def test_cross_val_predict(attribute_problem):
    X, y = attribute_problem
    same = [i for i, t in enumerate(y) if len(t) == 3]
    X, y = [X[i] for i in same], [y[i] for i in same]
    predicted = cross_val_predict(ChainCRF(), X, y, cv=2)
    assert np.shape(predicted) == (len(X), 3)


def test_sample_weight_passes_through_grid_search(attribute_problem):
    X, y = attribute_problem
    weight = np.ones(len(X))
    search = GridSearchCV(ChainCRF(), {"l2": [0.5]}, cv=2, error_score="raise")
    weighted = search.fit(X, y, sample_weight=3 * weight).best_estimator_
    assert (
        weighted.weights_ == ChainCRF(l2=0.5).fit(X, y, sample_weight=3 * weight).weights_
    ).all()


def test_pipeline(attribute_problem):
    X, y = attribute_problem
    pipeline = make_pipeline(Window(), ChainCRF(l2=0.5)).fit(X, y)
    crf = ChainCRF(l2=0.5).fit(Window().transform(X), y)
    assert pipeline.predict(X) == crf.predict(Window().transform(X))
    assert pipeline.predict(X, method="mpm") == crf.predict(Window().transform(X), method="mpm")
    assert pipeline.score(X, y) == crf.score(Window().transform(X), y)
    assert pipeline[-1].fit_report_.n_weights == crf.fit_report_.n_weights
    named = Pipeline([("window", Window()), ("crf", ChainCRF())])
    grid = {"window__previous": [True, False], "crf__l2": [0.5, 2.0]}
    search = GridSearchCV(named, grid, cv=2, error_score="raise").fit(X, y)
    assert set(search.best_params_) == set(grid)


def test_repr_and_html(attribute_problem):
    crf = ChainCRF(l2=0.125, solver="owlqn")
    for estimator in (crf, crf.fit(*attribute_problem)):
        assert repr(estimator) == "ChainCRF(l2=0.125, solver='owlqn')"
        html = estimator._repr_html_()
        assert "ChainCRF" in html
        assert "0.125" in html
    assert "Window" in make_pipeline(Window(), crf)._repr_html_()
