"""Arguments of other kinds and shapes: an error that says so, and no answer by broadcasting."""

import numpy as np
import pytest

from chordal import (
    ChainCRF,
    CRFClassifier,
    GraphCRF,
    MatchingModel,
    MultiLabelCRF,
    NaiveBayes,
    TemplateCRF,
)
from chordal.features import CliqueTemplate

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(8, 2)), np.array(list("xyxyzzxy"))
WORDS = ChainCRF(max_iter=3).fit([[{"w": "a"}, {"w": "b"}]], [["x", "y"]])


@pytest.mark.parametrize(
    "y", [Y[:1], Y[:, None], Y[None], Y[:7], "x", [*Y, "x"], np.array("x"), [["x"], ["y", "z"]]]
)
@pytest.mark.parametrize("ask", ["score", "log_likelihood"])
def test_labels_of_other_shapes_are_not_spread(y, ask):
    with pytest.raises(ValueError, match="y must have one label per row of X"):
        getattr(NaiveBayes().fit(X, Y), ask)(X, y)


def test_a_score_is_a_share_of_rows():
    bayes = NaiveBayes().fit(X, Y)
    assert bayes.score(X, Y.tolist()) == np.mean(bayes.predict(X) == Y)


def test_rows_of_several_lengths():
    with pytest.raises(ValueError, match="rows of X must be equally long"):
        NaiveBayes().fit([[1.0, 2.0], [1.0]], ["x", "y"])


@pytest.mark.parametrize("label", [{"x": 0.5, "y": 0.5}, {"x"}, ["x"]])
def test_labels_that_cannot_be_hashed(label):
    given = [{"w": "a"}, {"w": "b"}]
    with pytest.raises(ValueError, match=r"y\[0\]\[1\] is the label .*not seen in training"):
        WORDS.log_likelihood([given], [["x", label]])


@pytest.mark.parametrize("spans", [None, 3, [None], "a", [3], [[(0, 1, "x")]] * 2])
def test_spans(spans):
    with pytest.raises(ValueError, match=r"spans must have one list per sequence \(1\)"):
        WORDS.span_probabilities([[{"w": "a"}]], spans)


@pytest.mark.parametrize("examples", [np.array("x"), np.array(3), 3.0, None, np.datetime64("now")])
def test_what_is_no_list_of_examples(examples):
    templates = [CliqueTemplate("unary", "each", lambda x: x), CliqueTemplate("pair", "steps")]
    for crf in (ChainCRF(), GraphCRF(), TemplateCRF(templates)):
        with pytest.raises(TypeError, match="must be a list of"):
            crf.fit(examples, [["a"]])
        with pytest.raises((TypeError, ValueError), match=r"must be|X\[0\]"):
            crf.fit([examples, examples], [["a"], ["a"]])


@pytest.mark.parametrize("name", ["l2", "max_iter", "tol"])
@pytest.mark.parametrize("number", [10**400, -(10**400)])
@pytest.mark.parametrize("kind", [ChainCRF, CRFClassifier, MultiLabelCRF])
def test_whole_numbers_beyond_all_floats(kind, name, number):
    with pytest.raises(ValueError, match=f"{name} must be"):
        kind(**{name: number}).fit(X, Y)


def test_rows_of_labels_of_several_lengths():
    with pytest.raises(ValueError, match=r"y must be a matrix of 0 and 1 .* several lengths"):
        MultiLabelCRF().fit(X[:2], [[0, 1], [1]])


@pytest.mark.parametrize("pairs", ["x", [[[1.0], [1.0, 2.0]]], {"a": 1}, [[[None]]], [[["x"]]]])
def test_features_of_pairs_that_are_no_numbers(pairs):
    with pytest.raises(ValueError, match=r"X\[0\] must be an array of numbers|X\[0\] has NaN"):
        MatchingModel().fit([pairs], [[0]])
