"""OWL-QN: L-BFGS for objectives with an L1 term, which leaves most weights at zero."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from chordal._status import Status
from chordal.oracle import Floats
from chordal.solvers._base import Run, Solver
from chordal.solvers._history import CurvatureHistory


@final
class Owlqn(Solver):
    """Orthant-wise limited-memory quasi-Newton.

    Each step stays in the orthant that the pseudo-gradient chooses: there ‖w‖₁ is linear, and
    the quasi-Newton model of the smooth part applies.

    References
    ----------
    Andrew and Gao (2007), Scalable training of L1-regularized log-linear models.
    """

    handles_l1: ClassVar[bool] = True

    def __init__(
        self, max_iter: int = 1000, tol: float = 1e-5, l1: float = 0.0, memory: int = 8
    ) -> None:
        super().__init__(max_iter, tol, l1)
        self.memory = memory

    def _run(self, run: Run) -> Status:
        history = CurvatureHistory(self.memory)
        pseudo = self._pseudo_gradient(run.weights, run.gradient)
        run.gradient_norm = float(np.linalg.norm(pseudo))
        if run.converged():
            return Status.CONVERGED
        while True:
            direction = history.direction(pseudo)
            direction[direction * pseudo >= 0.0] = 0.0  # keep to directions of descent
            point = self._search(run, pseudo, direction, first=len(history) == 0)
            if point is None:
                if len(history) == 0:
                    return Status.STALLED
                history.clear()
                continue
            weights, value, gradient = point
            history.add(weights - run.weights, gradient - run.gradient)
            pseudo = self._pseudo_gradient(weights, gradient)
            status = run.accept(weights, value, gradient, float(np.linalg.norm(pseudo)))
            if status is not None:
                return status

    def _pseudo_gradient(self, weights: Floats, gradient: Floats) -> Floats:
        """The subgradient of least norm."""
        right, left = gradient + self.l1, gradient - self.l1
        at_zero = np.where(right < 0.0, right, np.where(left > 0.0, left, 0.0))
        return np.where(weights > 0.0, right, np.where(weights < 0.0, left, at_zero))

    def _search(
        self, run: Run, pseudo: Floats, direction: Floats, first: bool
    ) -> tuple[Floats, float, Floats] | None:
        """Backtrack along the direction, projected onto the orthant, until the value falls."""
        orthant = np.where(run.weights != 0.0, np.sign(run.weights), -np.sign(pseudo))
        step = min(1.0, 1.0 / run.gradient_norm) if first else 1.0
        for _ in range(40):
            weights = run.weights + step * direction
            weights[weights * orthant <= 0.0] = 0.0
            expected = float(np.dot(pseudo, weights - run.weights))
            if expected >= 0.0:
                return None
            value, gradient = run.evaluate(weights)
            if value <= run.value + 1e-4 * expected:
                return weights, value, gradient
            step *= 0.5
        return None
