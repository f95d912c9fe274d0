"""A model on workers: its weights come with every question, and tasks borrow copies of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from chordal.potentials import Floats
from chordal.torch._drawing import Stream
from chordal.torch._heads import Head
from chordal.torch._threads import threads

if TYPE_CHECKING:
    from chordal.torch.neural_crf import NeuralCRF

Vector = NDArray[Any]  # float32, or float64 where a model has such numbers


class Lender:
    """Copies of a model, one for each task at a time of a process.

    Parameters
    ----------
    head : the model; its weights do not matter
    made : the estimator
    """

    def __init__(self, head: Head, made: NeuralCRF) -> None:
        self.head, self.device, self.augment = _copied(head, "cpu"), made.device, made.augment
        self.network = made.network if isinstance(made.network, str) else None
        self.dropout = made.dropout
        self._free: deque[Head] = deque()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_free": deque()}

    @contextmanager
    def lent(self, vectors: Sequence[Vector]) -> Iterator[Head]:
        """A copy with these weights, as `weights_of` gives them."""
        try:
            head = self._free.pop()
        except IndexError:
            head = _copied(self.head, self.device)
        try:
            with threads(1):  # sums depend on their number in the last digits
                set_weights(head.model, vectors)
                yield head
        finally:
            self._free.append(head)

    def step(self, generator: np.random.Generator) -> AbstractContextManager[None]:
        """A block in which PyTorch's random numbers depend on this generator alone."""
        return Stream(int(generator.integers(2**31)), self.network, self.dropout).step()


def weights_of(model: nn.Module) -> list[Vector]:
    """The parameters of a model in a row, and its buffers, such as the means of batch norm."""
    return [_row(list(model.parameters())), _row(list(model.buffers()))]


def set_weights(model: nn.Module, vectors: Sequence[Vector]) -> None:
    """Give a model what `weights_of` took from another."""
    for tensors, row in zip((model.parameters(), model.buffers()), vectors, strict=True):
        own = list(tensors)
        with torch.no_grad():
            for tensor, values in zip(own, pieces(own, row), strict=True):
                tensor.copy_(values)


def pieces(tensors: Sequence[Tensor], row: Vector | Floats) -> list[Tensor]:
    """A row of numbers, cut to tensors of these shapes and types."""
    limits = np.cumsum([own.numel() for own in tensors])[:-1]
    return (
        [
            torch.from_numpy(np.array(values)).reshape(own.shape).to(own)
            for own, values in zip(tensors, np.split(row, limits), strict=True)
        ]
        if tensors
        else []
    )


def _row(tensors: Sequence[Tensor]) -> Vector:
    single = all(own.dtype == torch.float32 for own in tensors)
    kind = torch.float32 if single else torch.float64
    rows = [own.detach().to("cpu", kind).numpy().ravel() for own in tensors]
    return np.concatenate(rows) if rows else np.zeros(0)


def _copied(head: Head, device: str) -> Head:
    made = copy(head)
    made.model = deepcopy(head.model).to(device)
    return made
