"""L-BFGS: quasi-Newton with limited memory, for smooth objectives."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from chordal._status import Status
from chordal._validate import check_number
from chordal.solvers._base import Run, Solver
from chordal.solvers._history import CurvatureHistory
from chordal.solvers._line_search import Point, strong_wolfe


@final
class LBFGS(Solver):
    """Limited-memory BFGS with a line search for the strong Wolfe conditions.

    Parameters
    ----------
    memory : int
        Pairs of steps and gradient changes that are remembered.

    References
    ----------
    Liu and Nocedal (1989), On the limited memory BFGS method for large scale optimization.
    """

    rotates: ClassVar[bool] = True

    def __init__(
        self, max_iter: int = 1000, tol: float = 1e-5, l1: float = 0.0, memory: int = 6
    ) -> None:
        super().__init__(max_iter, tol, l1)
        check_number("memory", memory, minimum=1, integer=True)
        self.memory = memory

    def _run(self, run: Run) -> Status:
        vectors = run.vectors
        history, direction = CurvatureHistory(self.memory, vectors.run), np.empty_like(run.weights)
        if run.converged():
            return Status.CONVERGED
        while True:
            slope = history.direction(run.gradient, direction)
            if slope >= 0.0:
                history.clear()
                continue
            if -slope <= 1e-14 * max(1.0, abs(run.value)):
                return Status.CONVERGED  # what is left to gain is lost in rounding
            step = 1.0 if len(history) else min(1.0, 1.0 / run.gradient_norm)
            start = Point(0.0, run.weights, run.value, run.gradient, slope)
            point = strong_wolfe(run.evaluate, start, direction, step, vectors)
            if point is None:
                if len(history) == 0:
                    return Status.STALLED
                history.clear()  # try once more along the steepest descent
                continue
            history.add(point.weights, run.weights, point.gradient, run.gradient)
            norm = vectors.norm(point.gradient)
            status = run.accept(point.weights, point.value, point.gradient, norm)
            if status is not None:
                return status
            run.recycle(start.weights, start.gradient)
