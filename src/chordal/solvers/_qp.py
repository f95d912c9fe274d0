"""Small quadratic programs, by Clarabel (the extra `qp`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from chordal.oracle import Floats


def quadratic_program(P: Any, q: Floats, A: Any, b: Floats, n_equal: int) -> tuple[Floats, Floats]:
    """argmin ½ xᵀP x + qᵀx with A x = b in the first `n_equal` rows and A x ≤ b in the others.

    P and A are SciPy sparse matrices. Returns x, and the multipliers of the rows.
    """
    try:
        import clarabel
    except ImportError:
        raise ImportError(
            "cutting planes need a solver of quadratic programs: pip install chordal[qp]"
        ) from None
    import scipy.sparse as sp

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-9
    cones = [clarabel.ZeroConeT(n_equal), clarabel.NonnegativeConeT(len(b) - n_equal)]
    upper = sp.csc_matrix(sp.triu(P))
    solution = clarabel.DefaultSolver(upper, q, sp.csc_matrix(A), b, cones, settings).solve()
    return np.asarray(solution.x), np.asarray(solution.z)


def simplex_program(gram: Floats, offsets: Floats) -> Floats:
    """argmax ⟨offsets, α⟩ − ½ αᵀ gram α over α ≥ 0, Σ α = 1."""
    import scipy.sparse as sp

    n = len(offsets)
    if n == 1:
        return np.ones(1)
    scale = 1.0 / max(float(np.abs(np.diag(gram)).max()), float(np.abs(offsets).max()), 1e-300)
    A = sp.vstack([sp.csc_matrix(np.ones((1, n))), -sp.identity(n)])
    b = np.concatenate([[1.0], np.zeros(n)])
    alpha, _ = quadratic_program(sp.csc_matrix(scale * gram), -scale * offsets, A, b, 1)
    alpha = np.where(np.isfinite(alpha), np.maximum(alpha, 0.0), 0.0)
    total = float(alpha.sum())
    if not total > 0.0:  # nothing usable came back: the newest plane alone is feasible
        return np.asarray(np.eye(n)[-1])
    return alpha / total
