"""What methods that iterate over cliques share: the arrays they take, and how their run ended."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._status import Status
from chordal._validate import check_number
from chordal.inference._base import Inference, Marginals, Run
from chordal.potentials import Floats, Potentials, refuse_infeasible
from chordal.structures import Structure


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


class SumProduct(Inference):
    """Marginals by messages that go round until they settle; exact where there is no loop."""

    def __init__(self, damping: float, tol: float, max_iter: int) -> None:
        check_number("damping", damping)
        if damping >= 1.0:
            raise ValueError(f"damping must be below 1, got {damping!r}")
        check_number("tol", tol)
        check_number("max_iter", max_iter, minimum=1, integer=True)
        self.damping, self.tol, self.max_iter = float(damping), float(tol), max_iter

    def supports(self, structure: Structure) -> bool:
        return True

    def exact_on(self, structure: Structure) -> bool:
        return structure.is_forest

    def log_partition(self, potentials: Potentials) -> Floats:
        return self._answer(potentials, None, None).log_partition

    def marginals(
        self, potentials: Potentials, weight: Floats | None = None, overwrite: bool = False
    ) -> Marginals:
        found = self._answer(potentials, weight, potentials.zeros())
        refuse_infeasible(found.log_partition)
        return found

    @abstractmethod
    def _propagate(self, potentials: Potentials, *results: NDArray[Any] | None) -> None:
        """Call the kernel with weight, unary and table marginals, log Z, iterations, change."""

    def _answer(
        self, potentials: Potentials, weight: Floats | None, parts: Potentials | None
    ) -> Marginals:
        n = potentials.structure.n_examples
        log_partition, change = np.zeros(n), np.zeros(n)
        n_iter = np.zeros(n, dtype=np.int64)
        cells = (None, None) if parts is None else (parts.unary, parts.tables)
        self._propagate(potentials, weight, *cells, log_partition, n_iter, change)
        run = run_of(n_iter, change, self.tol)
        return Marginals(log_partition, potentials if parts is None else parts, run)
