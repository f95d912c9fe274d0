"""The network with dropout: its training by hand, its seed, and what is said without torch."""

import sys

import numpy as np
import pytest
from sklearn.base import clone

from chordal.experiments._network import DropoutNetwork


def rows(n=60, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    return X, np.array(["a", "b", "c"])[(X[:, :3] + 0.1 * random.normal(size=(n, 3))).argmax(1)]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def by_hand(network, X, y, steps):
    """The same steps of Adam on the whole batch, with derivatives written out."""
    weights = [w.copy() for w in network._networks[0]]
    target = np.eye(3)[np.searchsorted(network.classes_, y)]
    means, squares = [[np.zeros_like(w) for w in weights] for _ in range(2)]
    for k in range(1, steps + 1):
        into, bias, out = weights
        hidden = np.maximum(X @ into + bias, 0.0)
        p = np.exp(hidden @ out)
        error = (p / p.sum(axis=1, keepdims=True) - target) / len(X)
        back = error @ out.T * (hidden > 0.0)
        for w, g, m, v in zip(
            weights, [X.T @ back, back.sum(0), hidden.T @ error], means, squares, strict=True
        ):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            w -= 0.01 * m / (1 - 0.9**k) / (np.sqrt(v / (1 - 0.999**k)) + 1e-7)
    return weights


def test_training_is_adam_on_the_cross_entropy(torch):
    X, y = rows()
    settings = {"dropout": 0.0, "batch_size": 60, "learning_rate": 0.01, "epsilon": 1e-7}
    start = DropoutNetwork(8, epochs=0, **settings).fit(X, y)
    trained = DropoutNetwork(8, epochs=5, **settings).fit(X, y)
    for ours, expected in zip(trained._networks[0], by_hand(start, X, y, 5), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-5)
    assert trained.losses_[-1] < trained.losses_[0]


def test_the_seed_alone_decides(torch):
    X, y = rows()
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    one = DropoutNetwork(8, 0.5, epochs=3, batch_size=16, random_state=1).fit(X, y)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), state)
    torch.manual_seed(5)
    again = clone(one).fit(X, y)
    np.testing.assert_array_equal(one.decision_function(X), again.decision_function(X))
    other = clone(one).set_params(random_state=2).fit(X, y)
    assert not np.array_equal(one.decision_function(X), other.decision_function(X))


def test_dropout_holds_back(torch):
    """Of labels that mean nothing, a network with dropout learns less by heart."""
    X, _ = rows(40)
    y = np.random.default_rng(1).integers(0, 3, 40)
    plain, held = (
        DropoutNetwork(64, p, epochs=60, batch_size=10).fit(X, y).losses_[-1] for p in (0.0, 0.9)
    )
    assert held > 2.0 * plain


def test_members_are_averaged_and_the_last_rows_held_out(torch):
    X, y = rows()
    two = DropoutNetwork(8, epochs=2, members=2).fit(X, y)
    parts = []
    for network in two._networks:
        alone = clone(two).set_params(epochs=0).fit(X, y)
        alone._networks = [network]
        parts.append(alone.decision_function(X))
    np.testing.assert_allclose(two.decision_function(X), np.mean(parts, axis=0), rtol=1e-12)
    assert not np.allclose(*parts)
    moved = X.copy()
    moved[-6:] += 10.0
    seen, unseen = (
        [
            DropoutNetwork(8, epochs=2, held_out=h).fit(data, y).decision_function(X[:5])
            for data in (X, moved)
        ]
        for h in (0.0, 0.1)
    )
    assert not np.array_equal(*seen)
    np.testing.assert_array_equal(*unseen)


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r'pip install "chordal\[torch\]"'):
        DropoutNetwork().fit(*rows())
