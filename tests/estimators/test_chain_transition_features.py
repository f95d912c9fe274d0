"""Transition features: weights of label pairs that depend on the observation."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from chordal import ChainCRF


def neighbours(x):
    """The sum of both ends' observations."""
    return x[1:] + x[:-1]


@pytest.mark.parametrize("sparse", [False, True])
def test_dense_transition_features(dense_problem, listing, sparse):
    """Their weights follow from the stationarity of the optimum: they are not taken from fit."""
    X, y = dense_problem
    l2 = 0.5
    given = [sp.csr_array(x) for x in X] if sparse else X
    crf = ChainCRF(l2=l2, transition_features=neighbours, transitions="all", tol=1e-13)
    crf.fit(given, y)
    n_pairs = sum(len(x) - 1 for x in X)
    assert crf.fit_report_.n_weights == 3 * 3 + 3 * 9 + 9
    column = {c: k for k, c in enumerate(crf.classes_.tolist())}
    weights = np.zeros((3, 3, 3))  # from, to, feature
    marginals = crf.predict_marginals(given, "transitions")
    assert sum(map(len, marginals)) == n_pairs
    for x, t, pairs in zip(X, y, marginals, strict=True):
        surplus = -pairs
        for k, (a, b) in enumerate(pairwise(t)):
            surplus[k, column[a], column[b]] += 1.0
        weights += np.einsum("tij,td->ijd", surplus, neighbours(x)) / l2
    assert np.abs(weights).max() > 0.05
    found = crf.log_likelihood(given, y)
    for x, t, value in zip(X, y, found, strict=True):
        edge = np.einsum("ijd,td->tij", weights, neighbours(x))
        assert value == pytest.approx(listing(crf, x, edge).log_probability(t), abs=1e-4)


def test_transition_features_help_where_transitions_depend_on_the_observation():
    """The label changes exactly where the signal is on: no node feature can say that."""
    rng = np.random.default_rng(3)
    X, y = [], []
    for _ in range(60):
        change = rng.integers(2, size=6)
        X.append(np.stack([change, 1 - change], axis=1).astype(float))
        y.append(((change[1:].cumsum() + rng.integers(2)) % 2).tolist())
    X = [x[1:] for x in X]
    plain = ChainCRF(l2=0.01).fit(X, y)
    observed = ChainCRF(l2=0.01, transition_features=lambda x: x[1:]).fit(X, y)
    assert plain.log_likelihood(X, y).mean() < -2.5
    assert observed.log_likelihood(X, y).mean() > -0.8  # only the first label is a coin flip


def attribute_pairs(x):
    return [[f"{a}&{b}" for a in left for b in right] for left, right in pairwise(x)]


def test_named_transition_features(attribute_problem):
    X, y = attribute_problem
    seen = {(f, move) for x, t in zip(X, y, strict=True)
            for fs, move in zip(attribute_pairs(x), pairwise(t), strict=True)
            for f in fs}  # fmt: skip
    plain = ChainCRF().fit(X, y)
    crf = ChainCRF(transition_features=attribute_pairs).fit(X, y)
    assert crf.fit_report_.n_weights == plain.fit_report_.n_weights + len(seen)
    assert crf.log_likelihood(X, y).sum() > plain.log_likelihood(X, y).sum() + 1.0
    x = next(x for x in X if len(x) == 3)
    (ranked,) = crf.k_best([x], k=4**3)
    chances = np.exp(crf.log_likelihood([x] * len(ranked), [labels for labels, _ in ranked]))
    assert len(chances) == 4**3
    assert chances.sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("kind", ["dense", "attributes"])
def test_transition_features_of_sequences_of_length_one(dense_problem, attribute_problem, kind):
    function = neighbours if kind == "dense" else attribute_pairs
    X, y = dense_problem if kind == "dense" else attribute_problem
    crf = ChainCRF(transition_features=function).fit(X, y)
    short = [x[:1] for x in X[:3]]
    mixed = crf.predict([*short, X[0]])
    assert crf.predict(short) == mixed[:3]
    assert [m.shape for m in crf.predict_marginals(short, "transitions")] == [
        (0, len(crf.classes_), len(crf.classes_))
    ] * 3
    alone = ChainCRF(transition_features=function).fit(short, [t[:1] for t in y[:3]])
    assert len(alone.predict(short)) == 3


@pytest.mark.parametrize("kind", ["dense", "csr", "attributes"])
def test_partial_fit_without_transitions_keeps_their_weights(
    dense_problem, attribute_problem, kind
):
    function = attribute_pairs if kind == "attributes" else neighbours
    X, y = attribute_problem if kind == "attributes" else dense_problem
    X = [sp.csr_array(x) for x in X] if kind == "csr" else X
    crf = ChainCRF(transition_features=function, l2=0.1).fit(X, y)
    n_weights, moves = crf.fit_report_.n_weights, crf.transitions_
    pairs = crf.predict_marginals(X, "transitions")
    crf.set_params(l2=1e9).partial_fit([x[:1] for x in X], [t[:1] for t in y])
    assert crf.fit_report_.n_weights == n_weights
    np.testing.assert_allclose(crf.transitions_, moves, rtol=0, atol=1e-6)
    for before, after in zip(pairs, crf.predict_marginals(X, "transitions"), strict=True):
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-6)
