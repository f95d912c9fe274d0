"""Batch Frank–Wolfe: the dual of any convex loss, one plane at a time."""

from __future__ import annotations

from typing import final

import numpy as np

from chordal._status import Status
from chordal.solvers._dual import DualRun, DualSolver


@final
class FrankWolfe(DualSolver):
    """Frank–Wolfe on the dual, with the best step in closed form.

    Each evaluation gives a plane under the loss; the mixture of planes so far moves towards it by
    the step that raises the dual most. Slower than "one_slack", but it keeps two vectors and
    needs no quadratic program; "block_frank_wolfe" is much faster where examples are many. From
    starting weights other than the regularisation's centre the first plane is taken.

    Parameters
    ----------
    max_iter : int
        Most evaluations.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt and Pletscher (2013), Block-coordinate Frank–Wolfe optimization
    for structural SVMs.
    """

    def _run(self, run: DualRun) -> Status:
        l2 = run.oracle.l2
        v, linear = 0.0 * run.centre, 0.0  # the plane 0: no loss is below it
        if not np.array_equal(run.weights, run.centre):
            value, linear, slope = run.plane(run.weights)
            v = -slope / l2
            run.improve(run.weights, value, 0.0)
        status = None
        while status is None:
            weights = run.centre + v
            value, offset, slope = run.plane(weights)
            dual = linear - 0.5 * l2 * float(v @ v)
            run.improve(weights, value, dual)
            status = run.finish()
            direction = -slope / l2 - v
            curvature = l2 * float(direction @ direction)
            gain = value - dual
            step = 1.0 if gain >= curvature else gain / curvature
            v = v + step * direction
            linear += step * (offset - linear)
        return status
