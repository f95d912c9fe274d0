"""Small quadratic programs, by Clarabel (the extra `qp`)."""

from __future__ import annotations

import numpy as np

from chordal.oracle import Floats


def simplex_program(gram: Floats, offsets: Floats) -> Floats:
    """argmax ⟨offsets, α⟩ − ½ αᵀ gram α over α ≥ 0, Σ α = 1."""
    try:
        import clarabel
    except ImportError:
        raise ImportError(
            "cutting planes need a solver of quadratic programs: pip install chordal[qp]"
        ) from None
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
