"""For solvers whose steps may go up: the best iterate is kept, and divergence is noticed."""

from __future__ import annotations

import numpy as np

from chordal._status import Status
from chordal.oracle import Floats
from chordal.solvers._base import Run

GROWTH = 1e6  # of the objective: no noise either
RISES = 10  # so many in a row, and above where the run began: no noise


class Watch:
    """Records iterations of a run whose value may rise.

    The run's weights are those with the lowest value so far, from the start on. Values that are
    not finite, that are a million times the first, or that rise ten times in a row to above the
    first, raise an error.

    Parameters
    ----------
    run : Run
    advice : str
        What to try where the run diverges.
    """

    def __init__(self, run: Run, advice: str) -> None:
        self._run, self._advice = run, advice
        self._first = self._last = run.value
        self._rises = 0
        self._bests: list[float] = [run.value]

    def check(self, value: float, weights: Floats) -> None:
        """Refuse what shows that steps are too large."""
        far = GROWTH * max(1.0, abs(self._first))
        if not value < self._first + far or not np.isfinite(weights).all():
            self._refuse(f"the objective went from {self._first:.6g} to {value:.6g}")

    def record(
        self, weights: Floats, value: float, gradient: Floats | None = None
    ) -> Status | None:
        """Count an iteration; a status when the run should end."""
        run = self._run
        self.check(value, weights)
        self._rises = self._rises + 1 if value > self._last else 0
        self._last = value
        if self._rises >= RISES and value > self._first:
            self._refuse(
                f"the objective rose {RISES} times in a row, from {self._first:.6g} to {value:.6g}"
            )
        norm = float("nan") if gradient is None else float(np.linalg.norm(gradient))
        if value < run.value:
            run.weights, run.value, run.gradient_norm = weights, value, norm
        self._bests.append(run.value)
        if run.record(weights, value, norm) is not None:
            return Status.STOPPED
        small = run.solver.tol * max(1.0, float(np.linalg.norm(weights)))
        if norm <= small and value == run.value:
            return Status.CONVERGED
        if run.n_iter >= run.solver.max_iter:
            return Status.MAX_ITERATIONS
        return None

    def settled(self, window: int) -> bool:
        """Whether the lowest value fell by less than tol, relatively, in so many iterations."""
        if len(self._bests) <= window:
            return False
        fall = self._bests[-1 - window] - self._bests[-1]
        return fall < self._run.solver.tol * abs(self._bests[-1])

    def steady(self, window: int) -> bool:
        """Settled, and at the lowest value rather than swinging above it."""
        run = self._run
        close = self._last - run.value <= run.solver.tol * abs(run.value)
        return self.settled(window) and close

    def refuse_fruitless(self, n_iter: int) -> None:
        """Refuse steps of which none in so many iterations came below where the run began."""
        if self._run.n_iter == n_iter and self._run.value == self._first < self._last:
            self._refuse(
                f"no step of {n_iter} lowered the objective, which went from {self._first:.6g} to "
                f"{self._last:.6g}"
            )

    def _refuse(self, what: str) -> None:
        raise ValueError(
            f"solver {self._run.solver.name!r} diverges: {what}; {self._advice}, "
            "or scale the features"
        )
