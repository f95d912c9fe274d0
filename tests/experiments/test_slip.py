"""The published training of noisy chains: what it computes, by enumeration."""

from itertools import product

import numpy as np

from chordal.datasets import make_noisy_chains
from chordal.experiments import _slip


def features(labels, before, x):
    """Of a whole chain, with the label before each position as given [36]."""
    unary, pairs = np.zeros((3, 3)), np.zeros((3, 3, 3))
    for t, (label, last) in enumerate(zip(labels, before, strict=True)):
        unary[label] += x[t]
        if t > 0:
            pairs[label, last] += x[t] + x[t - 1]
        elif last == 0:
            pairs[label, 0] += x[0]
    return np.concatenate([unary.ravel(), pairs.ravel()])


def all_labellings(x, weights):
    """Every labelling, and its probability."""
    labellings = list(product(range(3), repeat=len(x)))
    scores = np.array([weights @ features(y, (0, *y[:-1]), x) for y in labellings])
    return labellings, np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()


def example(length=4):
    random = np.random.default_rng(0)
    return random.normal(size=(length, 3)), random.normal(size=36)


def test_the_best_labelling():
    x, weights = example()
    labellings, p = all_labellings(x, weights)
    found = _slip._best(_slip._scores(weights, x[None]))
    assert tuple(found[0]) == labellings[int(p.argmax())]


def test_the_gradient_away_from_the_first_position_is_of_exchanged_pairs():
    """Where the first position shows nothing, its slip is not seen; the exchange is."""
    x, weights = example()
    x[0] = 0.0
    y = np.array([2, 0, 1, 1])
    labellings, p = all_labellings(x, weights)
    exchanged, right = np.zeros(36), np.zeros(36)
    for labels, share in zip(labellings, p, strict=True):
        last = (0, *labels[:-1])
        right += share * features(labels, last, x)
        exchanged += share * features(last, labels, x)
    counted = features(y, np.roll(y, 1), x)
    gradient = _slip._gradient(weights, x[None], y[None])
    np.testing.assert_allclose(gradient, exchanged - counted, rtol=1e-9, atol=1e-12)
    assert not np.allclose(exchanged, right)


def test_the_first_position_is_wrong():
    """The sum over labels of an expectation should be x itself; there it is not."""
    x, weights = example()
    y = np.array([2, 0, 1, 1])
    unary = _slip._gradient(weights, x[None], y[None])[:9].reshape(3, 3)
    assert not np.allclose(unary.sum(axis=0), 0.0)
    x[0] = 0.0
    unary = _slip._gradient(weights, x[None], y[None])[:9].reshape(3, 3)
    np.testing.assert_allclose(unary.sum(axis=0), 0.0, atol=1e-10)


def test_training_so_is_repeatable_and_worse():
    chains = make_noisy_chains(120, random_state=1)
    split = chains.X[:90], chains.y[:90], chains.X[90:], chains.y[90:]
    found = [_slip.trained_with_slip(*split, seed=1) for _ in range(2)]
    np.testing.assert_array_equal(*found)
    assert found[0].shape == (30, 10)
