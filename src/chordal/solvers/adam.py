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

    It supports any objective with a gradient. An iteration is a pass over all mini-batches in a new
    order; see `batch_size`. When steps on a single batch are halved, it restarts from the best
    weights with new means.

    Parameters
    ----------
    learning_rate : float, default=0.2
        η: approximately how far a weight moves per step.
    beta1, beta2 : float, default=0.9 and 0.999
        Decay factors of the running means m and v.
    epsilon : float, default=1e-8
        ε: avoids division by zero for weights with almost no gradient.

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
        """As in `PassSolver`; objectives estimated from samples are supported."""
        self.refuse_zero(problem)

    def remedy(self) -> str:
        """Advice: smaller steps."""
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
