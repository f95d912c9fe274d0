"""Newton's method with the whole Hessian, for models of few weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast, final

import numpy as np

from chordal._errors import UnsupportedError
from chordal._optional import needed
from chordal._status import Status
from chordal.oracle import Floats, Problem, SecondOrderOracle
from chordal.solvers._base import Run, Solver, number
from chordal.solvers.lbfgs import Point, strong_wolfe


@final
@dataclass(eq=False)
class Newton(Solver):
    """Newton steps −H⁻¹ g with a line search; near the minimum each doubles the correct digits.

    If the Hessian H is not positive definite, a multiple of the identity is added, as small as
    possible. `details["decrement"]` has the Newton decrement √(gᵀ H⁻¹ g) per iteration; half its
    square estimates the distance of the value from its minimum.

    Parameters
    ----------
    tol : float, default=1e-5
        The run converges when the value fell by less than this fraction in the last iteration, or
        when ‖gradient‖ < tol · max(1, ‖w‖).
    max_weights : int, default=5000
        Maximum number of weights; the size of the Hessian is its square. More are an error.

    References
    ----------
    Boyd and Vandenberghe (2004), Convex Optimization, section 9.5.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> X, y = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"]]], [["D", "N", "V"], ["D", "N"]]
    >>> crf = ChainCRF(solver="newton", l2=0.1, tol=1e-12).fit(X, y)
    >>> crf.fit_report_.details["decrement"][-1] < 1e-4
    True
    """

    max_iter: int = number(100, minimum=1)
    max_weights: int = number(5000, minimum=1)

    asks: ClassVar[type] = SecondOrderOracle
    window: ClassVar[int] = 1

    def check(self, problem: Problem) -> None:
        """Raise an error if the Hessian would be too large."""
        super().check(problem)
        n_weights = problem.n_weights
        if n_weights > self.max_weights:
            raise UnsupportedError(
                f"solver 'newton' supports at most {self.max_weights} weights, but there are "
                f"{n_weights}, whose Hessian would take {_size(8 * n_weights**2)}; use "
                "'newton_cg', which does not store it, or 'lbfgs'; or raise max_weights"
            )

    def _run(self, run: Run) -> Status:
        oracle = cast(SecondOrderOracle, run.oracle)
        decrements = run.details.setdefault("decrement", [])
        while True:
            run.between()
            direction = _direction(run.finite(oracle.hessian(run.weights)), run.gradient)
            slope = float(np.dot(direction, run.gradient))
            if -slope <= 1e-12 * max(1.0, abs(run.value)):
                return self._polished(run, direction, decrements)
            start = Point(0.0, run.weights, run.value, run.gradient, slope)
            point = strong_wolfe(run.evaluate, start, direction, 1.0)
            if point is None:
                return Status.STALLED
            run.changing()
            decrements.append(float(np.sqrt(-slope)))
            norm = float(np.linalg.norm(point.gradient))
            status = run.accept(point.weights, point.value, point.gradient, norm)
            if status is not None:
                return status

    def _polished(self, run: Run, direction: Floats, decrements: list[float]) -> Status:
        """Remaining gains are below rounding: one last step, if it halves the gradient."""
        weights = run.weights + direction
        value, gradient = run.evaluate(weights)
        norm = float(np.linalg.norm(gradient))
        same = value - run.value <= 1e-13 * max(1.0, abs(run.value))
        if not same or not norm < 0.5 * run.gradient_norm:
            return Status.CONVERGED
        run.changing()
        decrements.append(float(np.sqrt(max(0.0, -np.dot(direction, run.gradient)))))
        value = min(value, run.value)  # which of them is lower is rounding too
        return run.accept(weights, value, gradient, norm) or Status.CONVERGED


def _direction(hessian: Floats, gradient: Floats) -> Floats:
    """−(H + damping)⁻¹ g, with the smallest damping for which Cholesky succeeds."""
    with needed("scipy", "solver 'newton'"):
        from scipy.linalg import LinAlgError, cho_factor, cho_solve

    largest = max(float(np.abs(np.diag(hessian)).max()), 1e-300)
    damping, diagonal = 0.0, np.diag_indices_from(hessian)
    while True:
        damped = hessian.copy()
        damped[diagonal] += damping
        try:
            factor = cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            pass
        else:
            # A pivot lost in rounding: H is singular, and a solution could be anything.
            if np.diag(factor[0]).min() ** 2 > 1e-14 * largest:
                return np.asarray(-cho_solve(factor, gradient, check_finite=False))
        damping = max(10.0 * damping, 1e-10 * largest)


def _size(n_bytes: int) -> str:
    for unit in ("kB", "MB", "GB", "TB"):
        n_bytes, left = n_bytes // 1000, n_bytes
        if n_bytes < 1000:
            return f"{left / 1000:.3g} {unit}"
    return f"{n_bytes} TB"
