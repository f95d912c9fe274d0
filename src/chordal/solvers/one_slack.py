"""One-slack cutting planes: planes under the whole loss, and a small quadratic program."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from chordal._optional import needed
from chordal.oracle import Floats
from chordal.oracle.plane_model import PlaneModel
from chordal.solvers._planes import PlaneSolver


@final
class OneSlack(PlaneSolver):
    """Minimises the best lower model of a convex loss, and adds the plane that it lacks.

    Each evaluation gives a plane under the loss. The weights are those that minimise the highest of
    all planes plus the regularisation, a quadratic program with a variable per plane, whose
    value is the lower bound. Planes that were not used for `max_idle` programs are removed. The
    first plane is taken at the starting weights, so that a good start helps.

    Notes
    -----
    Any convex objective will do, also a smooth one. The program is solved by Clarabel:
    ``pip install "chordal[qp]"``.

    References
    ----------
    Joachims, Finley and Yu (2009), Cutting-plane training of structural SVMs; Teo et al. (2010),
    Bundle methods for regularized risk minimization.
    """

    packages: ClassVar[tuple[str, ...]] = ("clarabel", "scipy")

    def _program(self, model: PlaneModel) -> Floats:
        return simplex_program(model.gram / model.l2, model.offsets)


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
