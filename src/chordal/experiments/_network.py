"""A network of one hidden layer with dropout, under scikit-learn's protocol. It needs torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from chordal._optional import needed

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float64]


class DropoutNetwork(ClassifierMixin, BaseEstimator):
    """Rows → linear → ReLU → dropout → linear without bias → softmax, trained by Adam.

    Scores are those before the softmax. The same seed gives the same weights, whatever the number
    of torch's threads, and torch's own generator of random numbers is left alone.

    Parameters
    ----------
    hidden : int
        Hidden units.
    dropout : float
        The share of hidden units that is left out of each example and step.
    epochs, batch_size : int
        Passes over the rows, and rows in a step.
    learning_rate, epsilon : float
        Of Adam.
    held_out : float
        The share of rows, the last ones, that is kept away from training, as a validation set is.
    members : int
        Networks, of which scores are the mean.
    random_state : int
    """

    classes_: NDArray[Any]

    def __init__(
        self,
        hidden: int = 256,
        dropout: float = 0.3,
        *,
        epochs: int = 15,
        batch_size: int = 128,
        learning_rate: float = 9e-3,
        epsilon: float = 1e-8,
        held_out: float = 0.0,
        members: int = 1,
        random_state: int = 0,
    ) -> None:
        self.hidden = hidden
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.epsilon = epsilon
        self.held_out = held_out
        self.members = members
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> DropoutNetwork:
        """Learn from rows and their labels."""
        torch = _torch()
        self.classes_, codes = np.unique(y, return_inverse=True)
        n = int(len(codes) * (1.0 - self.held_out))
        rows = torch.tensor(np.asarray(X)[:n], dtype=torch.float32)
        codes = torch.tensor(codes[:n])
        random = torch.Generator().manual_seed(self.random_state)
        self.losses_: list[float] = []  # means over rows, pass by pass, of the last member
        with _one_thread(torch):
            self._networks = [self._one(torch, rows, codes, random) for _ in range(self.members)]
        return self

    def _one(
        self, torch: ModuleType, rows: torch.Tensor, codes: torch.Tensor, random: torch.Generator
    ) -> list[Floats]:
        """The weights of one network."""
        weights = [
            _uniform(torch, rows.shape[1], self.hidden, random),
            torch.zeros(self.hidden, requires_grad=True),
            _uniform(torch, self.hidden, len(self.classes_), random),
        ]
        self._train(torch, weights, rows, codes, random)
        return [w.detach().numpy().astype(np.float64) for w in weights]

    def _train(
        self,
        torch: ModuleType,
        weights: list[torch.Tensor],
        rows: torch.Tensor,
        codes: torch.Tensor,
        random: torch.Generator,
    ) -> None:
        adam = torch.optim.Adam(weights, lr=self.learning_rate, eps=self.epsilon)
        into, bias, out = weights
        kept = 1.0 - self.dropout
        self.losses_ = []
        for _ in range(self.epochs):
            total = 0.0
            for batch in torch.randperm(len(rows), generator=random).split(self.batch_size):
                hidden = torch.relu(rows[batch] @ into + bias)
                mask = torch.rand(hidden.shape, generator=random) < kept
                loss = torch.nn.functional.cross_entropy(hidden * mask / kept @ out, codes[batch])
                adam.zero_grad()
                loss.backward()
                adam.step()
                total += loss.item() * len(batch)
            self.losses_.append(total / len(rows))

    def decision_function(self, X: ArrayLike) -> Floats:
        """Scores before the softmax [n_rows, n_classes], with all hidden units."""
        rows = np.asarray(X)
        total = np.zeros((len(rows), len(self.classes_)))
        for into, bias, out in self._networks:
            total += np.maximum(rows @ into + bias, 0.0) @ out
        return total / len(self._networks)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The label of each row."""
        return self.classes_[self.decision_function(X).argmax(axis=1)]


def _uniform(torch: ModuleType, n_in: int, n_out: int, random: torch.Generator) -> torch.Tensor:
    """Weights to begin with, by the rule of Glorot and Bengio (2010)."""
    limit = (6.0 / (n_in + n_out)) ** 0.5
    weights = (2.0 * torch.rand((n_in, n_out), generator=random) - 1.0) * limit
    return weights.requires_grad_()


def _torch() -> ModuleType:
    with needed("torch", "DropoutNetwork"):
        import torch

    return torch


@contextmanager
def _one_thread(torch: ModuleType) -> Iterator[None]:
    """Sums are taken in one order. Networks as small as these gain nothing from more threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
