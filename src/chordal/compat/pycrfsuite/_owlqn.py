"""OWL-QN as its authors published it, which is what CRFsuite runs.

chordal's own `owlqn` solver goes other ways to the same optimum. Programs that end a run early, by
`max_iterations`, see where the path was: on this one they get the scores that CRFsuite gives.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from chordal._status import Status
from chordal.oracle import Floats
from chordal.solvers import Run, Solver, number
from chordal.solvers.lbfgs import Pair, two_loop

SUFFICIENT = 1e-4  # share of the expected decrease that a step must reach


@final
@dataclass(eq=False)
class OriginalOWLQN(Solver):
    """Orthant-wise limited-memory quasi-Newton, with curvature pairs of all weights.

    Parameters
    ----------
    l1 : float
        Weight of ‖w‖₁.
    memory : int
        Pairs of steps and gradient changes that are remembered.
    max_trials : int
        Most evaluations of a line search, which halves its step each time.

    References
    ----------
    Andrew and Gao (2007), Scalable training of L1-regularized log-linear models.
    """

    tol: float = number(0.0, minimum=-np.inf)
    l1: float = number(0.0)
    memory: int = 6
    max_trials: int = 20

    handles_l1: ClassVar[bool] = True

    def _run(self, run: Run) -> Status:
        pairs: deque[Pair] = deque(maxlen=self.memory)
        pseudo = self._pseudo_gradient(run.weights, run.gradient)
        run.gradient_norm = float(np.linalg.norm(pseudo))
        status = Status.CONVERGED if run.gradient_norm == 0.0 else None
        while status is None:
            direction = two_loop(pairs, pseudo)
            direction[direction * pseudo >= 0.0] = 0.0
            step = 1.0 if pairs else 1.0 / run.gradient_norm
            found = self._search(run, pseudo, direction, step)
            if found is None:
                return Status.STALLED
            weights, value, gradient = found
            s, y = weights - run.weights, gradient - run.gradient
            curvature = float(np.dot(s, y))
            if curvature > 0.0:
                pairs.append((s, y, curvature))
            pseudo = self._pseudo_gradient(weights, gradient)
            status = run.accept(weights, value, gradient, float(np.linalg.norm(pseudo)))
        return status

    def _pseudo_gradient(self, weights: Floats, gradient: Floats) -> Floats:
        """The subgradient of least norm."""
        shrunk = np.sign(gradient) * np.maximum(np.abs(gradient) - self.l1, 0.0)
        return np.where(weights == 0.0, shrunk, gradient + self.l1 * np.sign(weights))

    def _search(
        self, run: Run, pseudo: Floats, direction: Floats, step: float
    ) -> tuple[Floats, float, Floats] | None:
        """Halve the step, projected onto the orthant, until the value falls enough."""
        old = run.weights
        orthant = np.where(old == 0.0, -pseudo, old)
        for _ in range(self.max_trials):
            weights = old + step * direction
            weights[weights * orthant <= 0.0] = 0.0
            value, gradient = run.evaluate(weights)
            if value <= run.value + SUFFICIENT * float(np.dot(weights - old, pseudo)):
                return weights, value, gradient
            step *= 0.5
        return None
