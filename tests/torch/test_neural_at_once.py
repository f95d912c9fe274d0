"""Fits and predictions of NeuralCRF that run at the same time in one process."""

from threading import Thread

import numpy as np
import pytest

from chordal.torch import NeuralCRF

torch = pytest.importorskip("torch")

X = [["the", "cat", "sleeps"], ["cats", "sleep"]] * 10
Y = [["D", "N", "V"], ["N", "V"]] * 10


class Noisy(torch.nn.Module):
    """Draws when it answers, too."""

    def __init__(self, size, n_labels):
        super().__init__()
        self.embedding = torch.nn.Embedding(size, n_labels)

    def forward(self, x):
        scores = self.embedding(x)
        return scores + torch.randn(scores.shape)


def fitted(network="bilstm"):
    settings = {"hidden": 8, "dropout": 0.3, "max_iter": 10, "random_state": 0}
    return NeuralCRF(network, **settings).fit(X, Y, validation_data=(X[:2], Y[:2]))


def weights(model):
    return np.concatenate([own.detach().numpy().ravel() for own in model.module_.parameters()])


@pytest.mark.parametrize("network", ["bilstm", Noisy])
def test_the_seed_alone_decides(network):
    alone = fitted(network)
    marginals = np.concatenate(alone.predict_marginals(X))
    found, other, asked = [], torch.get_rng_state(), []

    def predict():
        for _ in range(20):
            asked.append(np.concatenate(alone.predict_marginals(X)))

    fits = [Thread(target=lambda: found.append(fitted(network))) for _ in range(2)]
    running = [*fits, Thread(target=predict)]
    for own in running:
        own.start()
    for own in running:
        own.join()
    assert all((weights(own) == weights(alone)).all() for own in found)
    assert [own.fit_report_.validation for own in found] == [alone.fit_report_.validation] * 2
    assert all((own == marginals).all() for own in asked)
    assert (torch.get_rng_state() == other).all()
