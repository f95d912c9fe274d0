"""Stochastic meta-descent: an adaptive step size for every weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from chordal._saved import Kept
from chordal.oracle import Floats, Oracle, SecondOrderBatchOracle, SecondOrderOracle
from chordal.solvers._base import Run, number
from chordal.solvers._passes import PassSolver, Steps


@final
@dataclass(eq=False)
class StochasticMetaDescent(PassSolver):
    """w ← w − p g, with a gain p per weight, itself adapted by gradient steps.

    With g and H of a mini-batch, and v the derivative of the weights in the logarithm of the gains,
    remembered over about 1/(1 − decay) steps:

        p ← p · clip(1 − μ g v, ½, 2)    w ← w − p g    v ← decay · v − p (g + decay · H v)

    Each step costs a gradient and a Hessian–vector product.

    Parameters
    ----------
    learning_rate : float, optional
        Initial gains. By default a fifth of the best step for the first mini-batch along its
        gradient, by its curvature.
    meta_rate : float, default=0.1
        μ: how fast the gains change.
    decay : float, default=0.99
        Decay factor of v per step, between 0 and 1.

    References
    ----------
    Vishwanathan, Schraudolph, Schmidt and Murphy (2006), Accelerated training of conditional random
    fields with stochastic gradient methods.
    """

    tol: float = number(3e-4, minimum=-np.inf)
    batch_size: int | None = number(16, minimum=1)
    learning_rate: float | None = number(None, strict=True)
    meta_rate: float = number(0.1)
    decay: float = number(0.99)

    asks: ClassVar[type] = SecondOrderBatchOracle
    asks_whole: ClassVar[type] = SecondOrderOracle
    passes: ClassVar[int] = 4
    restarts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decay > 1.0:
            raise ValueError(f"decay must be at most 1, got {self.decay!r}")

    def remedy(self) -> str:
        """Advice: smaller steps."""
        return "use a smaller learning_rate or meta_rate"

    def _steps(self, run: Run, batches: Sequence[Oracle]) -> Steps:
        rate = self.learning_rate or 0.0
        if self.learning_rate is None and not run.resumed:
            rate = _calibrated(run, batches[0])
        return _Gains(self, run, rate)


class _Gains(Kept):
    """A gain for every weight, and the derivative of the weights in its logarithm."""

    kept: ClassVar[tuple[str, ...]] = ("gains", "trace")

    def __init__(self, solver: StochasticMetaDescent, run: Run, rate: float) -> None:
        self._solver, self._run = solver, run
        self.gains, self.trace = np.full(len(run.weights), float(rate)), np.zeros(len(run.weights))

    def step(self, batch: Oracle, weights: Floats, gradient: Floats, rate: float) -> Floats:
        """A step of the gains' size."""
        own, trace = self._solver, self.trace
        self.gains *= np.clip(1.0 - own.meta_rate * gradient * trace, 0.5, 2.0)
        now = rate * self.gains
        product = self._run.hess_vec(batch, weights, trace)
        self.trace = own.decay * trace - now * (gradient + own.decay * product)
        return weights - now * gradient


def _calibrated(run: Run, batch: Oracle) -> float:
    """A fifth of the best step along the gradient, by the quadratic model."""
    gradient = run.ask(batch, run.weights)[1]
    curvature = float(gradient @ run.hess_vec(batch, run.weights, gradient))
    square = float(gradient @ gradient)
    return 0.2 * square / curvature if curvature > 0.0 else 1.0
