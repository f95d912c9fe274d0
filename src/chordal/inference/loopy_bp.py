"""Belief propagation on graphs with loops, compiled; exact without loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, final

import numpy as np

from chordal import _kernels
from chordal._validate import check_choice
from chordal.inference._answers import Decoded, Labels
from chordal.inference._cliques import allowed_labels, propagated, with_rough_bound
from chordal.inference._messages import SumProduct, ending
from chordal.inference._moves import improved_by_trees
from chordal.potentials import Floats, Potentials, refuse_infeasible

SCHEDULES = ("sequential", "parallel", "residual")


def _repair(beliefs: Potentials, labels: Labels) -> None:
    """Replace labellings that violate a constraint by allowed ones, found by search, in place.

    The search tries labels in the order of their beliefs. If it gives up, the labels stay.
    """
    lost = beliefs.score(labels) == -np.inf
    if not lost.any():
        return
    allowed, outcome = allowed_labels(beliefs, lost)
    refuse_infeasible(np.where(lost & (outcome == 0), -np.inf, 0.0))
    again = np.repeat(outcome == 1, np.diff(beliefs.structure.variable_offsets))
    labels[again] = allowed[again]


@final
class LoopyBPInference(SumProduct):
    """Messages between neighbours until they no longer change; cliques of any order.

    It is fast, and often close if interactions are weak or loops are long. Without loops, two
    passes are exact. With loops, log Z is Bethe's approximation and not a bound. Strong
    interactions give overconfident marginals, and messages may never settle: `convergence` tells
    whether they did. If not, the beliefs of the last iteration are returned; try damping, the
    schedule "residual", or a method with a guarantee. Damping is raised automatically if the
    largest change does not fall.

    If tables forbid something (−inf), labels that no labelling can have are excluded first, and
    messages exclude no others. `InfeasibleError` is therefore a proof.

    Tables of label distances (Potts, linear, truncated linear, and any decline that ends within
    half of the labels) are recognised if there are many labels. The time of a message then grows
    with the number of labels, not with its square.

    `map` runs max-product and fixes the labels one by one, each given the previous ones. On graphs
    with loops, whole trees then take their best labels given the rest, until none gains. If the
    labels violate a constraint, a search guided by the beliefs looks for allowed ones.

    Parameters
    ----------
    schedule : {"sequential", "parallel", "residual"}, default="sequential"
        Order of updates. "sequential": variable by variable, alternately forwards and backwards.
        "parallel": all messages at once. "residual": always the message that would change most,
        which settles on some graphs where the others do not.
    damping : float, default=0.0
        Initial share of the old message that is kept, from 0 to below 1.
    tol : float, default=1e-8
        Messages have settled when none changes by more than this (relative to a largest entry of 1;
        for `map`, to a largest score of 0).
    max_iter : int, default=1000
        Maximum number of iterations; each updates every message once.
    domain : {"auto", "log"}, default="auto"
        "auto": sums run in probabilities if the range of scores allows it, else in log space.
        "log": always in log space.

    References
    ----------
    Pearl (1988), Probabilistic reasoning in intelligent systems. Yedidia, Freeman and Weiss
    (2005), Constructing free-energy approximations and generalized belief propagation
    algorithms. Elidan, McGraw and Koller (2006), Residual belief propagation.

    Examples
    --------
    >>> from chordal.structures import Grid
    >>> grid = Grid([(3, 3)], n_labels=2)
    >>> p = Potentials(grid, unary=[1, 0] + [0, 0] * 8, tables=[0.3, 0, 0, 0.3])
    >>> found = LoopyBPInference().marginals(p)
    >>> found.convergence.status.value, found.parts.unary[:2].round(2)
    ('converged', array([0.73, 0.27]))
    """

    answers: ClassVar[frozenset[str]] = frozenset({"log_partition", "marginals", "map"})
    # Usually the most accurate marginals where messages settle. Its labels have a rough bound only.
    quality: ClassVar[Mapping[str, int]] = {"log_partition": 90, "marginals": 90, "map": 40}

    def __init__(
        self,
        schedule: str = "sequential",
        damping: float = 0.0,
        tol: float = 1e-8,
        max_iter: int = 1000,
        domain: str = "auto",
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(damping, tol, max_iter, time_limit=time_limit, memory_limit=memory_limit)
        check_choice("schedule", schedule, SCHEDULES)
        check_choice("domain", domain, ("auto", "log"))
        self.schedule, self.domain = schedule, domain

    def map(self, potentials: Potentials) -> Decoded:
        """The best labels by max-product messages."""
        s = potentials.structure
        left = propagated(potentials)
        labels, beliefs = np.zeros(s.n_variables, dtype=np.int32), left.unary.copy()
        possible = np.zeros(s.n_examples)
        settings = self._settings(left is not potentials, self.schedule, True)
        done = _kernels.loopy_bp_labels(
            left.scores, settings, labels, possible=possible, beliefs=beliefs
        )
        refuse_infeasible(possible)
        ended = ending(done, self.tol)
        if s.is_forest and not done.late:
            score = potentials.score(labels)
            refuse_infeasible(score)
            return Decoded(labels, score, convergence=ended)
        _repair(left.like(beliefs, left.tables), labels)
        return improved_by_trees(potentials, with_rough_bound(potentials, labels, ended))

    def _propagate(
        self,
        potentials: Potentials,
        parts: Potentials | None,
        weight: Floats | None,
        log_partition: Floats,
        forbidden: bool,
    ) -> _kernels.Iterations:
        return _kernels.loopy_bp_marginals(
            potentials.scores,
            self._settings(forbidden, self.schedule, self.domain == "log"),
            None if parts is None else parts.writable,
            weight=weight,
            log_partition=log_partition,
        )
