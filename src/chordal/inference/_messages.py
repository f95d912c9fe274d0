"""What methods that iterate over cliques share: the arrays they take, and how their run ended."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._status import Status
from chordal.inference._base import Run
from chordal.potentials import Floats, Potentials


def factor_arrays(potentials: Potentials) -> tuple[NDArray[Any], ...]:
    """The structure and the scores in the order in which kernels take them."""
    s = potentials.structure
    return (
        s.state_offsets,
        s.variable_offsets,
        s.clique_offsets,
        s.scope_offsets,
        s.scopes,
        potentials.table_offsets,
        potentials.table_of_clique,
        potentials.unary,
        potentials.tables,
    )


def run_of(n_iter: NDArray[np.int64], change: Floats, tol: float) -> Run:
    """How the examples ended together; no NaN counts as small."""
    worst = float(change.max(initial=0.0))
    status = Status.CONVERGED if (change <= tol).all() else Status.MAX_ITERATIONS
    return Run(status, int(n_iter.max(initial=0)), worst)
