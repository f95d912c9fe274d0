"""Paths of regularisation, and its choice by cross-validation."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold

from chordal import (
    ChainCRF,
    ChainCRFCV,
    CRFClassifier,
    CRFClassifierCV,
    Dataset,
    GridCRF,
    MultiLabelCRF,
    TwoStageCRF,
    UnsupportedError,
    regularization_path,
)
from chordal.estimators import subsets
from chordal.estimators._training import preparing
from chordal.metrics import token_accuracy, zero_one_accuracy

L2S = [0.1, 10.0, 1.0, 0.01]
EXACT = {"tol": 1e-11, "max_iter": 3000}


@pytest.fixture(scope="module")
def data():
    """Sequences of three noisy labels, and columns that say nothing."""
    rng = np.random.default_rng(0)
    y = [np.repeat(rng.integers(0, 3, 4), 2) for _ in range(24)]
    X = [
        np.concatenate([np.eye(3)[s] + rng.normal(size=(8, 3)), rng.normal(size=(8, 6))], 1)
        for s in y
    ]
    return X, y


@pytest.mark.parametrize("parameter", ["l2", "l1"])
def test_each_model_of_a_path_is_the_one_fitted_alone(data, parameter):
    X, y = data
    crf = ChainCRF(**EXACT)
    path = regularization_path(crf, X, y, **{f"{parameter}s": L2S})
    assert path.parameter == parameter
    assert_array_equal(path.values, L2S)
    for k, value in enumerate(L2S):
        alone = clone(crf).set_params(**{parameter: value}).fit(X, y)
        assert_allclose(path.objectives[k], alone.objective_, rtol=1e-7)
        assert_allclose(path.weights[k], alone.weights_, atol=2e-3)
    assert path.scores is None
    assert not hasattr(crf, "weights_")
    with pytest.raises(ValueError, match="no scores: give validation_data or cv"):
        _ = path.best


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(preparing, "PART", 40)
    monkeypatch.setattr(preparing, "CHUNK", 5)


@pytest.mark.parametrize("scoring", [None, "zero_one_accuracy"])
@pytest.mark.parametrize("form", ["path", "data sets", "batches"])
def test_folds_of_data_on_disk_are_those_in_memory(data, tmp_path, small_parts, form, scoring):
    X, y = data
    settings = {"l2s": [0.1, 10.0], "cv": KFold(3, shuffle=True, random_state=0)}
    model = ChainCRFCV(ChainCRF(**EXACT), scoring=scoring, **settings)
    batches = [(X[:9], y[:9]), (X[9:], y[9:])]
    for k, batch in enumerate(batches):
        ChainCRF().prepare(tmp_path / str(k), *batch)
    ChainCRF().prepare(tmp_path / "data", X, y)
    given = {
        "path": tmp_path / "data",
        "data sets": [Dataset(tmp_path / "0"), tmp_path / "1"],
        "batches": iter(batches),
    }
    here, disk = clone(model).fit(X, y), clone(model).fit(given[form])
    assert_allclose(disk.scores_, here.scores_, atol=1e-12)
    assert disk.best_params_ == here.best_params_
    assert_array_equal(disk.estimator_.weights_, here.estimator_.weights_)
    assert disk.score(tmp_path / "data") == pytest.approx(here.score(X, y))


def test_wrong_values_are_named_before_batches_are_read(data):
    batches = iter([data])
    with pytest.raises(ValueError, match="each of l2s must be"):
        ChainCRFCV(l2s=[-1.0]).fit(batches)
    assert next(batches) is data


def test_folds_of_tables_on_disk(tmp_path, small_parts):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, "a", "b")
    CRFClassifier().prepare(tmp_path / "data", X, y, sample_weight=rng.random(60))
    CRFClassifier().prepare(tmp_path / "plain", X, y)
    model = CRFClassifierCV(CRFClassifier(**EXACT), l2s=[0.1, 10.0], cv=3)
    here, disk = clone(model).fit(X, y), clone(model).fit(tmp_path / "plain")
    assert_allclose(disk.scores_, here.scores_, atol=1e-12)
    weighted = clone(model).fit(tmp_path / "data").estimator_
    assert not np.allclose(weighted.weights_, here.estimator_.weights_)


@pytest.mark.parametrize("case", ["images", "sets of labels", "many labels", "named"])
def test_subsets_hold_what_they_are_asked_for(case, data, tmp_path, small_parts):
    rng = np.random.default_rng(1)
    X, y = data
    weight = rng.random(len(X)) if case == "named" else None
    model = ChainCRF(max_iter=5)
    if case == "images":
        model, X = GridCRF(max_iter=5), [rng.normal(size=(2, n % 3 + 1, 2)) for n in range(24)]
        y = [(x[..., 0] > 0).astype(int) for x in X]
    elif case == "sets of labels":
        y = [[{0, int(v)} if k % 3 else None for k, v in enumerate(own)] for own in y]
    elif case == "many labels":
        model, X = MultiLabelCRF(max_iter=5, structure="independent"), rng.normal(size=(24, 3))
        y = (X + rng.normal(size=X.shape) > 0).astype(int)
    else:
        X = [[[f"w{v}", f"u{rng.integers(9)}"] for v in own] for own in y]
    chosen = rng.random(24) < 0.5
    numbers = np.flatnonzero(chosen)
    stored = model.prepare(tmp_path / "data", X, y, sample_weight=weight)
    (some,) = subsets(model, [stored], chosen, tmp_path / "some")
    some.verify()
    given = [X[i] for i in numbers], [y[i] for i in numbers]
    if case == "many labels":
        given = X[chosen], y[chosen]
    own = None if weight is None else weight[chosen]
    here = clone(model).fit(*given, sample_weight=own)
    disk = clone(model).fit(some)
    assert disk.objective_ == pytest.approx(here.objective_, rel=1e-9)
    for found, expected in zip(disk.predict(some), here.predict(given[0]), strict=True):
        assert np.array_equal(found, expected)


def test_only_data_on_disk_include_labels(data):
    with pytest.raises(TypeError, match="y is missing: only prepared data sets"):
        ChainCRFCV().fit(data[0])
    with pytest.raises(TypeError, match=r"must have the parameter l2, got TwoStageCRF\(\)"):
        ChainCRFCV(TwoStageCRF()).fit(iter([data]))

    class Other:
        def get_params(self, deep):
            return {"l2": 1.0, "warm_start": False}

    with pytest.raises(UnsupportedError, match="Other needs examples in memory"):
        ChainCRFCV(Other()).fit(iter([data]))


def test_weights_grow_as_the_penalty_falls(data):
    path = regularization_path(ChainCRF(**EXACT), *data, l2s=L2S)
    order = np.argsort(L2S)[::-1]
    norms = [np.linalg.norm(path.weights[k]) for k in order]
    assert norms == sorted(norms)
    sparse = regularization_path(ChainCRF(**EXACT), *data, l1s=[30.0, 3.0, 0.3])
    counts = [np.count_nonzero(w) for w in sparse.weights]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_a_warm_start_saves_iterations(data):
    values = list(np.geomspace(10.0, 0.1, 9))
    path = regularization_path(ChainCRF(tol=1e-7), *data, l2s=values)
    cold = [ChainCRF(tol=1e-7, l2=v).fit(*data).n_iter_ for v in values]
    assert path.n_iter.sum() < 0.9 * sum(cold)


def test_scores_on_validation_data(data):
    X, y = data
    path = regularization_path(
        ChainCRF(), X[:12], y[:12], l2s=L2S, validation_data=(X[12:], y[12:]),
        scoring="zero_one_accuracy",
    )  # fmt: skip
    assert path.scores.shape == (4, 1)
    for k, value in enumerate(L2S):
        predicted = ChainCRF(l2=value).fit(X[:12], y[:12]).predict(X[12:])
        assert abs(path.scores[k, 0] - zero_one_accuracy(y[12:], predicted)) < 0.1
    assert path.scores[path.best, 0] == path.scores.max()
    assert path.best_value == L2S[path.best]


def test_cross_validation_is_that_of_scikit_learn(data):
    X, y = data
    folds = KFold(4, shuffle=True, random_state=0)
    crf = ChainCRF(**EXACT)
    path = regularization_path(crf, X, y, l2s=L2S, cv=folds)
    search = GridSearchCV(crf, {"l2": L2S}, cv=folds).fit(X, y)
    theirs = np.stack([search.cv_results_[f"split{k}_test_score"] for k in range(4)], axis=1)
    assert_allclose(path.scores, theirs, atol=1e-12)
    model = ChainCRFCV(crf, l2s=L2S, cv=folds).fit(X, y)
    assert_allclose(model.scores_, theirs, atol=1e-12)
    assert model.best_params_ == search.best_params_
    assert_array_equal(model.estimator_.weights_, search.best_estimator_.weights_)
    assert_array_equal(np.concatenate(model.predict(X)), np.concatenate(search.predict(X)))


def test_of_equal_scores_the_strongest_wins():
    X, y = [[["a"], ["b"]]] * 4, [["A", "B"]] * 4
    model = ChainCRFCV(l2s=[0.01, 1.0, 0.1], cv=2).fit(X, y)
    assert (model.scores_ == 1.0).all()
    assert model.best_params_ == {"l2": 1.0}


def test_a_model_that_chooses_for_itself(data):
    X, y = data
    model = clone(ChainCRFCV(ChainCRF(l2=0.1), l1s=[0.1, 1.0], cv=3, scoring="zero_one_accuracy"))
    with pytest.raises(NotFittedError, match="ChainCRFCV instance is not fitted"):
        model.predict(X)
    model.fit([sp.csr_matrix(x) for x in X], y)
    assert set(model.best_params_) == {"l1"}
    assert model.estimator_.l2 == 0.1
    assert model.values_.tolist() == [0.1, 1.0]
    X = [sp.csr_matrix(x) for x in X]
    predicted = model.predict(X)
    assert model.score(X, y) == zero_one_accuracy(y, predicted)
    assert token_accuracy(y, predicted) > 0.5
    assert_allclose(model.predict_marginals(X)[0].sum(axis=1), 1.0)
    assert (model.log_likelihood(X, y) < 0.0).all()
    assert model.get_params()["estimator__l2"] == 0.1
    assert_array_equal(model.classes_, [0, 1, 2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "give exactly one of l2s and l1s"),
        ({"l2s": [1], "l1s": [1]}, "give exactly one of l2s and l1s"),
        ({"l2s": []}, "l2s is empty"),
        ({"l2s": 3}, "l2s must be a list of numbers, got 3"),
        ({"l2s": [1, -1]}, "each of l2s must be a number of at least 0, got -1"),
        ({"l2s": [1], "cv": 2, "validation_data": ([], [])}, "give validation_data or cv, not"),
        ({"l2s": [1], "estimator": TwoStageCRF()}, "estimator must have the parameter l2, got"),
        ({"l2s": [1], "estimator": 3}, "estimator must have the parameter l2, got 3"),
    ],
)
def test_bad_input_is_refused(data, arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        regularization_path(**{"estimator": ChainCRF(), "X": data[0], "y": data[1], **arguments})


def test_a_classifier_chooses_its_regularisation_as_a_grid_search_does():
    from sklearn.model_selection import GridSearchCV

    from chordal import CRFClassifier, CRFClassifierCV
    from chordal.datasets import make_curved_classes

    X, y = make_curved_classes(90, 3)
    l2s = [0.01, 1.0, 100.0]
    ours = CRFClassifierCV(l2s=l2s, cv=3).fit(X, y)
    grid = GridSearchCV(CRFClassifier(), {"l2": l2s}, cv=3).fit(X, y)
    np.testing.assert_allclose(ours.scores_.mean(axis=1), grid.cv_results_["mean_test_score"])
    best = CRFClassifier(l2=ours.best_params_["l2"]).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), best.predict_proba(X))
    assert ours.score(X, y) == best.score(X, y)
