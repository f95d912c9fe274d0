"""Adam: steps scaled by running means of the gradient and of its square."""

from __future__ import annotations

from typing import final

import numpy as np

from chordal._validate import RandomState, check_number
from chordal.oracle import Floats, Problem
from chordal.solvers._base import Run
from chordal.solvers._passes import Batch, Evaluated, PassSolver, Stepper


@final
class Adam(PassSolver):
    """w ← w − η m̂ / (√v̂ + ε), with running means m of the gradient and v of its square.

    It takes any objective with a gradient. An iteration is a pass over all mini-batches in a new
    order; see `batch_size`.

    Parameters
    ----------
    max_iter : int
        Most passes over the examples.
    tol : float
        Steps are halved when the objective of a pass has not fallen by this, relatively, for two
        passes; converged after ten times.
    l1 : float
        Must be 0.
    random_state : int, Generator or None
        Seed: which examples are in a mini-batch, and the orders of mini-batches.
    batch_size : int or None
        Examples in a mini-batch; None: all, with one step per pass.
    learning_rate : float
        η: about how far a weight moves in a step.
    beta1, beta2 : float
        The shares of m and v that are kept from step to step.
    epsilon : float
        ε: keeps weights still whose gradient is all but zero.

    References
    ----------
    Kingma and Ba (2015), Adam: a method for stochastic optimization.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> X, y = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"]]], [["D", "N", "V"], ["D", "N"]]
    >>> ChainCRF(solver="adam", l2=0.1, random_state=0).fit(X, y).predict(X)
    [['D', 'N', 'V'], ['D', 'N']]
    """

    def __init__(
        self,
        max_iter: int = 200,
        tol: float = 3e-3,
        l1: float = 0.0,
        random_state: RandomState = None,
        batch_size: int | None = 64,
        learning_rate: float = 0.2,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> None:
        super().__init__(max_iter, tol, l1, random_state, batch_size)
        check_number("learning_rate", learning_rate, strict=True)
        check_number("epsilon", epsilon, strict=True)
        for name, value in (("beta1", beta1), ("beta2", beta2)):
            check_number(name, value)
            if value >= 1.0:
                raise ValueError(f"{name} must be below 1, got {value!r}")
        self.learning_rate, self.epsilon = learning_rate, epsilon
        self.beta1, self.beta2 = beta1, beta2

    def check(self, problem: Problem) -> None:
        """Values that are estimated from samples will do."""

    def _stepper(self, run: Run, batches: list[Batch]) -> Stepper:
        return _Moments(self, len(run.weights))

    def _advice(self) -> str:
        return f"use a learning_rate below {self.learning_rate:g}"


class _Moments(Stepper):
    def __init__(self, adam: Adam, n_weights: int) -> None:
        self._adam, self._steps = adam, 0
        self._mean, self._square = np.zeros(n_weights), np.zeros(n_weights)

    def step(
        self, batch: Batch, weights: Floats, here: Evaluated, rate: float
    ) -> tuple[Floats, Evaluated | None]:
        adam, gradient = self._adam, here[1]
        self._steps += 1
        self._mean += (1.0 - adam.beta1) * (gradient - self._mean)
        self._square += (1.0 - adam.beta2) * (gradient * gradient - self._square)
        size = rate * adam.learning_rate / (1.0 - adam.beta1**self._steps)
        root = np.sqrt(self._square / (1.0 - adam.beta2**self._steps))
        return weights - size * self._mean / (root + adam.epsilon), None
