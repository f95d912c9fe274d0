"""PyTorch's random numbers, which belong to the process, for tasks that run at the same time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import RLock

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class _Process:
    turn = RLock()  # of those who draw


def _note_fork() -> None:
    _Process.turn = RLock()  # a thread of the parent may have had it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


class Stream:
    """Random numbers of a network that depend on a seed alone, whoever else draws in between.

    Parameters
    ----------
    seed : int
    network, dropout
        As in the estimator: networks that have a name draw for dropout only.
    """

    def __init__(self, seed: int, network: object, dropout: float) -> None:
        self._in_answers = not isinstance(network, str)
        self._in_steps = self._in_answers or dropout > 0.0
        self._seed = seed
        self._state: Tensor | None = None  # before the first block

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """A block in which PyTorch draws from this stream; threads take turns."""
        with _Process.turn, torch.random.fork_rng(devices=[]):
            if self._state is None:
                torch.manual_seed(self._seed)  # and those of GPUs, which take no turns
            else:
                torch.set_rng_state(self._state)
            try:
                yield
            finally:
                self._state = torch.get_rng_state()

    def step(self) -> AbstractContextManager[None]:
        """A block in which the network takes a training step."""
        return self.drawing() if self._in_steps else nullcontext()

    def answer(self) -> AbstractContextManager[None]:
        """A block in which it gives scores, without dropout."""
        return self.drawing() if self._in_answers else nullcontext()

    def to_array(self) -> NDArray[np.uint8]:
        """Where the stream is after a block, as a file keeps it."""
        assert self._state is not None
        found: NDArray[np.uint8] = self._state.numpy()
        return found

    def take(self, state: NDArray[np.uint8]) -> None:
        """Continue from what `to_array` gave; an error if PyTorch does not know it."""
        given = torch.from_numpy(np.array(state, dtype=np.uint8))
        self._state = torch.Generator().set_state(given).get_state()
