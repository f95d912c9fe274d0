"""Truncated Newton: conjugate gradients in a trust region, with Hessian–vector products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, final

import numpy as np

from chordal._status import Status
from chordal.oracle import Floats, SecondOrderOracle
from chordal.solvers._base import Run, Solver, number
from chordal.solvers._keeping import LoopState

ACCEPT = 1e-4  # the share of the predicted fall that a step has to bring


@dataclass
class _Trust(LoopState):
    radius: float
    first: float  # the gradient's norm at the start


class _Step(NamedTuple):
    direction: Floats
    predicted: float  # how far the quadratic model falls
    at_edge: bool  # of the trust region


@final
@dataclass(eq=False)
class NewtonCG(Solver):
    """Newton steps computed by conjugate gradients, only as precisely as needed.

    The Hessian is never stored: each iteration of conjugate gradients needs its product with one
    vector, at about the cost of a gradient. A step ends at the boundary of the trust region
    (Steihaug), so no line search is needed.

    Parameters
    ----------
    tol : float, default=1e-5
        The run converges when a step inside the trust region lowered the value by less than this
        fraction, or when ‖gradient‖ < tol · max(1, ‖w‖).
    max_products : int, default=200
        Maximum number of Hessian–vector products per iteration.

    References
    ----------
    Steihaug (1983), The conjugate gradient method and trust regions in large scale optimization;
    Lin, Weng and Keerthi (2008), Trust region Newton method for large-scale logistic regression.
    """

    max_iter: int = number(200, minimum=1)
    max_products: int = number(200, minimum=1)

    asks: ClassVar[type] = SecondOrderOracle

    def _run(self, run: Run) -> Status:
        trust, status = run.keep("trust", _Trust(np.inf, run.gradient_norm)), None
        while status is None:
            run.between()
            forcing = min(0.25, np.sqrt(run.gradient_norm / trust.first))
            step = self._step(run, trust.radius, forcing)
            if step.predicted <= 1e-14 * max(1.0, abs(run.value)):
                return Status.CONVERGED  # what is left to gain is lost in rounding
            length = float(np.linalg.norm(step.direction))
            weights = run.weights + step.direction
            value, gradient = run.evaluate(weights)
            norm = float(np.linalg.norm(gradient))
            run.changing()
            share = (run.value - value) / step.predicted  # −inf or NaN outside the domain
            if share > 0.75 and step.at_edge:
                trust.radius = 3.0 * trust.radius
            elif not share > 0.25:
                trust.radius = 0.25 * length
            if share > ACCEPT and np.isfinite(norm):
                fall = run.value - value
                status = run.accept(weights, value, gradient, norm)
                if status is None and not step.at_edge and fall < self.tol * abs(value):
                    status = Status.CONVERGED
            elif length <= 1e-14 * max(1.0, float(np.linalg.norm(run.weights))):
                return Status.STALLED
        return status

    def _step(self, run: Run, radius: float, forcing: float) -> _Step:
        """The minimum of gᵀd + ½ dᵀHd in the region, to a residual of `forcing` ‖g‖."""
        d = np.zeros_like(run.weights)
        residual = -run.gradient
        p = residual.copy()
        square, goal = float(residual @ residual), (forcing * run.gradient_norm) ** 2
        predicted = 0.0
        for _ in range(self.max_products):
            product = run.hess_vec(run.oracle, run.weights, p)
            curvature = float(p @ product)
            if curvature <= 0.0 and radius == np.inf:
                radius = max(1.0, float(np.linalg.norm(run.weights)))
            alpha = square / curvature if curvature > 0.0 else np.inf
            edge = _to_edge(d, p, radius)
            at_edge = alpha >= edge
            alpha = min(alpha, edge)
            d += alpha * p
            predicted += alpha * float(residual @ p) - 0.5 * alpha**2 * curvature
            if at_edge:
                return _Step(d, predicted, True)
            residual -= alpha * product
            square, before = float(residual @ residual), square
            if square <= goal:
                break
            p = residual + (square / before) * p
        return _Step(d, predicted, False)


def _to_edge(d: Floats, p: Floats, radius: float) -> float:
    """The α ≥ 0 with ‖d + α p‖ = radius."""
    if radius == np.inf:
        return np.inf
    a, b, c = float(p @ p), float(d @ p), float(d @ d) - radius**2
    return (-b + np.sqrt(max(0.0, b * b - a * c))) / a
