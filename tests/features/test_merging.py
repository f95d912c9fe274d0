"""Attributes that occur in exactly the same rows share a weight while L-BFGS runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from chordal import ChainCRF, _kernels
from chordal.features import AttributeInput, DenseInput
from chordal.solvers.lbfgs import LBFGS
from chordal.testing import check_features


@given(st.lists(st.sets(st.integers(0, 11)), max_size=30))
def test_groups_are_the_attributes_with_equal_rows(rows):
    offsets = np.cumsum([0, *map(len, rows)])
    ids = np.array([a for row in rows for a in row], dtype=np.int32)
    first = _kernels.attribute_groups(offsets, ids, 12)
    where = [frozenset(t for t, row in enumerate(rows) if a in row) for a in range(12)]
    assert first.tolist() == [where.index(rows_of_a) for rows_of_a in where]


def test_a_row_that_holds_an_attribute_twice_is_left_as_it_is():
    rows = AttributeInput().read([[["a", "b"], ["c", "c"]]], grow=True)
    assert len(_kernels.attribute_groups(rows.data.offsets, rows.data.ids, 3)) == 0
    outputs = np.zeros(2, dtype=np.int32)
    source = AttributeInput()
    rows = source.read([[["a", "b"], ["c", "c"]]], grow=True)
    assert source.features(rows, outputs, 2).condensed([rows]) is None


@pytest.fixture
def text():
    """Sentences with attributes that are rare, frequent, doubled and unique."""
    rng = np.random.default_rng(0)

    def token():
        tag, word = rng.integers(9), rng.integers(300)
        return [f"t{tag}", f"twin of t{tag}", f"w{word}", f"s{word % 50}", f"p{word}"]

    X = [[token() for _ in range(rng.integers(1, 9))] for _ in range(60)]
    y = [[str(rng.integers(6)) for _ in x] for x in X]
    return X, y


@pytest.mark.parametrize("pairs", ["seen", "all"])
def test_merged_features_keep_the_contract_and_spread_to_equal_scores(text, pairs):
    X, y = text
    source, rng = AttributeInput(), np.random.default_rng(1)
    rows = source.read(X, grow=True)
    gold = np.array([int(label) for labels in y for label in labels], dtype=np.int32)
    features = source.features(rows, gold, 6, pairs)
    merged = features.condensed([rows])
    check_features(merged.features, merged.rows(rows), rng)
    assert merged.features.n_weights < features.n_weights
    weights = rng.normal(size=merged.features.n_weights)
    spread = merged.spread(weights)
    assert_allclose(spread @ spread, weights @ weights, rtol=1e-12)

    def scores(features, rows, weights):
        out = np.empty(rows.n_rows * 6)
        features.map(features.compile(rows, 0, rows.n_rows), features.expand(weights), out)
        return out

    expected = scores(merged.features, merged.rows(rows), weights)
    assert_allclose(scores(features, rows, spread), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("pairs", ["seen", "all"])
def test_the_path_is_the_same_as_without(text, pairs, monkeypatch):
    crf = ChainCRF(l2=0.5, pairs=pairs, transitions=pairs, tol=1e-8)
    merged = crf.fit(*text)
    report, weights = merged.fit_report_, merged.weights_
    seen = []
    merged.fit(*text, callback=lambda state: seen.append(state.weights))
    assert_array_equal(seen[-1], merged.weights_)
    monkeypatch.setattr(LBFGS, "rotates", False)
    plain = crf.fit(*text)
    assert_allclose(report.history, plain.fit_report_.history, rtol=1e-7)
    assert_allclose(weights, plain.weights_, atol=1e-5)
    assert_array_equal(plain.fit_report_.n_weights, report.n_weights)


def test_validation_and_early_stopping_see_the_weights_of_the_model(text):
    X, y = text
    crf = ChainCRF(l2=0.5, validation_interval=1, n_iter_no_change=3)
    crf.fit(X[:40], y[:40], validation_data=(X[40:], y[40:]))
    best = max(score for _, score in crf.fit_report_.validation)
    found = np.concatenate([np.array(p) for p in crf.predict(X[40:])])
    assert np.mean(found == np.concatenate([np.array(p) for p in y[40:]])) == pytest.approx(best)


@pytest.mark.parametrize("values", [[1.0], [0.5, -2.0]])
def test_arrays_with_many_zeros_are_trained_as_sparse_ones(values, monkeypatch):
    rng = np.random.default_rng(0)
    X = [rng.choice(values, (6, 9)) * (rng.random((6, 9)) < 0.2) for _ in range(40)]
    y = [rng.integers(0, 4, 6) for _ in X]
    source = DenseInput(9)
    rows = source.read(X, grow=True)
    features = source.features(rows, np.concatenate(y).astype(np.int32), 4)
    condensed = features.condensed([rows])
    check_features(condensed.features, condensed.rows(rows), rng)
    crf = ChainCRF(l2=0.1, tol=1e-8).fit(X, y)
    monkeypatch.setattr(LBFGS, "rotates", False)
    plain = ChainCRF(l2=0.1, tol=1e-8).fit(X, y)
    assert_allclose(crf.fit_report_.history, plain.fit_report_.history, rtol=1e-7)
    assert_allclose(crf.weights_, plain.weights_, atol=1e-4)
    assert features.condensed([DenseInput(9).read([np.ones((3, 9))], grow=True)]) is None
