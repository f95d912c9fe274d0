"""Dual decomposition of MAP by alternating directions (AD3), compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple, final

import numpy as np

from chordal import _kernels
from chordal._errors import InfeasibleError
from chordal._limits import TimeLimitError, no_time_limit
from chordal._status import Status
from chordal._validate import check_number
from chordal.inference._answers import Convergence, Decoded, Labels, Relaxed
from chordal.inference._base import Inference
from chordal.inference._cliques import message_cells
from chordal.inference._limited import late
from chordal.inference._moves import improved_by_trees
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure

_CONVERGED, _NO_LABELLING = 0, 2


class _Answer(NamedTuple):
    labels: Labels
    score: Floats
    bound: Floats
    parts: Potentials
    convergence: Convergence


@final
class AD3Inference(Inference):
    """The relaxation of `linear_program`, solved piece by piece, with a certificate.

    Every clique finds its best labels given the present beliefs of its variables, by a small
    quadratic program. The answers of cliques are averaged, and multipliers move them towards
    agreement. The multipliers prove an upper bound of all scores. If the labelling rounded from the
    beliefs reaches it, it is the best, and `map` stops with a gap of 0. If the relaxation is
    fractional, bound and score stay apart; `milp` can close the gap.

    It supports cliques of any order and hard constraints, and much larger graphs than linear
    programming solvers. Time per iteration is linear in the size of all tables. Ties between
    labellings make it slow, because beliefs settle between them.

    Parameters
    ----------
    max_iter : int, default=2000
        Maximum number of iterations per example.
    tol : float, default=1e-6
        Stop when no belief differs or changes by more than this.

    References
    ----------
    Martins, Figueiredo, Aguiar, Smith and Xing (2015), AD3: alternating directions dual
    decomposition for MAP inference in graphical models.

    Examples
    --------
    >>> from chordal.structures import Grid
    >>> rng = np.random.default_rng(0)
    >>> grid = Grid([(20, 20)], n_labels=2)
    >>> p = Potentials(grid, rng.normal(size=800), tables=[0.4, 0.0, 0.0, 0.4])
    >>> best = AD3Inference().map(p)
    >>> best.convergence.status.name, bool(best.gap < 1e-6)
    ('CONVERGED', True)
    """

    answers: ClassVar[frozenset[str]] = frozenset({"map", "relaxed_map"})
    # Any cliques, and a certificate; slower than `trw_s`, quicker than `linear_program`.
    quality: ClassVar[Mapping[str, int]] = {"map": 70, "relaxed_map": 70}
    anytime: ClassVar[bool] = True

    def __init__(
        self,
        max_iter: int = 2000,
        tol: float = 1e-6,
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(time_limit=time_limit, memory_limit=memory_limit)
        check_number("max_iter", max_iter, minimum=1, integer=True)
        check_number("tol", tol, strict=True)
        self.max_iter, self.tol = max_iter, tol

    def supports(self, structure: Structure) -> bool:
        """Any structure."""
        return True

    def exact_on(self, structure: Structure) -> bool:
        """Not known in advance: only a closed gap proves it."""
        return False

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """Four numbers per label of each clique's variables, and the state of cliques."""
        return (
            32.0 * message_cells(structure)
            + 24.0 * structure.n_states
            + 300.0 * structure.n_cliques
        )

    def map(self, potentials: Potentials) -> Decoded:
        """The relaxed solution rounded, then improved along trees."""
        self.require("map", potentials.structure)
        found = self._solved(potentials, None, self.max_iter)
        best = Decoded(found.labels, found.score, found.bound, found.convergence)
        return improved_by_trees(potentials, best)

    def relaxed_map(self, potentials: Potentials, weight: Floats | None = None) -> Relaxed:
        """The optimum of the linear relaxation, up to the tolerance."""
        self.require("relaxed_map", potentials.structure)
        try:
            found = self._solved(potentials, weight, self.max_iter)
        except TimeLimitError:  # not even one iteration: there is no other distribution to return
            with no_time_limit():
                found = self._solved(potentials, weight, 1)
            found = found._replace(convergence=late(found.convergence))
        return Relaxed(found.bound, found.parts, found.convergence)

    def _solved(self, potentials: Potentials, weight: Floats | None, max_iter: int) -> _Answer:
        s = potentials.structure
        labels, parts = np.zeros(s.n_variables, dtype=np.int32), potentials.zeros()
        found = _kernels.ad3(potentials.scores, parts.writable, max_iter, self.tol, weight, labels)
        if (found.outcome == _NO_LABELLING).any():
            raise InfeasibleError(int(np.argmax(found.outcome == _NO_LABELLING)))
        status = Status.MAX_ITERATIONS
        if (found.outcome == _CONVERGED).all():
            status = Status.CONVERGED
        elif found.late:
            status = Status.MAX_TIME
        n_iter, change = int(found.n_iter.max(initial=0)), float(found.change.max(initial=0.0))
        return _Answer(labels, found.score, found.bound, parts, Convergence(status, n_iter, change))
