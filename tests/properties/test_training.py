"""Objectives fall, gaps are not negative, and a model's answers agree with each other."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from chordal import ChainCRF, CRFClassifier


@st.composite
def sequences(draw, size=3):
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    elements = st.floats(-3, 3, allow_subnormal=False)
    X = [draw(arrays(np.float64, (n, size), elements=elements)) for n in lengths]
    y = [draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n)) for n in lengths]
    return X, y


def fitted(crf, X, y, callback=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return crf.fit(X, y, callback=callback)


@given(data=sequences())
def test_the_objective_of_lbfgs_never_rises(data):
    values = []
    fitted(ChainCRF(solver="lbfgs"), *data, lambda state: values.append(state.value))
    values = np.array(values)
    assert (np.diff(values) <= 1e-12 * (1 + np.abs(values[:-1]))).all()


@pytest.mark.parametrize("solver", ["frank_wolfe", "block_frank_wolfe", "exponentiated_gradient"])
def test_the_duality_gap_is_never_negative(solver):
    @given(data=sequences())
    def check(data):
        gaps = []
        crf = ChainCRF(solver=solver, max_iter=15)
        fitted(crf, *data, lambda state: gaps.append((state.gap, state.value)))
        for gap, value in gaps:
            assert not gap < -1e-9 * (1 + abs(value))

    check()


@given(data=sequences(), k=st.integers(1, 4))
def test_answers_of_a_model_agree(data, k):
    X, y = data
    crf = fitted(ChainCRF(max_iter=5), X, y)
    best, labels = crf.k_best(X, k=k), crf.predict(X)
    for x, own, found in zip(X, best, labels, strict=True):
        chances = [p for _, p in own]
        assert chances == sorted(chances, reverse=True)
        (chance,) = crf.log_likelihood([x], [found])
        assert chance == pytest.approx(chances[0], rel=1e-9, abs=1e-9)
        assert np.exp(chances).sum() <= 1 + 1e-9
    for own in crf.predict_marginals(X):
        np.testing.assert_allclose(own.sum(axis=1), 1.0, rtol=0, atol=1e-12)


@settings(max_examples=10)
@given(data=sequences(), seed=st.integers(0, 99))
def test_the_order_of_examples_does_not_matter(data, seed):
    X, y = data
    order = np.random.default_rng(seed).permutation(len(X))
    one = fitted(ChainCRF(tol=1e-9), X, y)
    other = fitted(ChainCRF(tol=1e-9), [X[k] for k in order], [y[k] for k in order])
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-6, abs=1e-9)


@settings(max_examples=10)
@given(data=sequences())
def test_a_chain_of_one_variable_is_a_classifier(data):
    X = np.concatenate(data[0])
    y = [label for own in data[1] for label in own]
    if len(set(y)) < 3:
        return  # two classes have one row of weights, and another penalty
    chain = fitted(ChainCRF(tol=1e-9), [x[None] for x in X], [[label] for label in y])
    single = fitted(CRFClassifier(tol=1e-9, fit_intercept=False), X, y)
    assert chain.objective_ == pytest.approx(single.objective_, rel=1e-6, abs=1e-9)
