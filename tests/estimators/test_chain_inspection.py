"""What a fitted model shows of its weights."""

import numpy as np
import pytest
import scipy.sparse as sp

from chordal import ChainCRF

X = [[["u", "both"], ["v"], ["v", "both"]], [["v"], ["u"]]] * 4
Y = [["a", "z", "z"], ["z", "a"]] * 4


@pytest.fixture(scope="module")
def crf():
    return ChainCRF(l2=0.1).fit(X, Y)


def test_coef_of_names_is_sparse_and_agrees_with_top_features(crf):
    assert sp.issparse(crf.coef_)
    assert crf.coef_.shape == (2, 3)
    assert crf.coef_.nnz == 4  # (u, a), (v, z), (both, a), (both, z)
    stored = sorted(crf.coef_.tocoo().data.tolist())
    assert stored == pytest.approx(sorted(w for _, _, w in crf.top_features(n=100)))


def test_coef_of_arrays_is_an_array(dense_problem):
    X, y = dense_problem
    for given in (X, [sp.csr_array(x) for x in X]):
        crf = ChainCRF().fit(given, y)
        assert isinstance(crf.coef_, np.ndarray)
        assert crf.coef_.shape == (3, 3)
    names = {name for name, _, _ in crf.top_features(n=100)}
    assert names == {"x0", "x1", "x2"}
    name, label, weight = crf.top_features(n=1)[0]
    row = crf.classes_.tolist().index(label)
    assert (
        crf.coef_[row, int(name[1:])]
        == weight
        == pytest.approx(np.abs(crf.coef_).max() * np.sign(weight))
    )


def test_rows_follow_classes_though_labels_are_numbered_by_frequency(crf):
    assert crf.classes_.tolist() == ["a", "z"]
    weights = {(name, label): w for name, label, w in crf.top_features(n=100)}
    assert weights["u", "a"] > 0.5
    assert weights["v", "z"] > 0.5
    dense = crf.coef_.toarray()
    assert weights["u", "a"] in dense[0]
    assert weights["v", "z"] in dense[1]


def test_top_features_are_ordered(crf):
    magnitudes = [abs(w) for _, _, w in crf.top_features(n=100)]
    assert magnitudes == sorted(magnitudes, reverse=True)
    assert len(crf.top_features(n=2)) == 2
    assert crf.top_features(n=2) == crf.top_features(n=100)[:2]


def test_top_features_of_a_label():
    crf = ChainCRF(l2=0.1, pairs="all").fit(X, Y)
    found = crf.top_features(label="z")
    assert {label for _, label, _ in found} == {"z"}
    weights = [w for _, _, w in found]
    assert weights == sorted(weights, reverse=True)
    assert found[0][0] == "v"
    assert found[-1][0] == "u"
    assert len(crf.top_features(n=1, label="z")) == 1
    with pytest.raises(ValueError, match=r"unknown label 'q'.*'a', 'z'"):
        crf.top_features(label="q")


def test_transitions(crf):
    assert crf.transitions_.shape == (2, 2)
    assert crf.transitions_[0, 0] == 0.0  # "a" after "a" was not seen
    top = crf.top_transitions(n=10)
    assert len(top) == 4
    assert [abs(w) for _, _, w in top] == sorted((abs(w) for _, _, w in top), reverse=True)
    names = crf.classes_.tolist()
    for a, b, weight in top:
        assert crf.transitions_[names.index(a), names.index(b)] == weight
    assert crf.top_transitions(n=1) == top[:1]


def test_weights_per_label_are_zero_unless_asked_for(crf):
    for values in (crf.start_, crf.end_, crf.intercept_):
        assert values.tolist() == [0.0, 0.0]
    more = ChainCRF(l2=0.1, fit_intercept=True, ends=True).fit(X, [["a", "z", "z"], ["a", "z"]] * 4)
    assert more.start_[0] > more.start_[1]
    assert more.end_[1] > more.end_[0]
    assert more.intercept_.shape == (2,)


def test_repr_shows_what_differs_from_the_defaults():
    assert repr(ChainCRF()) == "ChainCRF()"
    assert repr(ChainCRF(l2=0.5, ends=True)) == "ChainCRF(ends=True, l2=0.5)"


def test_inference_says_what_was_chosen(crf):
    assert crf.inference_.name == "chain"
    assert crf.inference == "auto"
    assert "ChainInference" in repr(crf.inference_)
