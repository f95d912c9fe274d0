"""chordal.compat.sklearn_crfsuite, call by call beside sklearn-crfsuite."""

import copy
import gc
import importlib
import inspect
import os
import pickle

import joblib
import numpy as np
import pytest
import scipy.stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
)
from sklearn.utils.validation import check_is_fitted

from chordal.compat import pycrfsuite
from chordal.compat import sklearn_crfsuite as ours
from chordal.compat.sklearn_crfsuite import metrics, scorers

from .crfsuite_pair import LABELS as WITH_A_RARE_ONE
from .crfsuite_pair import WEATHER

LABELS = [*WITH_A_RARE_ONE[:-1], "rainy"]
ALGORITHMS = ["lbfgs", "l2sgd", "ap", "pa", "arow"]


@pytest.fixture(scope="module")
def theirs():
    return pytest.importorskip("sklearn_crfsuite")


@pytest.fixture(scope="module")
def words():
    """Sentences of 2 to 4 words, whose tags follow from the words."""
    tags = {"the": "D", "a": "D", "cat": "N", "dog": "N", "sleeps": "V", "barks": "V", "old": "A"}
    texts = ["the cat sleeps", "a dog barks", "the old dog", "a cat", "an unknown", "old dog barks"]
    sentences = [text.split() for text in texts * 4]
    X = [[{"w": w, "last": w[-1], "len": len(w) / 5} for w in s] for s in sentences]
    return X, [[tags.get(w, "X") for w in s] for s in sentences]


# --------------------------------------------------------------------------------- beside theirs


def test_the_constructor_is_theirs(theirs):
    mine, real = [inspect.signature(m.CRF).parameters for m in (ours, theirs)]
    assert [(p.name, p.default) for p in mine.values()] == [
        (p.name, p.default) for p in real.values()
    ]
    public = {n for n in dir(theirs.CRF(c1=0.1)) if not n.startswith("_") and n != "training_log_"}
    assert public <= set(dir(ours.CRF()))


@pytest.mark.parametrize("name", ["metrics", "scorers", "trainer", "utils", "estimator"])
def test_modules_have_their_names(theirs, name):
    mine = importlib.import_module(f"chordal.compat.sklearn_crfsuite.{name}")
    real = importlib.import_module(f"sklearn_crfsuite.{name}")
    for key, value in vars(real).items():
        if not key.startswith("_") and getattr(value, "__module__", "") == real.__name__:
            assert hasattr(mine, key)
    assert hasattr(mine, "flat_accuracy") == (name == "scorers")


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"c1": 0.1, "c2": 0.1, "all_possible_transitions": True},
        {"c2": 0.5, "all_possible_states": True, "min_freq": 0},
        {"min_freq": 3, "num_memories": 10, "linesearch": "Backtracking", "max_linesearch": 30},
    ],
    ids=str,
)
def test_the_model_is_theirs(theirs, words, params):
    X, y = words
    mine, real = [
        m.CRF(**params, epsilon=1e-7, delta=0.0, max_iterations=500).fit(X, y)
        for m in (ours, theirs)
    ]
    assert mine.classes_ == real.classes_
    assert mine.training_log_.featgen_num_features == real.training_log_.featgen_num_features
    loss = real.training_log_.last_iteration["loss"]
    assert mine.training_log_.last_iteration["loss"] == pytest.approx(loss, abs=1e-4)
    for name in ("state_features_", "transition_features_"):
        a, b = getattr(mine, name), getattr(real, name)
        for key in a.keys() | b.keys():
            assert a.get(key, 0.0) == pytest.approx(b.get(key, 0.0), abs=1e-3), key
    if not params.get("c1"):
        assert mine.attributes_ == real.attributes_
        assert (mine.num_attributes_, mine.size_) == (real.num_attributes_, real.size_)
        assert list(mine.state_features_) == list(real.state_features_)
        assert list(mine.transition_features_) == list(real.transition_features_)
    assert [list(p) for p in mine.predict(X)] == [list(p) for p in real.predict(X)]
    assert mine.predict_single(X[0]) == real.predict_single(X[0])
    assert mine.score(X, y) == real.score(X, y)
    for a, b in zip(mine.predict_marginals(X), real.predict_marginals(X), strict=True):
        for p, q in zip(a, b, strict=True):
            assert list(p) == list(q)
            np.testing.assert_allclose(list(p.values()), list(q.values()), rtol=0, atol=1e-4)
    single = mine.predict_marginals_single(X[0])
    assert single == list(mine.predict_marginals(X[:1])[0])
    assert [list(p) for p in single] == [list(p) for p in real.predict_marginals_single(X[0])]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_their_taggers_use_our_models(theirs, words, tmp_path, algorithm):
    X, y = words
    path = str(tmp_path / "model.crfsuite")
    mine = ours.CRF(algorithm, model_filename=path).fit(X, y)
    real = theirs.CRF(model_filename=path)
    assert [list(p) for p in real.predict(X)] == list(mine.predict(X))
    assert mine.classes_ == real.classes_
    a, b = mine.predict_marginals_single(X[0]), real.predict_marginals_single(X[0])
    for p, q in zip(a, b, strict=True):
        np.testing.assert_allclose(list(p.values()), list(q.values()), rtol=0, atol=1e-6)
    back = theirs.CRF(algorithm, model_filename=path).fit(X, y)
    assert list(ours.CRF(model_filename=path).predict(X)) == [list(p) for p in back.predict(X)]


# -------------------------------------------------------------------------------- every algorithm


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("dev", [False, True])
def test_fit_and_what_it_prints(algorithm, dev, capsys):
    crf = ours.CRF(algorithm, verbose=True)
    held = {"X_dev": [WEATHER], "y_dev": [LABELS]} if dev else {}
    assert crf.fit([WEATHER, WEATHER], [LABELS, LABELS], **held) is crf
    lines = capsys.readouterr().out.splitlines()
    assert "loaded 2 sequences of training data" in lines
    iterations = [line for line in lines if line.startswith("Iter ")]
    assert len(iterations) == len(crf.training_log_.iterations)
    assert ("Acc(item/seq)=1.000 1.000" in iterations[-1]) == (dev and algorithm != "ap")
    assert any(line.startswith("rainy ") for line in lines) == dev
    if algorithm != "ap":  # the mean of its weights learns more slowly
        assert crf.predict([WEATHER]).tolist() == [LABELS]
        assert crf.score([WEATHER], [LABELS]) == 1.0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_copies(words, algorithm):
    X, y = words
    crf = ours.CRF(algorithm, max_iterations=20).fit(X, y)
    expected = crf.predict(X).tolist()
    for again in (pickle.loads(pickle.dumps(crf)), copy.deepcopy(crf)):
        assert again.predict(X).tolist() == expected
        assert again.get_params() == crf.get_params()
        assert again.training_log_.last_iteration == crf.training_log_.last_iteration
        assert again.modelfile.name != crf.modelfile.name
    fresh = clone(crf)
    assert fresh.get_params() == crf.get_params()
    assert fresh.classes_ is None
    assert fresh.fit(X, y).predict(X).tolist() == expected


@pytest.mark.parametrize(
    ("algorithm", "params"),
    [
        ("l2sgd", {"calibration_eta": 0.2, "calibration_samples": 10, "c2": 0.1, "delta": 1e-3}),
        ("l2sgd", {"calibration_rate": 1.5, "calibration_candidates": 3, "period": 5}),
        ("pa", {"pa_type": 2, "c": 0.5, "error_sensitive": False, "averaging": False}),
        ("arow", {"variance": 2.0, "gamma": 0.5, "epsilon": 0.01}),
        ("ap", {"max_iterations": 7}),
    ],
)
def test_parameters_of_the_algorithms(theirs, words, algorithm, params):
    X, y = words
    for module in (ours, theirs):
        assert module.CRF(algorithm, **params).fit(X, y).score(X, y) >= 0.95


# --------------------------------------------------------------------------------- scikit-learn


def test_before_fit():
    crf = ours.CRF()
    for name in ("tagger_", "size_", "classes_", "num_attributes_", "attributes_", "training_log_"):
        assert getattr(crf, name) is None
    assert crf.state_features_ is None
    assert crf.transition_features_ is None
    for call in (crf.predict, crf.predict_marginals, crf.predict_single):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call([WEATHER])
    with pytest.raises(NotFittedError):
        check_is_fitted(crf)
    check_is_fitted(crf.fit([WEATHER], [LABELS]))


def test_representation():
    assert repr(ours.CRF(c1=0.1, algorithm="lbfgs")) == "CRF(algorithm='lbfgs', c1=0.1)"
    assert "CRF" in ours.CRF()._repr_html_()


def test_parameters(words):
    crf = ours.CRF(c1=1.0)
    assert crf.set_params(c2=0.5, c1=None).get_params()["c2"] == 0.5
    with pytest.raises(ValueError, match="Invalid parameter 'c3'"):
        crf.set_params(c3=1)
    with pytest.raises(TypeError, match="c3"):
        ours.CRF(c3=1)


def test_searches(words):
    X, y = words
    scorer = make_scorer(metrics.flat_f1_score, average="weighted", labels=["D", "N", "V"])
    crf = ours.CRF(max_iterations=30, all_possible_transitions=True)
    grid = GridSearchCV(crf, {"c1": [0.0, 0.1], "algorithm": ["lbfgs"]}, cv=3, scoring=scorer)
    assert grid.fit(X, y).best_score_ > 0.9
    assert grid.best_estimator_.size_ > 1000
    space = {"c1": scipy.stats.expon(scale=0.5), "c2": scipy.stats.expon(scale=0.05)}
    search = RandomizedSearchCV(
        crf, space, cv=3, n_iter=3, n_jobs=2, scoring=scorer, random_state=0
    )
    with joblib.parallel_config(backend="threading"):  # processes: the tutorial in tests/data
        assert search.fit(X, y).best_score_ > 0.9
    assert set(search.best_params_) == {"c1", "c2"}
    assert pickle.loads(pickle.dumps(search)).predict(X).tolist() == search.predict(X).tolist()


@pytest.mark.parametrize("same_lengths", [False, True])
def test_cross_validation(words, same_lengths, theirs):
    X, y = words
    if same_lengths:
        X, y = [x[:2] for x in X], [labels[:2] for labels in y]
    found = cross_val_predict(ours.CRF(), X, y, cv=4)
    real = cross_val_predict(theirs.CRF(), X, y, cv=4)
    assert (found.shape, found.tolist()) == (real.shape, real.tolist())
    assert metrics.flat_accuracy_score(y, found) > 0.9
    for scoring in (None, scorers.flat_accuracy, scorers.sequence_accuracy):
        assert cross_val_score(ours.CRF(), X, y, cv=4, scoring=scoring).mean() > 0.8


# ------------------------------------------------------------------------------------------- files


def test_a_named_file(tmp_path):
    path = str(tmp_path / "foo.crfsuite")
    crf = ours.CRF(model_filename=path)
    with pytest.raises(FileNotFoundError):
        crf.predict([WEATHER])
    crf.fit([WEATHER], [LABELS])
    assert crf.modelfile.name == path
    assert crf.size_ == os.path.getsize(path)
    other = ours.CRF(model_filename=path)
    assert other.score([WEATHER], [LABELS]) == 1.0
    assert pickle.loads(pickle.dumps(other)).score([WEATHER], [LABELS]) == 1.0
    crf.set_params(model_filename=str(tmp_path / "bar.crfsuite")).fit([WEATHER], [LABELS])
    assert sorted(os.listdir(tmp_path)) == ["bar.crfsuite", "foo.crfsuite"]
    del crf, other
    gc.collect()
    assert len(os.listdir(tmp_path)) == 2


@pytest.mark.parametrize("keep", [False, True])
def test_temporary_files(tmp_path, monkeypatch, keep):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    crf = ours.CRF(keep_tempfiles=keep)
    for _ in range(2):
        crf.fit([WEATHER], [LABELS])
    assert len(os.listdir(tmp_path)) == (2 if keep else 1)
    del crf
    gc.collect()
    assert len(os.listdir(tmp_path)) == (2 if keep else 0)


def test_a_failed_fit_keeps_the_model():
    crf = ours.CRF().fit([WEATHER], [LABELS])
    with pytest.raises(TypeError):
        crf.fit([WEATHER], [[1] * 10])
    assert crf.score([WEATHER], [LABELS]) == 1.0


def test_a_trainer_of_ones_own():
    seen = []

    class Watching(pycrfsuite.Trainer):
        def message(self, message):
            seen.append(message)
            super().message(message)

    ours.CRF(trainer_cls=Watching).fit([WEATHER], [LABELS])
    assert "L-BFGS optimization\n" in seen


def test_generators(words):
    X, y = words
    dev = {"X_dev": (x for x in X[:5]), "y_dev": (labels for labels in y[:5])}
    crf = ours.CRF().fit((iter(x) for x in X), (iter(labels) for labels in y), **dev)
    listed = ours.CRF().fit(X, y, X[:5], y[:5])
    assert crf.state_features_ == listed.state_features_
    assert crf.transition_features_ == listed.transition_features_
    logs = [c.training_log_.last_iteration["item_accuracy"] for c in (crf, listed)]
    assert logs[0] == logs[1]
    assert crf.predict(iter(x) for x in X).tolist() == listed.predict(X).tolist()
    assert list(crf.predict_marginals(x for x in X)) == list(listed.predict_marginals(X))


@pytest.mark.parametrize(("drop_x", "drop_y", "which"), [(1, 0, "X"), (0, 1, "y")])
def test_generators_of_different_lengths(words, drop_x, drop_y, which):
    X, y = words
    with pytest.raises(ValueError, match=f"{which} ends after 23"):
        ours.CRF().fit((x for x in X[: 24 - drop_x]), (labels for labels in y[: 24 - drop_y]))


def test_empty_batches(words, theirs):
    for module in (ours, theirs):
        crf = module.CRF().fit(*words)
        for found in (crf.predict([]), crf.predict_marginals([])):
            assert (found.shape, found.dtype) == ((0,), np.dtype(object))
        for found in (crf.predict([[], []]), crf.predict_marginals([[], []])):
            assert found.shape == (2, 0)
        assert crf.predict_single([]) == crf.predict_marginals_single([]) == []


# --------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ([WEATHER], [LABELS[:3]], ValueError, r"X\[0\], y\[0\]: .*\|x\| = 10, \|y\| = 3"),
        ([WEATHER, WEATHER], [LABELS], ValueError, "same number of sequences, got 2 and 1"),
        ([WEATHER], [[1] * 10], TypeError, r"labels must be str, got int in yseq\[0\]"),
        ([WEATHER, ["ab"]], [LABELS, ["x"]], TypeError, r"X\[1\].*xseq\[0\] must be a dict or"),
        ([], [], ValueError, "X must have items to train on"),
        ([[]], [[]], ValueError, "X must have items to train on"),
    ],
)
def test_bad_data(X, y, error, message):
    with pytest.raises(error, match=message):
        ours.CRF().fit(X, y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"algorithm": "lbgfs"}, "algorithm must be one of lbfgs, l2sgd, ap, pa, arow"),
        ({"algorithm": "arow", "c1": 0.1}, "Parameter not found: c1; arow has"),
        ({"c1": -1}, "c1 must be a number of at least 0, got -1"),
        ({"max_iterations": "many"}, "max_iterations must be an integer"),
        ({"all_possible_states": "yes"}, "feature.possible_states must be True or False"),
    ],
)
def test_bad_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        ours.CRF(**params).fit([WEATHER], [LABELS])


def test_half_of_the_dev_data():
    with pytest.raises(ValueError, match="both X_dev and y_dev"):
        ours.CRF().fit([WEATHER], [LABELS], [WEATHER])
    with pytest.raises(ValueError, match="X_dev and y_dev must have the same number"):
        ours.CRF().fit([WEATHER], [LABELS], [WEATHER], [])


# ----------------------------------------------------------------------------------------- metrics

TRUE, FOUND = [["x", "z", "y"], ["x", "x"], []], [["y", "z", "y"], ["x", "y"], []]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("flat_accuracy_score", {}),
        ("flat_precision_score", {"average": "micro"}),
        ("flat_recall_score", {"average": "weighted", "labels": ["x", "y"]}),
        ("flat_f1_score", {"average": "macro"}),
        ("flat_f1_score", {"average": None}),
        ("flat_fbeta_score", {"beta": 0.5, "average": "macro"}),
        ("flat_classification_report", {"labels": ["x", "y"], "digits": 3}),
        ("flat_classification_report", {"output_dict": True}),
    ],
)
def test_metrics(theirs, name, arguments):
    real = importlib.import_module("sklearn_crfsuite.metrics")
    mine = getattr(metrics, name)(TRUE, FOUND, **arguments)
    expected = getattr(real, name)(TRUE, FOUND, **arguments)
    np.testing.assert_equal(mine, expected)
    as_array = np.empty(3, dtype=object)
    as_array[:] = FOUND
    np.testing.assert_equal(getattr(metrics, name)(TRUE, as_array, **arguments), expected)


def test_sequence_accuracy():
    assert metrics.sequence_accuracy_score(TRUE, FOUND) == 1 / 3
    assert metrics.sequence_accuracy_score([], []) == 0.0
    # Sequences of one length: theirs compares labels here, not sequences.
    assert (
        metrics.sequence_accuracy_score([["a", "b"], ["c", "d"]], [["a", "b"], ["c", "x"]]) == 0.5
    )


def test_metrics_of_sequences_that_do_not_match():
    with pytest.raises(ValueError, match=r"y_true\[1\] and y_pred\[1\] must have the same"):
        metrics.flat_accuracy_score([["a"], ["b", "c"]], [["a"], ["b"]])
    assert metrics.sequence_accuracy_score([["a"], ["b", "c"]], [["a"], ["b"]]) == 0.5
    for function in (metrics.flat_accuracy_score, metrics.sequence_accuracy_score):
        with pytest.raises(ValueError, match="y_true and y_pred must have the same number"):
            function([["a"]], [["a"], ["b"]])
