"""Base class of solvers that keep planes under the whole loss."""

from __future__ import annotations

from dataclasses import dataclass

from chordal._status import Status
from chordal.oracle import Floats
from chordal.oracle.plane_model import PlaneModel, best_mixture
from chordal.solvers._base import number
from chordal.solvers._dual import DualRun, DualSolver
from chordal.solvers._keeping import LoopState

SHARE = 0.3  # of the way from the best weights to the model's minimum
ROUGH = 0.5  # a gap, as a share of the value, with which a model is rough


@dataclass
class _Next(LoopState):
    weights: Floats  # where the next plane is taken
    dual: float = 0.0  # no loss is below zero


@dataclass(eq=False)
class PlaneSolver(DualSolver):
    """Minimises a lower model of a convex loss, made of planes, and adds planes to it.

    Parameters
    ----------
    max_iter : int, default=1000
        Maximum number of evaluations.
    max_idle : int, default=20
        Remove a plane after this many quadratic programs in which it was inactive.
    """

    max_idle: int = number(20, minimum=1)

    def _full(self, model: PlaneModel) -> bool:
        """Whether two planes must be merged."""
        return False

    def _run(self, run: DualRun) -> Status:
        model = run.keep("model", PlaneModel(run.oracle.l2, len(run.centre)))
        now, status = run.keep("next", _Next(run.weights)), None
        while status is None:
            run.between()
            value, offset, slope = run.plane(now.weights)
            run.changing()
            # Planes are labellings: those that approximate inference has overlooked here count too.
            value = max(value, model.value(now.weights - run.centre))
            run.improve(now.weights, value, now.dual)
            status = run.finish()
            if self._full(model):
                model.merge()
            model.add(offset, slope)
            mixture = best_mixture(model.gram / model.l2, model.offsets, model.alpha)
            now.dual = model.take(mixture, self.max_idle)
            at = run.weights - run.centre
            # Heights above the minimum say little at first, and where planes had to go.
            short = self._full(model) or run.value - now.dual > ROUGH * abs(run.value)
            v = at + SHARE * (model.v - at) if short else model.near(at, run.value - now.dual)
            now.weights = run.centre + v
        return status
