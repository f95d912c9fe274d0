"""Gradient descent: the plainest solver, with a line search or steps of a fixed size."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from chordal._status import Status
from chordal._validate import check_number
from chordal.oracle import Floats
from chordal.solvers._base import Run, Solver
from chordal.solvers._divergence import Watch

MAX_HALVINGS = 60


@final
class GradientDescent(Solver):
    """w ← w − η ∇f(w).

    Without a `learning_rate`, η is tried first as the last step and change of gradient suggest
    (Barzilai and Borwein), and halved until the value falls; the value then never rises. With one,
    every step has this size, and a run that diverges is refused.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    tol : float
        As for every solver: the relative fall in ten iterations, or the gradient.
    l1 : float
        Must be 0.
    learning_rate : float, optional
        η for all steps. The objective is a sum over examples: more of them need a smaller one.
    momentum : float
        With a learning rate: the share of the last step that is added to the next.

    References
    ----------
    Barzilai and Borwein (1988), Two-point step size gradient methods; Polyak (1964), Some methods
    of speeding up the convergence of iteration methods.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> X, y = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"]]], [["D", "N", "V"], ["D", "N"]]
    >>> ChainCRF(solver=GradientDescent(learning_rate=0.1), l2=0.1).fit(X, y).predict(X)
    [['D', 'N', 'V'], ['D', 'N']]
    """

    robust: ClassVar[bool] = False

    def __init__(
        self,
        max_iter: int = 1000,
        tol: float = 1e-5,
        l1: float = 0.0,
        learning_rate: float | None = None,
        momentum: float = 0.0,
    ) -> None:
        super().__init__(max_iter, tol, l1)
        if learning_rate is not None:
            check_number("learning_rate", learning_rate, strict=True)
        check_number("momentum", momentum)
        if momentum >= 1.0:
            raise ValueError(f"momentum must be below 1, got {momentum!r}")
        if momentum > 0.0 and learning_rate is None:
            raise ValueError("momentum needs a learning_rate: a line search goes straight downhill")
        self.learning_rate, self.momentum = learning_rate, momentum

    def _run(self, run: Run) -> Status:
        if run.converged():
            return Status.CONVERGED
        if self.learning_rate is None:
            return self._searching(run)
        return self._fixed(run, float(self.learning_rate))

    def _searching(self, run: Run) -> Status:
        trial = min(1.0, 1.0 / run.gradient_norm)
        while True:
            found = self._downhill(run, trial)
            if found is None:
                return Status.STALLED
            weights, value, gradient = found
            s, y = weights - run.weights, gradient - run.gradient
            curvature = float(s @ y)
            if curvature > 0.0:
                trial = float(s @ s) / curvature
            else:  # a straight or hollow stretch: go faster
                trial = 2.0 * float(np.linalg.norm(s)) / run.gradient_norm
            norm = float(np.linalg.norm(gradient))
            status = run.accept(weights, value, gradient, norm)
            if status is not None:
                return status

    def _downhill(self, run: Run, step: float) -> tuple[Floats, float, Floats] | None:
        """The first of the steps η, η/2, η/4, … whose value is low enough (Armijo)."""
        slope = run.gradient_norm**2
        for _ in range(MAX_HALVINGS):
            weights = run.weights - step * run.gradient
            value, gradient = run.evaluate(weights)
            if value <= run.value - 1e-4 * step * slope and value < run.value:
                return weights, value, gradient
            step *= 0.5
        return None

    def _fixed(self, run: Run, rate: float) -> Status:
        watch = Watch(run, f"use a learning_rate below {rate:g}")
        weights, gradient = run.weights, run.gradient
        velocity = np.zeros_like(weights)
        while True:
            velocity = self.momentum * velocity - rate * gradient
            weights = weights + velocity
            with np.errstate(
                over="ignore", invalid="ignore"
            ):  # divergence is said in our own words
                value, gradient = run.evaluate(weights)
            status = watch.record(weights, value, gradient)
            if status is not None:
                return status
            watch.refuse_fruitless(20)
            if watch.steady(self.window):
                return Status.CONVERGED
