"""Models of hmmlearn: the same labels and probabilities after conversion."""

import logging

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from chordal import HMM, UnsupportedError
from chordal.compat.hmmlearn import from_hmmlearn

hmm = pytest.importorskip("hmmlearn.hmm")

START = np.array([0.7, 0.3, 0.0])
CHANCES = np.array([[0.8, 0.15, 0.05], [0.0, 0.6, 0.4], [0.3, 0.3, 0.4]])
LENGTHS = [30, 1, 17, 52]


@pytest.fixture(autouse=True)
def quiet():
    """hmmlearn warns that MultinomialHMM changed its meaning long ago."""
    logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)


def models():
    rng = np.random.default_rng(0)
    symbols = hmm.CategoricalHMM(3, random_state=0)
    symbols.emissionprob_ = np.array([[0.5, 0.4, 0.1, 0.0], [0.1, 0.1, 0.4, 0.4], [0, 0, 0.5, 0.5]])
    symbols.n_features = 4
    yield "categorical", symbols
    counts = hmm.PoissonHMM(3, random_state=0)
    counts.lambdas_ = np.array([[1.0, 5.0], [4.0, 2.0], [9.0, 0.5]])
    yield "poisson", counts
    drawn = hmm.MultinomialHMM(3, n_trials=6, random_state=0)
    drawn.emissionprob_ = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6], [0.1, 0.8, 0.1]])
    drawn.n_features = 3
    yield "multinomial", drawn
    root = rng.normal(size=(3, 2, 2))
    full = root @ root.transpose(0, 2, 1) + 0.3 * np.eye(2)
    covariances = {
        "diag": np.abs(root[:, 0]) + 0.2,
        "spherical": np.array([0.3, 0.5, 1.2]),
        "full": full,
        "tied": full[0],
    }
    for kind, value in covariances.items():
        normal = hmm.GaussianHMM(3, covariance_type=kind, random_state=0)
        normal.n_features = 2
        normal.means_ = 50.0 + rng.normal(size=(3, 2)) * 2.0
        normal.covars_ = value
        yield f"gaussian {kind}", normal


MODELS = dict(models())


@pytest.mark.parametrize("name", MODELS)
def test_labels_and_probabilities_are_those_of_hmmlearn(name):
    peer = MODELS[name]
    peer.startprob_, peer.transmat_ = START, CHANCES
    parts = [peer.sample(n, random_state=k)[0] for k, n in enumerate(LENGTHS)]
    X = np.concatenate(parts)
    ours = from_hmmlearn(peer)
    assert isinstance(ours, HMM)
    marginals = peer.predict_proba(X, lengths=LENGTHS)
    assert_allclose(np.concatenate(ours.predict_marginals(parts)), marginals, rtol=0.0, atol=1e-10)
    assert_array_equal(np.concatenate(ours.predict(parts)), peer.predict(X, lengths=LENGTHS))
    crf = ours.to_crf()
    T = ours.statistics(parts)
    assert_allclose(np.concatenate(crf.predict_marginals(T)), marginals, rtol=0.0, atol=1e-10)
    # log p(x) = log p(x, y) − log p(y | x), for any labelling that is possible.
    y = ours.predict(parts)
    evidence = ours.log_likelihood(parts, y) - crf.log_likelihood(T, y)
    assert_allclose(evidence.sum(), peer.score(X, lengths=LENGTHS), rtol=1e-9)


def test_a_model_that_hmmlearn_learned_goes_on_as_a_crf():
    rng = np.random.default_rng(1)
    states = [np.repeat(rng.integers(0, 2, 8), 5) for _ in range(10)]
    X = [s[:, None] * 2.0 + rng.normal(size=(40, 1)) for s in states]
    peer = hmm.GaussianHMM(2, random_state=0).fit(np.concatenate(X), [40] * 10)
    ours = from_hmmlearn(peer)
    y = ours.predict(X)
    crf = ours.to_crf(l2=0.1)
    T = ours.statistics(X)
    before = crf.log_likelihood(T, y).sum()
    assert crf.fit(T, y).log_likelihood(T, y).sum() > before


def test_what_cannot_be_converted_is_refused():
    mixture = hmm.GMMHMM(2)
    mixture.startprob_, mixture.transmat_ = START[:2], np.eye(2)
    with pytest.raises(UnsupportedError, match="GMMHMM has observations that are not"):
        from_hmmlearn(mixture)
    with pytest.raises(ValueError, match="PoissonHMM is not fitted yet"):
        from_hmmlearn(hmm.PoissonHMM(2))
    with pytest.raises(TypeError, match="must be one of hmmlearn's, got HMM"):
        from_hmmlearn(HMM())
