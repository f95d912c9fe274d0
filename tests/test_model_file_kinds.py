"""Model files of classifiers, graphs, grids, templates and matchings."""

import copy
import itertools
import json
import struct

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import chordal
from chordal import (
    ChainCRF,
    CliqueTemplate,
    CRFClassifier,
    GraphCRF,
    GridCRF,
    MatchingModel,
    ModelFileError,
    TemplateCRF,
)
from chordal.costs.hamming import Hamming
from chordal.inference.loopy_bp import LoopyBPInference
from chordal.inference.tree_reweighted import TreeReweightedInference
from chordal.model_file import load, save
from chordal.model_file._container import _checksum
from chordal.model_file.kinds import KINDS
from chordal.objectives.hinge import Hinge
from chordal.solvers._schedule import Schedule
from chordal.solvers.sgd import Sgd

RNG = np.random.default_rng(5)

# ------------------------------------------------------------------------------------- examples

NODES = [RNG.normal(size=(n, 3)) for n in (6, 4, 5)]
EDGES = [np.array([(i, (i + 1) % len(x)) for i in range(len(x))]) for x in NODES]
OF_EDGES = [RNG.normal(size=(len(e), 2)) for e in EDGES]
LABELS = [["abc"[int(v > 0) + (v > 1)] for v in x[:, 0]] for x in NODES]
GRAPHS = list(zip(NODES, EDGES, strict=True))
OBSERVED = list(zip(NODES, EDGES, OF_EDGES, strict=True))
NAMED = [
    ([{"w": str(int(v > 0)), "x": float(v)} for v in x[:, 0]], edges)
    for x, edges in zip(NODES, EDGES, strict=True)
]
SPARSE = [(sp.csr_array(np.round(x)), edges) for x, edges in GRAPHS]
IMAGES = [RNG.normal(size=(3, 4, 2)) for _ in range(3)]
PIXELS = [(image[..., 0] > 0).astype(np.int16) for image in IMAGES]
VOLUMES = [RNG.normal(size=(2, 2, 2, 1)) for _ in range(3)]
WORDS = [["the", "cat", "sees", "the", "cat"], ["a", "dog"], ["the", "dog", "sees"]]
TAGS = [["D", "N", "V", "D", "N"], ["D", "N"], ["D", "N", "V"]]
TARGETS = [np.array([0, -1, 2]), np.array([1, 0]), np.array([2, -1, 0, 1])]
PAIRS = [RNG.normal(size=(len(y), 3, 2)) + (y[:, None] == np.arange(3))[..., None] for y in TARGETS]


def attributes(x):
    return [[word, word[0]] for word in x]


def runs(n):
    return lambda x: np.arange(max(0, len(x) - n + 1))[:, None] + np.arange(n)


def both_words(x):
    return [[f"{a}|{b}"] for a, b in itertools.pairwise(x)]


def templates():
    return [
        CliqueTemplate("words", features=attributes),
        CliqueTemplate("pairs", runs(2), both_words, tables="symmetric"),
        CliqueTemplate("triplets", runs(3), order=3, tables="potts"),
    ]


def differences(a, b):
    return np.abs(a - b)


def near(a, b):
    return -np.abs(np.subtract.outer(a, b))[:, :, None]


def by_number(y):
    return [np.array([ord(v) for v in own], dtype=np.uint8) for own in y]


MODELS = {
    "graph": (GraphCRF(l2=0.3), GRAPHS, LABELS, {}),
    "graph, observed": (GraphCRF(tables="full", bias=False), OBSERVED, LABELS, {}),
    "graph, named": (GraphCRF("pseudo_likelihood", l1=0.1), NAMED, LABELS, {}),
    "graph, sparse": (GraphCRF(tables="potts", void="c"), SPARSE, by_number(LABELS), {}),
    "graph, groups": (
        GraphCRF(l2={"edges": 3.0}, class_weight={"a": 2.0, "b": 1.0, "c": 1.0}, freeze=("edges",),
                 objective=Hinge(Hamming(normalize=True)), solver="gradient_descent", max_iter=5),
        GRAPHS, LABELS, {},
    ),
    "graph, approximate": (
        GraphCRF(inference=LoopyBPInference(damping=0.3, max_iter=20)), GRAPHS, LABELS, {},
    ),
    "graph, trees": (
        GraphCRF("piecewise", inference=TreeReweightedInference(3, random_state=2)), GRAPHS,
        LABELS, {},
    ),
    "grid": (GridCRF(), IMAGES, PIXELS, {}),
    "grid, directions": (GridCRF(directions=True, tables="full", neighbours=8), IMAGES, PIXELS, {}),
    "grid, contrast": (GridCRF(contrast="auto", contrast_columns=[1]), IMAGES, PIXELS, {}),
    "grid, given contrast": (GridCRF(contrast=0.5, bias=False), IMAGES, PIXELS, {}),
    "grid, function": (
        GridCRF(edge_features=differences, tables="potts"), IMAGES, PIXELS,
        {"edge_features": differences},
    ),
    "volume": (GridCRF(neighbours=6), VOLUMES, [v[..., 0] > 0 for v in VOLUMES], {}),
    "templates": (TemplateCRF(templates()), WORDS, TAGS, {"templates": templates()}),
    "all states": (
        TemplateCRF(templates(), states="all", inference="junction_tree"), WORDS, TAGS,
        {"templates": templates()},
    ),
    "matching": (MatchingModel(l2=0.1, max_iter=20), PAIRS, TARGETS, {}),
    "matching, function": (
        MatchingModel("perceptron", "sgd", features=near, l2=0.1, max_iter=3, random_state=0),
        [([1.0, 5.0], [5.2, 1.1]), ([3.0, 9.0], [2.8])], [[1, 0], [0, -1]], {"features": near},
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=MODELS)
def problem(request):
    model, X, y, functions = MODELS[request.param]
    return clone(model).fit(X, y), X, y, functions


def same(a, b):
    """Equal to the last bit and down to the types."""
    if isinstance(a, np.ndarray) and a.dtype == object:
        return b.dtype == object and same(a.tolist(), b.tolist())
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return bool(a == b)


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
        "templates": [model.template_weights(k.name) for k in model.features_.layouts],
    }
    if "map" in type(model.inference_).answers:
        out["predict"] = model.predict(X)
    if model.inference in ("auto", "junction_tree"):
        out["k best"] = model.k_best(X, 3)
        out["likelihood"] = model.log_likelihood(X, y) if model.void is None else None
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

TABLE = RNG.normal(size=(40, 3))
TWO = (TABLE[:, 0] > 0).astype(int)
THREE = TWO + (TABLE[:, 1] > 0.5)
CLASSIFIERS = {
    "two": (CRFClassifier(), TABLE, TWO),
    "three": (CRFClassifier("crammer_singer", "adam", max_iter=5, random_state=0), TABLE, THREE),
    "strings": (CRFClassifier(fit_intercept=False), TABLE, np.array(list("abé"))[THREE]),
    "objects": (CRFClassifier(), TABLE, np.array(["a", "b"], dtype=object)[TWO]),
    "floats": (CRFClassifier(l1=0.2), TABLE, THREE.astype(np.float32)),
    "bools": (CRFClassifier(class_weight="balanced"), TABLE, TWO == 1),
    "small numbers": (CRFClassifier(class_weight={0: 1, 1: 3}), TABLE, TWO.astype(np.uint8)),
    "sparse": (CRFClassifier("one_vs_rest"), sp.csr_array(np.round(TABLE)), THREE),
}


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
    solver = Sgd(max_iter=4, schedule=Schedule(rate=0.1, slope=1.0), random_state=2)
    save(CRFClassifier(solver=solver).fit(TABLE, TWO), tmp_path / "model")
    loaded = load(tmp_path / "model").solver
    assert vars(loaded) == vars(solver)


def test_unfitted_models_are_refused(tmp_path):
    for model in (CRFClassifier(), GraphCRF(), GridCRF(), TemplateCRF([]), MatchingModel()):
        with pytest.raises(NotFittedError):
            save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------- functions, other kinds


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The bytes of one model of each kind."""
    path = tmp_path_factory.mktemp("models") / "model"
    raw = {}
    kinds = {
        "GraphCRF": MODELS["graph, named"],
        "GridCRF": MODELS["grid, contrast"],
        "TemplateCRF": MODELS["templates"],
        "MatchingModel": MODELS["matching"],
        "CRFClassifier": (*CLASSIFIERS["three"], {}),
        "ChainCRF": (ChainCRF(), [[["a"], ["b"]]], [["A", "B"]], {}),
    }
    for name, (model, X, y, functions) in kinds.items():
        save(clone(model).fit(X, y), path)
        raw[name] = (path.read_bytes(), X, functions)
    return raw


def test_there_is_a_file_of_every_kind(files):
    assert sorted(files) == sorted(KINDS.resolve(name).estimator.__name__ for name in KINDS)


@pytest.fixture
def written(tmp_path):
    def done(raw):
        path = tmp_path / "model"
        path.write_bytes(raw)
        return path

    return done


@pytest.mark.parametrize("kind", ["GraphCRF", "GridCRF", "MatchingModel", "CRFClassifier"])
def test_a_file_of_another_kind_is_refused_by_name(kind, files, written):
    path = written(files["ChainCRF"][0])
    with pytest.raises(ModelFileError, match=rf"model: holds a ChainCRF, not a {kind}$"):
        load(path, getattr(chordal, kind))
    path = written(files[kind][0])
    with pytest.raises(ModelFileError, match=rf"model: holds a {kind}, not a ChainCRF$"):
        load(path, ChainCRF)


def test_functions_are_asked_for(files, written, tmp_path):
    path = written(files["TemplateCRF"][0])
    with pytest.raises(ModelFileError, match=r"model: the model has templates.*load\(path, templ"):
        load(path)
    grid, X, y, _ = MODELS["grid, function"]
    save(clone(grid).fit(X, y), path)
    with pytest.raises(ModelFileError, match=r"load\(path, edge_features=…\)"):
        load(path, GridCRF)
    with pytest.raises(ModelFileError, match="edge_features must be a function"):
        load(path, GridCRF, edge_features=3)
    crf = ChainCRF(transition_features=lambda x: x[1:]).fit(NODES, LABELS)
    save(crf, path)
    with pytest.raises(ModelFileError, match=r"load\(path, transition_features=…\)"):
        load(path)
    loaded = load(path, transition_features=lambda x: x[1:])
    assert same(crf.predict_marginals(NODES), loaded.predict_marginals(NODES))


@pytest.mark.parametrize("kind", ["ChainCRF", "GraphCRF", "GridCRF", "MatchingModel"])
def test_functions_that_the_model_does_not_have_are_refused(kind, files, written):
    path = written(files[kind][0])
    for name in ("features", "templates", "edge_features", "other"):
        with pytest.raises(ModelFileError, match=f"{name} was given, which the {kind} does not"):
            load(path, **{name: differences})


def changed_template(k, **changes):
    given = templates()
    values = {
        name: getattr(given[k], name)
        for name in ("name", "cliques", "features", "order", "tables", "bias")
    }
    given[k] = CliqueTemplate(**{**values, **changes})
    return given


OTHERS = [
    (templates()[:2], "its templates are 'words', 'pairs', 'triplets', in this order; got 'words'"),
    (templates()[::-1], "in this order; got 'triplets', 'pairs', 'words'"),
    (changed_template(1, name="skip"), "got 'words', 'skip', 'triplets'"),
    (changed_template(1, tables="full"), "template 'pairs' must have tables='symmetric'"),
    (changed_template(1, bias=False), "template 'pairs' must have bias=True"),
    (changed_template(2, order=2), "template 'triplets' must have order=3"),
    (changed_template(1, features=None), "template 'pairs' must have a function features"),
    (changed_template(2, features=both_words), "'triplets' must have no function features"),
    ([], "templates must be a list of CliqueTemplate"),
    ("words", "templates must be a list of CliqueTemplate"),
    ([3], "templates must be of class CliqueTemplate"),
]


@pytest.mark.parametrize(("given", "message"), OTHERS, ids=[m[:30] for _, m in OTHERS])
def test_other_templates_are_refused(given, message, files, written):
    with pytest.raises(ModelFileError, match=message):
        load(written(files["TemplateCRF"][0]), templates=given)


def test_a_function_with_other_rows_is_refused_when_it_is_used(tmp_path):
    grid, X, y, _ = MODELS["grid, function"]
    save(clone(grid).fit(X, y), tmp_path / "model")
    loaded = load(tmp_path / "model", edge_features=lambda a, b: np.ones((len(a), 5)))
    with pytest.raises(ValueError, match=r"features of template 'edges'.*must have 2 columns"):
        loaded.predict(X)


# ------------------------------------------------------------------------- damaged and hostile


def parts_of(raw):
    length = struct.unpack("<Q", raw[:8])[0]
    table = json.loads(raw[8 : 8 + length])
    metadata = table.pop("__metadata__")
    return table, metadata, json.loads(metadata["model"]), raw[8 + length :]


def joined(table, metadata, facts, body):
    """A file with a right checksum."""
    text = json.dumps(facts)
    dtypes = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "U32": "u4"}
    blocks = [
        np.frombuffer(body[a:b], "<" + dtypes.get(entry["dtype"], "u1"))
        for entry in table.values()
        for a, b in [entry["data_offsets"]]
    ]
    metadata = {**metadata, "model": text, "checksum": _checksum(text, table, blocks)}
    header = json.dumps({"__metadata__": metadata, **table}).encode()
    header += b" " * (-(8 + len(header)) % 64)
    return struct.pack("<Q", len(header)) + header + body


NEW_KINDS = ["GraphCRF", "GridCRF", "TemplateCRF", "MatchingModel", "CRFClassifier"]


@pytest.mark.parametrize("kind", NEW_KINDS)
def test_the_parts_put_together_again_are_a_model(kind, files, written):
    """Without this, everything below could be refused for a fault of the test."""
    raw, X, functions = files[kind]
    assert same(
        load(written(raw), **functions).predict(X),
        load(written(joined(*parts_of(raw))), **functions).predict(X),
    )


@pytest.mark.parametrize("kind", NEW_KINDS)
def test_a_file_cut_anywhere_is_refused(kind, files, written):
    raw, _, functions = files[kind]
    for length in [*range(0, len(raw), 23), len(raw) - 1]:
        with pytest.raises(ModelFileError, match=r"empty|truncated|not a chordal model file"):
            load(written(raw[:length]), **functions)


@pytest.mark.parametrize("kind", NEW_KINDS)
def test_missing_facts_are_named(kind, files, written):
    raw, _, functions = files[kind]
    table, metadata, facts, body = parts_of(raw)
    for key in facts.keys() - {"functions"}:
        fewer = {k: v for k, v in facts.items() if k != key}
        with pytest.raises(ModelFileError, match=f"not a valid model: no '{key}'"):
            load(written(joined(table, metadata, fewer, body)), **functions)


FACTS = [
    ("GraphCRF", ("labels", "labels"), ["a", "b"], "."),
    ("GraphCRF", ("labels", "labels"), [str(k) for k in range(9000)], r"needs 9000\^1 scores"),
    ("GraphCRF", ("parameters", "tables"), "round", "tables must be one of"),
    ("GraphCRF", ("parameters", "tables"), "potts", "'edges' must have tables='symmetric'"),
    ("GraphCRF", ("parameters", "bias"), False, "must have bias=True"),
    ("GraphCRF", ("parameters", "l2"), {"leaves": 1.0}, "l2 names the group 'leaves'"),
    ("GraphCRF", ("parameters", "freeze"), ["leaves"], "freeze names the group 'leaves'"),
    ("GraphCRF", ("parameters", "n_jobs"), "all", "n_jobs"),
    ("GraphCRF", ("parameters", "inference"), {"name": "loopy_bp", "damping": 7}, "damping must"),
    ("GraphCRF", ("parameters", "inference"), {"name": "loopy_bp", "x": 7}, "unexpected keyword"),
    ("GraphCRF", ("parameters", "inference"), {"name": "os"}, "inference must be one of"),
    ("GraphCRF", ("inference",), "nothing", "inference must be one of"),
    ("GraphCRF", ("templates",), [], "."),
    ("GraphCRF", ("templates",), None, "."),
    ("GraphCRF", ("templates",), {"0": 1}, "."),
    ("GraphCRF", ("templates", 0, "rows"), None, "'nodes' must have rows"),
    ("GraphCRF", ("templates", 0, "rows", "kind"), "template", "."),
    ("GraphCRF", ("templates", 0, "rows", "kind"), "dense", "."),
    ("GraphCRF", ("templates", 0, "rows", "kind"), "pickle", "no 'pickle'"),
    ("GraphCRF", ("templates", 0, "name"), "leaves", "its templates are 'leaves', 'edges'"),
    ("GraphCRF", ("templates", 1, "order"), 10**9, "'edges' must have order=1000000000"),
    ("GraphCRF", ("templates", 1, "features"), True, "."),
    ("GridCRF", ("contrast",), None, "there must be a contrast"),
    ("GridCRF", ("contrast",), float("nan"), "contrast must be a number"),
    ("GridCRF", ("contrast",), "x", "contrast must be a number"),
    ("GridCRF", ("parameters", "contrast"), None, "there must be a contrast"),
    ("GridCRF", ("parameters", "contrast_columns"), ["x"], r"contrast_columns\[0\] must be"),
    ("GridCRF", ("parameters", "contrast_columns"), [-1], r"contrast_columns\[0\] must be"),
    ("GridCRF", ("parameters", "neighbours"), 5, "neighbours must be 4 or 8"),
    ("GridCRF", ("parameters", "neighbours"), [4], "neighbours must be 4 or 8"),
    ("GridCRF", ("parameters", "directions"), True, "its templates are 'pixels', 'edges'"),
    ("GridCRF", ("templates", 0, "rows", "n_columns"), 10**30, "too large"),
    ("GridCRF", ("templates", 0, "rows", "n_columns"), 10**15, "there must be"),
    ("GridCRF", ("templates", 0, "rows", "n_columns"), 3, "there must be"),
    ("GridCRF", ("templates", 0, "rows", "n_columns"), -2, "n_columns must be an integer"),
    ("TemplateCRF", ("functions",), None, "functions must be some of"),
    ("TemplateCRF", ("functions",), [], "templates was given"),
    ("TemplateCRF", ("functions",), ["print"], "functions must be some of"),
    ("TemplateCRF", ("templates", 2, "order"), 2, "'triplets' must have order=2"),
    ("TemplateCRF", ("labels", "labels"), [str(k) for k in range(500)], r"needs 500\^1 scores"),
    ("MatchingModel", ("n_features",), 3, "there must be 4 weights"),
    ("MatchingModel", ("n_features",), 10**30, "there must be"),
    ("MatchingModel", ("n_features",), 0, "n_features must be an integer of at least 1"),
    ("MatchingModel", ("n_features",), "2", "n_features must be an integer"),
    ("MatchingModel", ("parameters", "l2"), None, "l2 must be a number"),
    ("MatchingModel", ("inference",), None, "inference must be one of"),
    ("CRFClassifier", ("classes", "labels"), [0, 1], "there must be 4 weights"),
    ("CRFClassifier", ("classes", "labels"), [0], "classes must be two or more"),
    ("CRFClassifier", ("classes", "labels"), [2, 1, 0], "in order"),
    ("CRFClassifier", ("classes", "labels"), [0, 1, "a"], "."),
    ("CRFClassifier", ("classes", "dtype"), "<M8", "dtype of labels must be"),
    ("CRFClassifier", ("n_features",), 10**30, "there must be"),
    ("CRFClassifier", ("n_features",), 2.0, "n_features must be an integer"),
    ("CRFClassifier", ("feature_names",), ["a"], "there must be 3 feature_names"),
    ("CRFClassifier", ("feature_names",), [1, 2, 3], "feature_names must be a list of str"),
    ("CRFClassifier", ("parameters", "l1"), float("nan"), "l1 must be a number"),
    ("CRFClassifier", ("parameters", "solver"), {"name": "sgd", "schedule": {"rate": -1}}, "rate"),
    ("CRFClassifier", ("class",), "GraphCRF", "."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "place", "value", "message"),
    [pytest.param(*row, id=f"{row[0]} {row[1]}={str(row[2])[:20]}") for row in FACTS],
)
def test_wrong_facts_are_refused_in_spite_of_a_right_checksum(
    kind, place, value, message, files, written
):
    raw, _, functions = files[kind]
    table, metadata, facts, body = parts_of(raw)
    at = facts
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    with pytest.raises(ModelFileError, match=message):
        load(written(joined(table, metadata, facts, body)), **functions)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("kind", NEW_KINDS)
def test_weights_that_are_no_numbers_are_refused(kind, value, files, written):
    raw, _, functions = files[kind]
    table, metadata, facts, body = parts_of(raw)
    begin = table["weights"]["data_offsets"][0]
    assert table["weights"]["dtype"] == "F64"
    body = body[:begin] + struct.pack("<d", value) + body[begin + 8 :]
    with pytest.raises(ModelFileError, match="weights must be numbers"):
        load(written(joined(table, metadata, facts, body)), **functions)


@pytest.mark.parametrize("kind", NEW_KINDS)
def test_changed_bytes_are_refused_or_make_a_model_that_answers(kind, files, written):
    """Under a sanitizer this also shows that no index leads outside."""
    raw, X, functions = files[kind]
    table, metadata, facts, body = parts_of(raw)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(150):
        changed = bytearray(body)
        for at in rng.integers(len(body), size=2):
            changed[at] = rng.integers(256)
        try:
            model = load(written(joined(table, metadata, facts, bytes(changed))), **functions)
        except ModelFileError:
            refused += 1
            continue
        model.predict(X)
    assert refused < 150
