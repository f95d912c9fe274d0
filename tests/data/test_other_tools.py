"""Models that CRF++ and CRFsuite trained on their own examples, and what they say with them."""

import gzip
import json
import re

import numpy as np
import pytest

from chordal.compat.crfpp_model import read_crfpp
from chordal.compat.crfsuite_model import read_crfsuite

pytestmark = pytest.mark.data


def rows_of(text):
    """Sequences of rows; cells are parted by spaces and tabs alone (U+3000 is a token)."""
    blocks = re.split("\n\n+", text.strip("\n"))
    return [[re.split("[ \t]+", line.strip(" \t")) for line in b.split("\n")] for b in blocks]


@pytest.fixture
def opened(require):
    def read(name):
        path = require(f"tools_examples/{name}.gz")
        return gzip.decompress(path.read_bytes())

    return read


@pytest.mark.parametrize("task", ["chunking", "basenp", "seg"])
def test_crfpp_models_give_crfpp_answers(opened, task):
    model = read_crfpp(opened(f"crfpp_expected/{task}.model.txt"))
    X = rows_of(opened(f"crfpp/{task}.test.data").decode())
    printed = rows_of(opened(f"crfpp_expected/{task}.out").decode())
    assert model.predict(X) == [[row[-1] for row in rows] for rows in printed]

    # crf_test -v2: a line "# probability", then rows that end in label/marginal for each label
    printed = rows_of(opened(f"crfpp_expected/{task}.train.v2").decode())
    n = len(model.classes_)
    chances = [float(rows[0][1]) for rows in printed]
    X = [[row[: -n - 2] for row in rows[1:]] for rows in printed]
    np.testing.assert_allclose(
        [np.exp(best[0][1]) for best in model.k_best(X, 1)], chances, rtol=0, atol=6e-7
    )
    for rows, ours in zip(printed, model.predict_marginals(X), strict=True):
        cells = [dict(cell.rsplit("/", 1) for cell in row[-n:]) for row in rows[1:]]
        theirs = [[float(cell[c]) for c in model.classes_] for cell in cells]
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=6e-7)


def assert_weights_equal(model, expected):
    """Names and weights, dumped with six decimals."""
    labels = model.classes_.tolist()
    coef, find = model.coef_.toarray(), model.reader_.inputs[0].vocabulary.find
    for attribute, label, weight in expected["state_features"]:
        assert abs(coef[labels.index(label), find(attribute)] - weight) < 6e-7
    for source, target, weight in expected["transitions"]:
        found = model.transitions_[labels.index(source), labels.index(target)]
        assert abs(found - weight) < 6e-7
    assert np.count_nonzero(coef) == len(expected["state_features"])
    assert np.count_nonzero(model.transitions_) == len(expected["transitions"])


def test_crfsuite_weather(opened, require):
    model = read_crfsuite(require("tools_examples/python-crfsuite/weather_lbfgs.crfsuite"))
    expected = json.loads(opened("python-crfsuite/weather_lbfgs_c2_1.json"))
    assert_weights_equal(model, expected)
    data = json.loads(require("tools_examples/python-crfsuite/weather_input.json").read_text())
    (answer,) = expected["first_test"]
    assert model.predict([data["xseq"]]) == [answer["viterbi"]]
    (ours,) = model.predict_marginals([data["xseq"]])
    order = [expected["labels"].index(c) for c in model.classes_]
    np.testing.assert_allclose(ours, np.array(answer["marginals"])[:, order], rtol=0, atol=1e-9)


def test_crfsuite_chunking(opened):
    model = read_crfsuite(opened("python-crfsuite/chunk_wapiti_lbfgs_c2_1.crfsuite"))
    assert_weights_equal(model, json.loads(opened("python-crfsuite/chunk_wapiti_lbfgs_c2_1.json")))
