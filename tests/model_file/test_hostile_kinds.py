"""Files of other kinds, without their functions, damaged or hostile: a clear error."""

import json
import struct

import numpy as np
import pytest
from sklearn.base import clone

import chordal
from chordal import (
    ChainCRF,
    CliqueTemplate,
    GridCRF,
    ModelFileError,
)
from chordal._container import _checksum
from chordal.estimators import ESTIMATORS, BaseCRF
from chordal.model_file import load, save

from .conftest import LABELS, MODELS, NODES, both_words, differences, same, templates

# ------------------------------------------------------------------------- functions, other kinds


def test_there_is_a_file_of_every_kind(files):
    classes = [ESTIMATORS.get(name) for name in ESTIMATORS]
    assert sorted(files) == sorted(c.__name__ for c in classes if issubclass(c, BaseCRF))


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
        with pytest.raises(ModelFileError, match=f"{name} was given, but the {kind} does not"):
            load(path, **{name: differences})


def changed_template(k, **changes):
    given = templates()
    values = {
        name: getattr(given[k], name)
        for name in ("name", "cliques", "features", "order", "tables", "fit_intercept")
    }
    given[k] = CliqueTemplate(**{**values, **changes})
    return given


OTHERS = [
    (templates()[:2], "its templates are 'words', 'pairs', 'triplets', in this order; got 'words'"),
    (templates()[::-1], "in this order; got 'triplets', 'pairs', 'words'"),
    (changed_template(1, name="skip"), "got 'words', 'skip', 'triplets'"),
    (changed_template(1, tables="full"), "template 'pairs' must have tables='symmetric'"),
    (changed_template(1, fit_intercept=False), "template 'pairs' must have fit_intercept=True"),
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


NEW_KINDS = [
    "GraphCRF",
    "GridCRF",
    "TemplateCRF",
    "TypedGraphCRF",
    "MatchingModel",
    "CRFClassifier",
    "MultiLabelCRF",
]


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
    ("GraphCRF", ("labels", "labels"), [str(k) for k in range(9000)], "tables of 9000 scores"),
    ("GraphCRF", ("parameters", "tables"), "round", "tables must be one of"),
    ("GraphCRF", ("parameters", "tables"), "potts", "'edges' must have tables='symmetric'"),
    ("GraphCRF", ("parameters", "fit_intercept"), False, "must have fit_intercept=True"),
    ("GraphCRF", ("parameters", "l2"), {"leaves": 1.0}, "l2 names an unknown group"),
    ("GraphCRF", ("parameters", "freeze"), ["leaves"], "freeze names an unknown group"),
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
    ("GridCRF", ("contrast",), None, "contrast must be stored if and only if"),
    ("GridCRF", ("contrast",), float("nan"), "contrast must be a number"),
    ("GridCRF", ("contrast",), "x", "contrast must be a number"),
    ("GridCRF", ("parameters", "contrast"), None, "contrast must be stored if and only if"),
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
    ("TemplateCRF", ("labels", "labels"), [str(k) for k in range(500)], "tables of 500 scores"),
    ("TypedGraphCRF", ("labels", "types"), ["v", "x"], "types of labels must be"),
    ("TypedGraphCRF", ("labels", "types"), "vw", "must have types, and a list of labels for each"),
    ("TypedGraphCRF", ("labels", "kinds"), [0, 1], "must name the type of every label"),
    ("TypedGraphCRF", ("labels", "kinds"), [9] * 7, "must be the number of each label's type"),
    ("TypedGraphCRF", ("labels", "kinds"), [-1] * 7, "must be the number of each label's type"),
    ("TypedGraphCRF", ("labels", "each"), [["a", "a"], [1]], "a label occurs twice"),
    ("TypedGraphCRF", ("labels", "each"), [["a"], {}], "."),
    ("TypedGraphCRF", ("parameters", "node_types"), ["v"], "must be a pair of 'v'"),
    ("TypedGraphCRF", ("parameters", "edge_types"), [["v", "v"]], "an unknown group .*'v-w'"),
    ("TypedGraphCRF", ("templates", 3, "types"), ["v", "v"], "'v-w' must have types="),
    ("MatchingModel", ("templates", 0, "rows", "n_columns"), 3, "there must be 4 weights"),
    ("MatchingModel", ("templates", 0, "rows", "n_columns"), 10**30, "."),
    ("MatchingModel", ("templates", 0, "rows", "n_columns"), 0, "."),
    ("MatchingModel", ("templates", 0, "rows", "n_columns"), "2", "n_columns must be an integer"),
    ("MatchingModel", ("templates", 0, "labelwise"), False, "'pairs' must have labelwise=False"),
    ("MatchingModel", ("parameters", "l2"), None, "l2 must be a number"),
    ("MatchingModel", ("inference",), None, "inference must be one of"),
    ("CRFClassifier", ("labels", "labels"), [0, 1], "must increase, from 0 to 0"),
    ("CRFClassifier", ("labels", "labels"), [0], "must increase, from 0 to 0"),
    ("CRFClassifier", ("labels", "labels"), [2, 1, 0], "in order"),
    ("CRFClassifier", ("labels", "labels"), [0, 1, "a"], "."),
    ("CRFClassifier", ("labels", "dtype"), "<M8", "dtype of labels must be"),
    ("CRFClassifier", ("templates", 0, "rows", "n_columns"), 10**30, "."),
    ("CRFClassifier", ("templates", 0, "rows", "n_columns"), 2.0, "n_columns must be an int"),
    ("CRFClassifier", ("feature_names",), ["a"], "there must be 3 feature_names"),
    ("CRFClassifier", ("feature_names",), [1, 2, 3], "feature_names must be a list of str"),
    ("CRFClassifier", ("parameters", "l1"), float("nan"), "l1 must be a number"),
    ("CRFClassifier", ("parameters", "solver"), {"name": "sgd", "schedule": {"rate": -1}}, "rate"),
    ("CRFClassifier", ("class",), "GraphCRF", "."),
    ("MultiLabelCRF", ("labels", "labels"), [0, 2], "labels must be 0 and 1"),
    ("MultiLabelCRF", ("label_names",), ["a", "a", "b"], "list of different labels"),
    ("MultiLabelCRF", ("label_names",), ["a", "b"], "."),
    ("MultiLabelCRF", ("label_names",), [["a"], "b", "c"], "list of different labels"),
    ("MultiLabelCRF", ("edges",), [[0, 1], [0, 3]], "labels from 0 to 2"),
    ("MultiLabelCRF", ("edges",), [[0, 1], [0, 10**30]], "."),
    ("MultiLabelCRF", ("edges",), [[0, 1], [2, 1]], "with a later one"),
    ("MultiLabelCRF", ("edges",), [[0, 1], [0, 1]], "twice"),
    ("MultiLabelCRF", ("edges",), [[0, 1]], "columns must be those of the labels"),
    ("MultiLabelCRF", ("edges",), "ab", "."),
    ("MultiLabelCRF", ("templates", 0, "rows", "n_columns"), 10**15, "there must be"),
    ("MultiLabelCRF", ("templates", 0, "rows", "kind"), "dense", "."),
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
