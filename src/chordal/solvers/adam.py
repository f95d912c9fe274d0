"""Adam: steps scaled by running means of the gradient and of its square."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from chordal.oracle import Floats, Problem
from chordal.solvers._base import Run, number
from chordal.solvers._passes import Batch, PassSolver, Stepper


@final
@dataclass(eq=False)
class Adam(PassSolver):
    """w ← w − η m̂ / (√v̂ + ε), with running means m of the gradient and v of its square.

    It takes any objective with a gradient. An iteration is a pass over all mini-batches in a new
    order; see `batch_size`.

    Parameters
    ----------
    learning_rate : float
        η: about how far a weight moves in a step.
    beta1, beta2 : float
        The shares of m and v that are kept from step to step.
    epsilon : float
        ε: keeps weights still whose gradient is all but zero.

    References
    ----------
    Kingma and Ba (2015), Adam: a method for stochastic optimization.
    """

    learning_rate: float = number(0.2, strict=True)
    beta1: float = number(0.9, below=1.0)
    beta2: float = number(0.999, below=1.0)
    epsilon: float = number(1e-8, strict=True)

    def check(self, problem: Problem) -> None:
        """Values that are estimated from samples will do."""

    def remedy(self) -> str:
        """Smaller steps."""
        return f"use a learning_rate below {self.learning_rate:g}"

    def _stepper(self, run: Run, batches: list[Batch]) -> Stepper:
        return _Moments(self, len(run.weights))


class _Moments(Stepper):
    def __init__(self, adam: Adam, n_weights: int) -> None:
        self._adam, self._steps = adam, 0
        self._mean, self._square = np.zeros(n_weights), np.zeros(n_weights)

    def step(self, batch: Batch, weights: Floats, gradient: Floats, rate: float) -> Floats:
        adam = self._adam
        self._steps += 1
        self._mean += (1.0 - adam.beta1) * (gradient - self._mean)
        self._square += (1.0 - adam.beta2) * (gradient * gradient - self._square)
        size = rate * adam.learning_rate / (1.0 - adam.beta1**self._steps)
        root = np.sqrt(self._square / (1.0 - adam.beta2**self._steps))
        return weights - size * self._mean / (root + adam.epsilon)
