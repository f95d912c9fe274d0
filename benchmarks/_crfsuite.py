"""The peer: python-crfsuite, with the wall-clock time of its iterations.

CRFsuite's own log gives processor seconds; both sides are timed by the same clock here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pycrfsuite


class Iteration(NamedTuple):
    number: int
    loss: float
    evaluations: int  # of the line search; the first iteration has one more, at the start
    ended: float  # time.perf_counter()


class TimedTrainer(pycrfsuite.BaseTrainer):
    """Reads the log as it is written."""

    def __init__(self, c1: float = 0.0, c2: float = 0.0, max_iterations: int | None = None) -> None:
        super().__init__("lbfgs")
        self.set_params({"c1": c1, "c2": c2})
        if max_iterations is not None:
            self.set("max_iterations", max_iterations)
        self.on_iteration: Callable[[Iteration], Any] | None = None
        self._before_train()

    def _before_train(self) -> None:
        self.iterations: list[Iteration] = []
        self.n_weights = self.n_nonzero = 0
        self.optimised = 0.0  # when the optimisation ended, before the model is written
        self.ending = ""
        self._number, self._loss, self._ended = 0, 0.0, 0.0

    def message(self, message: str) -> None:
        line = message.strip()
        if line.startswith("***** Iteration #"):
            self._ended = time.perf_counter()
            self._number = int(line.strip("* ").removeprefix("Iteration #"))
            return
        if line == "Storing the model":
            self.optimised = time.perf_counter()
        elif line.startswith("L-BFGS terminated"):
            self.ending = line
        key, _, value = line.partition(": ")
        if key == "Number of features":
            self.n_weights = int(value)
        elif key == "Number of active features":
            self.n_nonzero = int(value.split()[0])
        elif key == "Loss":
            self._loss = float(value)
        elif key == "Line search trials":
            done = Iteration(self._number, self._loss, int(value), self._ended)
            self.iterations.append(done)
            if self.on_iteration is not None:
                self.on_iteration(done)

    def append_all(self, X: list[Any], y: list[list[str]]) -> None:
        for tokens, labels in zip(X, y, strict=True):
            self.append(tokens, labels)

    def seconds_per_evaluation(self, skip: int) -> list[float]:
        """Of each iteration after the first `skip`: its time over its evaluations."""
        pairs = zip(self.iterations[skip - 1 :], self.iterations[skip:], strict=False)
        return [(b.ended - a.ended) / b.evaluations for a, b in pairs]
