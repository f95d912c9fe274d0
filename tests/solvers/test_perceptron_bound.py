"""On separable data the structured perceptron makes at most (2R/γ)² mistakes."""

from itertools import product

import numpy as np
import pytest

from chordal import ChainCRF


def features(x, y):
    """Of a labelling: observations by label, and counts of transitions."""
    node, pairs = np.zeros((x.shape[1], 2)), np.zeros((2, 2))
    for t, label in enumerate(y):
        node[:, label] += x[t]
        if t:
            pairs[y[t - 1], label] += 1.0
    return np.concatenate([node.ravel(), pairs.ravel()])


@pytest.mark.parametrize("seed", range(5))
def test_mistakes_on_separable_chains_stay_below_the_bound(seed):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=2 * 3 + 4)
    truth /= np.linalg.norm(truth)
    X, Y, margin, radius = [], [], np.inf, 0.0
    while len(X) < 30:
        x = rng.normal(size=(3, 3))
        found = {y: features(x, y) for y in product(range(2), repeat=3)}
        best, second = sorted(found, key=lambda y: found[y] @ truth)[:-3:-1]
        lead = (found[best] - found[second]) @ truth
        if lead > 0.4:  # separable, with some margin
            X.append(x)
            Y.append(np.array(best))
            margin = min(margin, lead)
            radius = max(radius, *(np.linalg.norm(f) for f in found.values()))
    crf = ChainCRF(
        solver="averaged_perceptron", transitions="all", max_iter=200, tol=0.0, random_state=seed
    ).fit(X, Y)
    wrong = crf.fit_report_.history  # of each pass, the wrong shares of its sequences, summed
    assert 0.0 < sum(wrong) <= (2.0 * radius / margin) ** 2
    assert wrong[-1] == 0.0
