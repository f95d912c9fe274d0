"""Adam: steps scaled by running means of the gradient and of its square."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from chordal._saved import Kept
from chordal.oracle import Floats, Oracle, Problem
from chordal.solvers._base import Run, number
from chordal.solvers._passes import PassSolver, Steps


@final
@dataclass(eq=False)
class Adam(PassSolver):
    """w ← w − η m̂ / (√v̂ + ε), with running means m of the gradient and v of its square.

    It takes any objective with a gradient. An iteration is a pass over all mini-batches in a new
    order; see `batch_size`. Where steps on one batch are halved, it goes on from the best weights,
    with new means.

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

    window: ClassVar[int] = 40  # its means swing: less would take a swing for the end

    def check(self, problem: Problem) -> None:
        """Values that are estimated from samples will do."""
        self.refuse_zero(problem)

    def remedy(self) -> str:
        """Smaller steps."""
        return f"use a learning_rate below {self.learning_rate:g}"

    def _steps(self, run: Run, batches: Sequence[Oracle]) -> Steps:
        return _Means(self, len(run.weights))


class _Means(Kept):
    """Running means, and how many steps they are of."""

    kept: ClassVar[tuple[str, ...]] = ("mean", "square", "k")

    def __init__(self, solver: Adam, n_weights: int) -> None:
        self._solver, self.k = solver, 0
        self.mean, self.square = np.zeros(n_weights), np.zeros(n_weights)

    def step(self, batch: Oracle, weights: Floats, gradient: Floats, rate: float) -> Floats:
        """A step down the mean."""
        own = self._solver
        self.k += 1
        self.mean += (1.0 - own.beta1) * (gradient - self.mean)
        self.square += (1.0 - own.beta2) * (gradient * gradient - self.square)
        size = rate * own.learning_rate / (1.0 - own.beta1**self.k)
        root = np.sqrt(self.square / (1.0 - own.beta2**self.k))
        return weights - size * self.mean / (root + own.epsilon)
