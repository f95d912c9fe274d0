"""The base class of methods with iterated messages."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import ClassVar

import numpy as np

from chordal import _kernels
from chordal._status import Status
from chordal._validate import check_number
from chordal.inference._answers import Convergence, Marginals
from chordal.inference._base import Inference
from chordal.inference._cliques import message_cells, propagated
from chordal.potentials import Floats, Potentials, refuse_infeasible
from chordal.structures import Structure

#: The tolerance of rough answers.
ROUGH = 1e-4


def ending(done: _kernels.Iterations, tol: float) -> Convergence:
    """The common convergence of all examples; NaN never counts as small."""
    if done.late:
        return Convergence(Status.MAX_TIME, int(done.n_iter.max(initial=0)), np.inf)
    status = Status.CONVERGED if (done.change <= tol).all() else Status.MAX_ITERATIONS
    n_iter, change = int(done.n_iter.max(initial=0)), float(done.change.max(initial=0.0))
    return Convergence(status, n_iter, change)


class SumProduct(Inference):
    """Marginals by messages, iterated until they settle; exact without loops."""

    anytime: ClassVar[bool] = True

    def __init__(
        self,
        damping: float,
        tol: float,
        max_iter: int,
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(time_limit=time_limit, memory_limit=memory_limit)
        check_number("damping", damping)
        if damping >= 1.0:
            raise ValueError(f"damping must be below 1, got {damping!r}")
        check_number("tol", tol)
        check_number("max_iter", max_iter, minimum=1, integer=True)
        self.damping, self.tol, self.max_iter = float(damping), float(tol), max_iter

    def supports(self, structure: Structure) -> bool:
        """Any structure."""
        return True

    def exact_on(self, structure: Structure) -> bool:
        """Exact on forests."""
        return structure.is_forest

    def rough(self) -> Inference:
        """Until messages hardly change."""
        made = copy(self)
        made.tol = max(self.tol, ROUGH)
        return made

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """Messages in both directions, beliefs and marginals."""
        return 8.0 * (3.0 * message_cells(structure) + 4.0 * structure.n_states)

    def log_partition(self, potentials: Potentials) -> Floats:
        """An estimate of log Z, exact on forests."""
        return self._answer(potentials, None, None).log_partition

    def marginals(
        self, potentials: Potentials, weight: Floats | None = None, overwrite: bool = False
    ) -> Marginals:
        """Marginals where the messages ended."""
        found = self._answer(potentials, weight, potentials.zeros())
        refuse_infeasible(found.log_partition)
        return found

    @abstractmethod
    def _propagate(
        self,
        potentials: Potentials,
        parts: Potentials | None,
        weight: Floats | None,
        log_partition: Floats,
        forbidden: bool,
    ) -> _kernels.Iterations:
        """Call the kernel, which writes log Z and, if there are parts, marginals."""

    def _settings(
        self, forbidden: bool, schedule: str, logarithms: bool
    ) -> _kernels.MessageSettings:
        return _kernels.MessageSettings(
            schedule=schedule,
            damping=self.damping,
            tolerance=self.tol,
            max_iter=self.max_iter,
            logarithms=logarithms,
            forbidden=forbidden,
        )

    def _answer(
        self, potentials: Potentials, weight: Floats | None, parts: Potentials | None
    ) -> Marginals:
        log_partition = np.zeros(potentials.structure.n_examples)
        left = propagated(potentials)
        forbidden = left is not potentials  # known without another look at the tables
        done = self._propagate(left, parts, weight, log_partition, forbidden)
        ended = ending(done, self.tol)
        return Marginals(log_partition, potentials if parts is None else parts, ended)
