"""Odd data for pages, word lists, classifiers and CRFsuite's classes: errors that name them."""

import re

import numpy as np
import pytest

from chordal import ChainCRF, CRFClassifier, GraphCRF, MultiLabelCRF
from chordal.compat.pycrfsuite import Tagger, Trainer
from chordal.explore import page
from chordal.preprocessing import Gazetteer, WordClusters

X, Y = [[["w=a"], ["w=b"]]], [["A", "B"]]
ROWS, BITS = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([[0, 1], [1, 0], [1, 1]])
GRAPHS = [(ROWS[:2], [(0, 1)])]
CHAIN = ChainCRF(max_iter=2).fit(X, Y)
FLAT = CRFClassifier(max_iter=2).fit(ROWS, [0, 1, 0])
MANY = MultiLabelCRF(max_iter=2).fit(ROWS, BITS)
GRAPH = GraphCRF(max_iter=2).fit(GRAPHS, [[0, 1]])
WORDS = [["in", "York"]]

ASKED = {
    "tokens of sequences": lambda odd: page(CHAIN, X, tokens=odd),
    "tokens of rows": lambda odd: page(FLAT, ROWS, tokens=odd),
    "tokens of graphs": lambda odd: page(GRAPH, GRAPHS, tokens=odd),
    "image_shape": lambda odd: page(FLAT, ROWS, image_shape=odd),
    "positions": lambda odd: page(GRAPH, GRAPHS, positions=odd),
    "y of graphs": lambda odd: page(GRAPH, GRAPHS, odd),
    "y of rows of labels": lambda odd: page(MANY, ROWS, odd),
    "X of rows": lambda odd: page(FLAT, odd),
    "X of rows of labels": lambda odd: page(MANY, odd),
    "X": lambda odd: FLAT.predict(odd),
    "X to learn": lambda odd: CRFClassifier().fit(odd, [0, 1, 0]),
    "lists": lambda odd: Gazetteer(odd).fit(),
    "list": lambda odd: Gazetteer({"city": odd}).fit(),
    "key": lambda odd: Gazetteer({"city": ["York"]}, key=odd).transform(WORDS),
    "ignore_case": lambda odd: Gazetteer({"city": ["York"]}, ignore_case=odd).transform(WORDS),
    "X of words": lambda odd: Gazetteer({"city": ["York"]}).transform(odd),
    "clusters": lambda odd: WordClusters(odd).fit(),
    "lengths": lambda odd: WordClusters({"York": "01"}, lengths=odd).fit(),
    "name": lambda odd: WordClusters({"York": "01"}, name=odd).fit(),
    "params": lambda odd: Trainer(params=odd),
    "model": lambda odd: Trainer(verbose=False).train(odd),
    "type": lambda odd: Trainer().select("lbfgs", odd),
    "Parameter of the trainer": lambda odd: Trainer().get(odd),
    "group": lambda odd: Trainer().append([["a"]], ["A"], odd),
    "name of a model": lambda odd: Tagger().open(odd),
}
RAW = "object is not|has no attribute|no len|ambiguous|unhashable|out of range|expected str, bytes"


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("odd", [1.5, ..., np.array("x"), [None], {3: 1}], ids=str)
def test_odd_data(asked, odd):
    with pytest.raises((TypeError, ValueError)) as error:
        ASKED[asked](odd)
    said = str(error.value)
    named = ("Expected 2D array", "Parameter not found", "list 3")
    assert re.search(rf"\b{asked.split()[0]}\b", said) or said.startswith(named)
    assert not re.search(RAW, said)


@pytest.mark.parametrize("table", [[["a", "b"]] * 3, [[1.0], [2.0, 3.0], [4.0]], [[{}, {}]] * 3])
def test_classifiers_of_what_is_not_numbers(table):
    with pytest.raises((TypeError, ValueError), match=r"^X must be .* numbers .*, and y one"):
        CRFClassifier().fit(table, [0, 1, 0])
    with pytest.raises((TypeError, ValueError), match=r"^X must be .* numbers .*features\]: "):
        FLAT.predict(table)
    with pytest.raises(TypeError, match="freeze must be a tuple of names"):
        CRFClassifier(freeze=np.array(table, dtype=object)).fit(ROWS, [0, 1, 0])


@pytest.mark.parametrize("group", [slice(None), "transitions"], ids=str)
@pytest.mark.parametrize("ask", ["predict_marginals", "k_best", "entropy", "potentials", "predict"])
def test_weights_that_are_nan(ask, group):
    crf = ChainCRF(max_iter=2, transitions="all").fit(X * 2, Y * 2)
    getattr(crf, ask)(X)  # compiles the weights
    crf.weights_ = crf.weights_.copy()
    crf.weights_[crf.layout_.slices[group] if group == "transitions" else group] = np.nan
    for given in (X, X * 2):
        with pytest.raises(ValueError, match="weights_ has NaN, so no answer follows; fit or load"):
            getattr(crf, ask)(given)
    with pytest.raises(ValueError, match="weights_ has NaN"):
        crf.log_likelihood(X, Y)


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "decision_function"])
def test_weights_of_classifiers_that_are_nan(ask):
    model = CRFClassifier(max_iter=2).fit(ROWS, [0, 1, 0])
    model.weights_[0] = np.nan
    with pytest.raises(ValueError, match="weights_ has NaN, so no answer follows; fit or load"):
        getattr(model, ask)(ROWS)
