"""One-slack cutting planes: planes under the whole loss, and a small quadratic program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from chordal._optional import needed
from chordal._status import Status
from chordal.oracle import Floats
from chordal.solvers._base import number
from chordal.solvers._dual import DualRun, DualSolver

SHARE = 0.3  # of the way from the best weights to the model's minimum


@final
@dataclass(eq=False)
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
    max_idle : int
        Programs after which an inactive plane is removed.

    Notes
    -----
    Any convex objective will do, also a smooth one. The program is solved by Clarabel:
    ``pip install "chordal[qp]"``.

    References
    ----------
    Joachims, Finley and Yu (2009), Cutting-plane training of structural SVMs; Teo et al. (2010),
    Bundle methods for regularized risk minimization.
    """

    max_idle: int = number(20, minimum=1)

    packages: ClassVar[tuple[str, ...]] = ("clarabel", "scipy")

    def _run(self, run: DualRun) -> Status:
        model, weights = _Model(run), run.weights
        status, share, dual = None, 1.0, 0.0
        while status is None:
            value, offset, slope = run.plane(weights)
            # Planes are labellings: those that approximate inference has overlooked here count too.
            value = max(value, model.value(weights))
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

    def value(self, weights: Floats) -> float:
        """The model at these weights, with the regularisation, up to rounding from below."""
        v = weights - self._centre
        height = float((self._offsets + self._slopes @ v).max())
        return height - 1e-9 * abs(height) + 0.5 * self._l2 * float(v @ v)

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


def simplex_program(gram: Floats, offsets: Floats) -> Floats:
    """argmax ⟨offsets, α⟩ − ½ αᵀ gram α over α ≥ 0, Σ α = 1, by Clarabel (the extra `qp`)."""
    with needed("clarabel", "solver 'one_slack'"), needed("scipy", "solver 'one_slack'", "qp"):
        import clarabel
        import scipy.sparse as sp

    n = len(offsets)
    if n == 1:
        return np.ones(1)
    scale = 1.0 / max(float(np.abs(np.diag(gram)).max()), float(np.abs(offsets).max()), 1e-300)
    A = sp.vstack([sp.csc_matrix(np.ones((1, n))), -sp.identity(n)])
    b = np.concatenate([[1.0], np.zeros(n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-9
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)]
    upper = sp.csc_matrix(sp.triu(sp.csc_matrix(scale * gram)))
    program = clarabel.DefaultSolver(upper, -scale * offsets, sp.csc_matrix(A), b, cones, settings)
    alpha = np.asarray(program.solve().x)
    alpha = np.where(np.isfinite(alpha), np.maximum(alpha, 0.0), 0.0)
    total = float(alpha.sum())
    if not total > 0.0:  # nothing usable came back: the newest plane alone is feasible
        return np.asarray(np.eye(n)[-1])
    return alpha / total
