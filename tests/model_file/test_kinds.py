"""Model files of classifiers, graphs, grids, templates and matchings."""

import copy

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from chordal import (
    CRFClassifier,
    GraphCRF,
    GridCRF,
    MatchingModel,
    TemplateCRF,
)
from chordal.model_file import load, save
from chordal.solvers.sgd import SGD, StepSchedule

from .conftest import CLASSIFIERS, MODELS, TABLE, TWO, same


@pytest.fixture(scope="module", params=MODELS)
def problem(request):
    model, X, y, functions = MODELS[request.param]
    return clone(model).fit(X, y), X, y, functions


def answers(model, X, y):
    """All that a model says."""
    out = {
        "report": repr(model.fit_report_),  # which may hold NaN
        "objective": [model.objective_, model.n_iter_],
        "inference": model.inference_.name,
        "weights": model.weights_,
    }
    if isinstance(model, MatchingModel):
        out["coef"] = [model.coef_, model.no_target_, model.score(X, y)]
        return {**out, "predict": model.predict(X)}
    out |= {
        "mpm": model.predict(X, method="mpm"),
        "marginals": model.predict_marginals(X),
        "classes": model.classes_,
        "templates": [model.template_weights(k.name) for k in model.layout_.templates],
    }
    if "map" in type(model.inference_).answers:
        out["predict"] = model.predict(X)
    if model.inference in ("auto", "junction_tree"):
        out["k best"] = model.k_best(X, 3)
        out["likelihood"] = model.log_likelihood(X, y) if model.ignore_label is None else None
        out["samples"] = model.set_params(random_state=4).sample(X, 2)
    return out


def test_a_loaded_model_answers_as_the_saved_one(problem, tmp_path):
    model, X, y, functions = problem
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model", type(model), **functions)
    before, after = answers(model, X, y), answers(loaded, X, y)
    for name in before:
        assert same(before[name], after[name]), name


def test_parameters_come_back_with_the_settings_of_objects(problem, tmp_path):
    model, _, _, functions = problem
    model = copy.copy(model).set_params(random_state=0)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model", **functions)
    mine, theirs = model.get_params(), loaded.get_params()
    for name in mine.keys() - functions.keys() - {"inference", "objective"}:
        assert mine[name] == theirs[name], name
    for name in ("inference", "objective"):
        assert type(mine[name]) is type(theirs[name])
        if not isinstance(mine[name], str):
            assert repr(mine[name]) == repr(theirs[name])


def test_what_is_loaded_is_saved_to_the_same_bytes(problem, tmp_path):
    model, _, _, functions = problem
    save(model, tmp_path / "a")
    save(load(tmp_path / "a", **functions), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("kind", ["graph", "graph, named", "grid, contrast", "templates"])
def test_training_goes_on_as_if_the_model_had_never_left(kind, tmp_path):
    model, X, y, functions = MODELS[kind]
    kept = clone(model).set_params(max_iter=10, warm_start=True).fit(X[:2], y[:2])
    save(kept, tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    loaded = load(tmp_path / "model", **functions)
    for own in (kept, loaded):
        own.fit(X, y)
    assert same(kept.weights_, loaded.weights_)
    assert same(kept.predict(X), loaded.predict(X))
    assert (tmp_path / "model").read_bytes() == before


# ----------------------------------------------------------------------------------- classifiers


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_loaded_classifier_answers_as_the_saved_one(kind, tmp_path):
    model, X, y = CLASSIFIERS[kind]
    fitted = clone(model).fit(X, y)
    save(fitted, tmp_path / "model")
    loaded = load(tmp_path / "model", CRFClassifier)
    for name in ("coef_", "intercept_", "classes_", "n_features_in_", "n_iter_"):
        assert same(getattr(fitted, name), getattr(loaded, name)), name
    for ask in ("predict", "predict_proba", "decision_function"):
        assert same(getattr(fitted, ask)(X), getattr(loaded, ask)(X)), ask
    assert loaded.get_params() == fitted.get_params()
    save(loaded, tmp_path / "again")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "again").read_bytes()
    loaded.coef_[:] = 0.0  # a copy of its own: what is mapped cannot be written


def test_a_classifier_keeps_the_names_of_its_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TABLE, columns=["a", "b", "c"])
    save(CRFClassifier().fit(frame, TWO), tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[["b", "a", "c"]])


def test_a_solver_keeps_its_settings(tmp_path):
    solver = SGD(max_iter=4, schedule=StepSchedule(rate=0.1, slope=1.0), random_state=2)
    save(CRFClassifier(solver=solver).fit(TABLE, TWO), tmp_path / "model")
    loaded = load(tmp_path / "model").solver
    assert vars(loaded) == vars(solver)


def test_unfitted_models_are_refused(tmp_path):
    for model in (CRFClassifier(), GraphCRF(), GridCRF(), TemplateCRF([]), MatchingModel()):
        with pytest.raises(NotFittedError):
            save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())
