"""One-slack cutting planes: planes under the whole loss, and a small quadratic program."""

from __future__ import annotations

from typing import final

import numpy as np

from chordal._status import Status
from chordal._validate import check_number
from chordal.oracle import Floats
from chordal.solvers._dual import DualRun, DualSolver
from chordal.solvers._qp import simplex_program

SHARE = 0.3  # of the way from the best weights to the model's minimum


@final
class OneSlack(DualSolver):
    """Minimises the best lower model of a convex loss, and adds the plane that it lacks.

    Each evaluation gives a plane under the loss. The weights are those that minimise the highest of
    all planes plus the regularisation, a quadratic program with a variable per plane, whose
    value is the lower bound. Planes that were not used for `max_idle` programs are removed. The
    first plane is taken at the starting weights, so that a good start helps.

    Parameters
    ----------
    max_iter : int
        Most evaluations.
    tol : float
        Converged when the duality gap is at most this share of the primal value.
    l1 : float
        Must be 0.
    max_idle : int
        Programs after which an inactive plane is removed.

    Notes
    -----
    Any convex objective will do, also a smooth one. The program is solved by Clarabel:
    ``pip install chordal[qp]``.

    References
    ----------
    Joachims, Finley and Yu (2009), Cutting-plane training of structural SVMs; Teo et al. (2010),
    Bundle methods for regularized risk minimization.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> X, y = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"]]], [["D", "N", "V"], ["D", "N"]]
    >>> crf = ChainCRF("hinge", "one_slack", l2=0.1).fit(X, y)
    >>> crf.predict(X), crf.fit_report_.gap <= 1e-3 * crf.objective_
    ([['D', 'N', 'V'], ['D', 'N']], True)
    """

    def __init__(
        self, max_iter: int = 1000, tol: float = 1e-3, l1: float = 0.0, max_idle: int = 20
    ) -> None:
        super().__init__(max_iter, tol, l1)
        check_number("max_idle", max_idle, minimum=1, integer=True)
        self.max_idle = max_idle

    def _run(self, run: DualRun) -> Status:
        model, weights = _Model(run), run.weights
        status, share, dual = None, 1.0, 0.0
        while status is None:
            value, offset, slope = run.plane(weights)
            run.improve(weights, value, dual)
            status = run.finish()
            cut = model.cuts(offset, slope)
            model.add(offset, slope)
            lowest, dual = model.minimum(self.max_idle)
            # Between the best weights and the model's minimum, where the plane says more; at the
            # minimum itself where a plane from in between did not cut it off.
            share = SHARE if cut else 1.0
            weights = run.weights + share * (lowest - run.weights)
        return status


class _Model:
    """Planes under the loss in terms of v = w − centre; the first is 0."""

    def __init__(self, run: DualRun) -> None:
        self._centre, self._l2 = run.centre, run.oracle.l2
        self._v = np.zeros(len(run.centre))
        self._offsets, self._slopes = np.zeros(1), np.zeros((1, len(run.centre)))
        self._gram, self._idle = np.zeros((1, 1)), np.zeros(1, dtype=np.int64)

    def cuts(self, offset: float, slope: Floats) -> bool:
        """Whether a plane is above the model at the model's minimum."""
        height = float((self._offsets + self._slopes @ self._v).max())
        return offset + float(slope @ self._v) > height + 1e-9 * abs(height)

    def add(self, offset: float, slope: Floats) -> None:
        products = self._slopes @ slope
        self._gram = np.block([[self._gram, products[:, None]], [products, slope @ slope]])
        self._offsets = np.append(self._offsets, offset)
        self._slopes = np.vstack([self._slopes, slope])
        self._idle = np.append(self._idle, 0)

    def minimum(self, max_idle: int) -> tuple[Floats, float]:
        """Weights at the model's minimum, and a lower bound of it; idle planes are removed."""
        alpha = simplex_program(self._gram / self._l2, self._offsets)
        self._v = -(alpha @ self._slopes) / self._l2
        dual = float(alpha @ self._offsets) - 0.5 * self._l2 * float(self._v @ self._v)
        self._idle = np.where(alpha > 1e-8, 0, self._idle + 1)
        kept = self._idle < max_idle
        self._offsets, self._slopes = self._offsets[kept], self._slopes[kept]
        self._gram, self._idle = self._gram[np.ix_(kept, kept)], self._idle[kept]
        return self._centre + self._v, dual
