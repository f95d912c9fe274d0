"""ChainCRF among scikit-learn's tools."""

import copy
import pickle
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError, UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

from chordal import ChainCRF
from chordal._estimator import (
    Estimator,
    ExampleList,
)
from chordal._status import Status
from chordal.estimators._training.monitor import fit_callbacks
from chordal.solvers import Iteration


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
    "freeze": ("intercept",),
    "pairs": "all",
    "transitions": "none",
    "feature_template": "U:%x[0,0]",
    "transition_features": len,
    "fit_intercept": True,
    "ends": True,
    "min_freq": 3,
    "ignore_label": "?",
    "prediction": "mpm",
    "max_iter": 17,
    "tol": 1e-3,
    "validation_interval": 2,
    "n_iter_no_change": 5,
    "n_jobs": 2,
    "random_state": 1,
    "warm_start": True,
    "class_weight": {"A": 2.0},
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


class Echo(Estimator):
    """Predicts the sequences themselves, and iterates as often as it may."""

    def __init__(self, max_iter=3):
        self.max_iter = max_iter

    def fit(self, X, y, sample_weight=None):
        self.seen_ = []
        data = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        with fit_callbacks(self, self.max_iter, data, lambda s: {"n_iter_": s.iteration}) as call:
            for k in range(1, self.max_iter + 1):
                self.seen_.append(k)
                state = Iteration(k, 1.0 / k, 0.0, k, 0.0, np.zeros(1))
                if call is not None and call(state):
                    break
            self.n_iter_ = k
        return self

    def predict(self, X, *, times=1):
        return ExampleList([list(x) * times for x in X])

    def score(self, X, y, sample_weight=None):
        return float(self.n_iter_)


@pytest.mark.parametrize("lengths", [(1, 2, 3, 4), (2, 2, 2, 2), (2, 2, 3, 3)])
def test_cross_val_predict_keeps_one_entry_per_sequence(lengths):
    X = [[f"{i}.{t}" for t in range(n)] for i, n in enumerate(lengths)]
    found = cross_val_predict(Echo(), X, X, cv=KFold(2, shuffle=True, random_state=0))
    assert found.shape == (4,)
    assert found.tolist() == X


def test_a_list_of_examples_is_a_list_elsewhere():
    found = Echo().fit([], []).predict([[1, 2], [3, 4]])
    assert found == [[1, 2], [3, 4]]
    assert np.asarray(found).shape == np.shape(found) == (2, 2)
    assert np.concatenate(found).tolist() == [1, 2, 3, 4]
    assert np.mean(found) == 2.5
    assert np.array_equal(found, [[1, 2], [3, 4]])
    assert pickle.loads(pickle.dumps(found)) == found


def test_cross_val_predict(attribute_problem):
    X, y = attribute_problem
    predicted = cross_val_predict(ChainCRF(), X, y, cv=2)
    assert [len(p) for p in predicted] == [len(t) for t in y]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_requests_reach_fit_and_score(attribute_problem, routing):
    X, y = attribute_problem
    weight = np.linspace(0.5, 2.0, len(X))
    expected = ChainCRF(l2=0.5).fit(X, y, sample_weight=weight).weights_
    crf = ChainCRF().set_fit_request(sample_weight=True)
    search = GridSearchCV(crf, {"l2": [0.5]}, cv=2, error_score="raise")
    search.fit(X, y, sample_weight=weight)
    assert (search.best_estimator_.weights_ == expected).all()
    pipeline = make_pipeline(Window(previous=False), crf.set_params(l2=0.5))
    assert (pipeline.fit(X, y, sample_weight=weight)[-1].weights_ == expected).all()
    crf.set_score_request(sample_weight=True)
    assert pipeline.score(X, y, sample_weight=weight) == pipeline[-1].score(X, y, weight)
    both = GridSearchCV(pipeline, {"chaincrf__l2": [0.5]}, cv=2, error_score="raise")
    both.fit(X, y, sample_weight=weight)
    assert (both.best_estimator_[-1].weights_ == expected).all()


def test_a_weight_that_nobody_asked_for_is_refused(attribute_problem, routing):
    X, y = attribute_problem
    search = GridSearchCV(ChainCRF(), {"l2": [0.5]}, cv=2)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        search.fit(X, y, sample_weight=np.ones(len(X)))


def test_requests_are_cloned_and_pickled(routing):
    given = Echo().set_fit_request(sample_weight="w").set_predict_request(times=True)
    for other in (clone(given), copy.deepcopy(given), pickle.loads(pickle.dumps(given))):
        routing = other.get_metadata_routing()
        assert routing.fit.requests == {"sample_weight": "w"}
        assert routing.predict.requests == {"times": True}
        assert routing.score.requests == {"sample_weight": False}
    other.set_fit_request(sample_weight=False)
    assert given.get_metadata_routing().fit.requests == {"sample_weight": "w"}
    pipeline = make_pipeline(Window(previous=False), given).fit([[["a"]]], [["A"]])
    assert pipeline.predict([[["a"]]], times=2) == [[["a"], ["a"]]]


def test_a_request_for_what_there_is_not_is_refused():
    with pytest.raises(TypeError, match="fit has no argument weight; it takes sample_weight"):
        Echo().set_fit_request(weight=True)


class Watch:
    """Keeps what it is told; stops after `stop` iterations."""

    def __init__(self, stop=None):
        self.stop, self.events = stop, []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        n = getattr(fitted_estimator, "n_iter_", None)
        self.events.append(f"end {context.task_name} {n} {len(X)} {len(y)} {sorted(metadata)}")
        return n == self.stop and context.task_name == "iteration"


class Watchful(Watch):
    """Passed on by `GridSearchCV` and `Pipeline`."""

    max_propagation_depth = None

    def on_fit_task_end(self, estimator, context):
        self.events.append(f"end {context.estimator_name} {context.task_name}")


needs_callbacks = pytest.mark.skipif(
    find_spec("sklearn.callback") is None, reason="scikit-learn 1.9 or newer"
)


@needs_callbacks
def test_callbacks_see_each_iteration():
    watch = Watch(stop=2)
    echo = Echo().set_callbacks(watch).fit([["a"]], [["A"]])
    assert watch.events == [
        "setup",
        "begin fit",
        "begin iteration",
        "end iteration 1 1 1 ['sample_weight']",
        "begin iteration",
        "end iteration 2 1 1 ['sample_weight']",
        "end fit 2 1 1 ['sample_weight']",
        "teardown",
    ]
    assert echo.seen_ == [1, 2]
    assert set(vars(echo)) == {"max_iter", "_skl_callbacks", "seen_", "n_iter_"}
    assert clone(echo)._skl_callbacks == [watch]
    assert not hasattr(echo.set_callbacks(), "_skl_callbacks")


@needs_callbacks
def test_no_more_iterations_are_reported_than_were_announced():
    watch = Watchful()
    state = Iteration(1, 1.0, 0.0, 1, 0.0, np.zeros(1))
    with fit_callbacks(Echo().set_callbacks(watch), 2, {}) as call:
        assert [call(state) for _ in range(3)] == [False] * 3
    assert watch.events.count("end Echo iteration") == 2


@needs_callbacks
def test_callbacks_end_when_a_fit_fails():
    watch = Watch()
    with (
        pytest.raises(RuntimeError, match="no"),
        fit_callbacks(Echo().set_callbacks(watch), 3, {}),
    ):
        raise RuntimeError("no")
    assert watch.events == ["setup", "begin fit", "teardown"]


@needs_callbacks
def test_callbacks_pass_through_a_search():
    watch = Watchful()
    X = [[["a"]]] * 4
    search = GridSearchCV(Echo(), {"max_iter": [2]}, cv=2, error_score="raise")
    search.set_callbacks(watch).fit(X, X)
    assert watch.events.count("end Echo iteration") == 6  # two folds and the last fit, 2 each
    assert watch.events.count("setup") == watch.events.count("teardown") == 1
    assert watch.events[-1] == "teardown"


@needs_callbacks
def test_bars_of_progress(capsys):
    from sklearn import callback as callbacks

    Echo().set_callbacks(callbacks.ProgressBar()).fit([["a"]], [["A"]])
    assert "Echo - fit" in capsys.readouterr().out


@needs_callbacks
def test_callbacks_see_a_fit(attribute_problem):
    watch = Watchful()
    crf = ChainCRF(max_iter=3, tol=0.0).set_callbacks(watch).fit(*attribute_problem)
    assert watch.events.count("end ChainCRF iteration") == crf.n_iter_ == 3


def test_a_fit_that_did_not_converge_warns(attribute_problem):
    with pytest.warns(ConvergenceWarning, match="'lbfgs' did not converge in 2 iterations"):
        ChainCRF(max_iter=2).fit(*attribute_problem)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ChainCRF().fit(*attribute_problem).fit_report_.status is Status.CONVERGED


def test_columns_of_arrays_are_counted():
    X, y = [np.zeros((2, 3)), np.ones((1, 3))], [["a", "b"], ["a"]]
    assert ChainCRF().fit(X, y).n_features_in_ == 3
    assert not hasattr(ChainCRF().fit([[["w"]], [["v"]]], [["a"], ["b"]]), "n_features_in_")


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
        assert '<tr class="user-set"><td class="param">l2</td><td class="value">0.125<' in html
        assert '<tr class="default"><td class="param">l1</td>' in html
        bundle = estimator._repr_mimebundle_()
        assert bundle["text/plain"] == repr(estimator)
        assert "0.125" in bundle["text/html"]
    assert '<td class="param">weights_</td><td class="value">float64 array [' in html
    assert "Fitted" in html
    assert "Not fitted" in clone(crf)._repr_html_()
    assert "weights_" not in clone(crf)._repr_html_()
    with sklearn.config_context(display="text"):
        assert list(crf._repr_mimebundle_()) == ["text/plain"]
    assert "Window" in make_pipeline(Window(), crf)._repr_html_()


def test_html_escapes_what_it_shows():
    assert "&lt;b&gt;" in ChainCRF(solver="<b>")._get_params_html()._repr_html_()
    assert "<i>" not in ChainCRF(solver="<i>")._repr_html_()
