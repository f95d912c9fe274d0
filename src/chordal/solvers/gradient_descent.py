"""Gradient descent: the simplest solver, with a line search or a fixed step size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from chordal._status import Status
from chordal.oracle import Floats
from chordal.solvers._base import Course, Run, Solver, number
from chordal.solvers._keeping import LoopState
from chordal.solvers._passes import WatchedRun

MAX_HALVINGS = 60


@dataclass
class _Search(LoopState):
    trial: float  # the step to be tried first


@dataclass
class _Moving(LoopState):
    weights: Floats
    gradient: Floats
    velocity: Floats


@final
@dataclass(eq=False)
class GradientDescent(Solver):
    """w ← w − η ∇f(w).

    Without a `learning_rate`, the first trial of η comes from the last step and change of gradient
    (Barzilai and Borwein); it is halved until the value falls. So the value never rises. With a
    `learning_rate`, every step has this size, and divergence is an error.

    Parameters
    ----------
    learning_rate : float, optional
        η of all steps. The objective is a sum over examples: more examples need a smaller η. By
        default a line search chooses it.
    momentum : float, default=0.0
        Fraction of the last step that is added to the next; needs a `learning_rate`.

    References
    ----------
    Barzilai and Borwein (1988), Two-point step size gradient methods; Polyak (1964), Some methods
    of speeding up the convergence of iteration methods.
    """

    learning_rate: float | None = number(None, strict=True)
    momentum: float = number(0.0, below=1.0)

    needs_smooth: ClassVar[bool] = True
    course: ClassVar[type[Course]] = WatchedRun
    robust: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.momentum > 0.0 and self.learning_rate is None:
            raise ValueError("momentum needs a learning_rate; the line search does not use it")

    def remedy(self) -> str:
        """Advice: smaller steps, if their size was given."""
        return f"use a learning_rate below {self.learning_rate:g}" if self.learning_rate else ""

    def _run(self, run: WatchedRun) -> Status:
        if self.learning_rate is None:
            return self._searching(run)
        return self._fixed(run, float(self.learning_rate))

    def _searching(self, run: Run) -> Status:
        search = run.keep("search", _Search(1.0 / max(1.0, run.gradient_norm)))
        while True:
            run.between()
            found = self._downhill(run, search.trial)
            if found is None:
                return Status.STALLED
            run.changing()
            weights, value, gradient = found
            s, y = weights - run.weights, gradient - run.gradient
            curvature = float(s @ y)
            if curvature > 0.0:
                search.trial = float(s @ s) / curvature
            else:  # a straight or hollow stretch: go faster
                search.trial = 2.0 * float(np.linalg.norm(s)) / max(run.gradient_norm, 1e-300)
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

    def _fixed(self, run: WatchedRun, rate: float) -> Status:
        start = _Moving(run.weights, run.gradient, np.zeros_like(run.weights))
        now = run.keep("moving", start)
        while True:
            run.between()
            velocity = self.momentum * now.velocity - rate * now.gradient
            weights = now.weights + velocity
            # Divergence is said in our own words.
            with np.errstate(over="ignore", invalid="ignore"):
                value, gradient = run.evaluate(weights)
            run.changing()
            now.weights, now.gradient, now.velocity = weights, gradient, velocity
            status = run.follow(weights, value, gradient)
            if status is not None:
                return status
            run.refuse_fruitless(20)
            if run.steady(self.window):
                return Status.CONVERGED
