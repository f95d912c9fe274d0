"""Planes under the whole loss: the model that they make, and solvers that go to its minimum."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from chordal._status import Status
from chordal.oracle import Floats
from chordal.solvers._base import number
from chordal.solvers._dual import DualRun, DualSolver

SHARE = 0.3  # of the way from the best weights to the model's minimum


@dataclass(eq=False)
class PlaneSolver(DualSolver):
    """Minimises the best lower model of a convex loss, and adds the plane that it lacks.

    Parameters
    ----------
    max_iter : int
        Most evaluations.
    max_idle : int
        Programs after which an inactive plane is removed.
    """

    max_idle: int = number(20, minimum=1)

    @abstractmethod
    def _program(self, model: PlaneModel, gap: float) -> Floats:
        """Dual variables of the model's planes, nearly the best; `gap` is that so far."""

    def _full(self, model: PlaneModel) -> bool:
        """Whether two planes have to become one."""
        return False

    def _run(self, run: DualRun) -> Status:
        model, weights = PlaneModel(run), run.weights
        status, share, dual = None, 1.0, 0.0
        while status is None:
            value, offset, slope = run.plane(weights)
            run.improve(weights, value, dual)
            status = run.finish()
            cut = model.cuts(offset, slope)
            if self._full(model):
                model.merge()
            model.add(offset, slope)
            lowest, dual = model.minimum(self._program(model, run.gap), self.max_idle)
            # Between the best weights and the model's minimum, where the plane says more; at the
            # minimum itself where a plane from in between did not cut it off.
            share = SHARE if cut else 1.0
            weights = run.weights + share * (lowest - run.weights)
        return status


class PlaneModel:
    """Planes under the loss in terms of v = w − centre; the first is 0.

    Attributes
    ----------
    l2 : float
    offsets : float64 [n_planes]
    gram : float64 [n_planes, n_planes]
        Products of the slopes.
    alpha : float64 [n_planes]
        The dual variables of the last program; 0 for planes that came since.
    """

    def __init__(self, run: DualRun) -> None:
        self._centre, self.l2 = run.centre, run.oracle.l2
        self._v = np.zeros(len(run.centre))
        self.offsets, self._slopes = np.zeros(1), np.zeros((1, len(run.centre)))
        self.gram, self._idle = np.zeros((1, 1)), np.zeros(1, dtype=np.int64)
        self.alpha = np.ones(1)

    def cuts(self, offset: float, slope: Floats) -> bool:
        """Whether a plane is above the model at the model's minimum."""
        height = float((self.offsets + self._slopes @ self._v).max())
        return offset + float(slope @ self._v) > height + 1e-9 * abs(height)

    def add(self, offset: float, slope: Floats) -> None:
        """Take one more plane."""
        products = self._slopes @ slope
        self.gram = np.block([[self.gram, products[:, None]], [products, slope @ slope]])
        self.offsets = np.append(self.offsets, offset)
        self._slopes = np.vstack([self._slopes, slope])
        self._idle, self.alpha = np.append(self._idle, 0), np.append(self.alpha, 0.0)

    def merge(self) -> None:
        """Make one of the two planes that matter least: their mixture by their dual variables."""
        one, other = np.argsort(self.alpha, kind="stable")[:2]
        total = self.alpha[one] + self.alpha[other]
        share = self.alpha[one] / total if total > 0.0 else 0.0
        mix = np.eye(len(self.alpha))
        mix[other, one], mix[other, other] = share, 1.0 - share
        mix = np.delete(mix, one, axis=0)
        self.gram, self.offsets = mix @ self.gram @ mix.T, mix @ self.offsets
        self._slopes[other] += share * (self._slopes[one] - self._slopes[other])
        self.alpha[other] = total
        kept = np.arange(len(mix) + 1) != one
        self._slopes, self.alpha = self._slopes[kept], self.alpha[kept]
        self._idle = self._idle[kept]

    def minimum(self, alpha: Floats, max_idle: int) -> tuple[Floats, float]:
        """Weights of these dual variables, and their lower bound; idle planes are removed."""
        self._v = -(alpha @ self._slopes) / self.l2
        dual = float(alpha @ self.offsets) - 0.5 * self.l2 * float(self._v @ self._v)
        self._idle = np.where(alpha > 1e-8, 0, self._idle + 1)
        kept = self._idle < max_idle
        self.offsets, self._slopes = self.offsets[kept], self._slopes[kept]
        self.gram, self._idle = self.gram[np.ix_(kept, kept)], self._idle[kept]
        self.alpha = alpha[kept]
        return self._centre + self._v, dual
