"""Tree-reweighted belief propagation: marginals, and an upper bound of log Z, compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, final

from chordal import _kernels
from chordal._limits import no_time_limit
from chordal._validate import check_number
from chordal.inference._cliques import require_finite_size
from chordal.inference._messages import SumProduct
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure


@final
class TreeReweightedInference(SumProduct):
    """Belief propagation made convex by spanning trees; log Z is an upper bound.

    The model is a mean of trees, whose log Z are exact; their mean is an upper bound of log Z, even
    if messages have not settled. Marginals are less confident than those of `loopy_bp`, and
    messages settle more often. Cliques may have any order. A clique on no loop is in every tree, so
    without loops all answers are exact.

    Parameters
    ----------
    n_trees : int, default=8
        Minimum number of random spanning trees per example; more are drawn until every clique is in
        one.
    damping : float, default=0.0
        Initial share of the old message that is kept, from 0 to below 1.
    tol : float, default=1e-8
        Messages have settled when the logarithm of none changes by more than this.
    max_iter : int, default=1000
        Maximum number of iterations; each updates every message once.
    random_state : int, default=0
        Seed of the trees.

    References
    ----------
    Wainwright, Jaakkola and Willsky (2005), A new class of upper bounds on the log partition
    function.

    Examples
    --------
    >>> import numpy as np
    >>> from chordal.inference.exhaustive import ExhaustiveInference
    >>> from chordal.structures import Grid
    >>> p = Potentials(Grid([(3, 3)], n_labels=2), np.cos(np.arange(18)), [1, 0, 0, 1])
    >>> bound = TreeReweightedInference().log_partition(p)
    >>> exact = ExhaustiveInference().log_partition(p)
    >>> bool(exact <= bound <= exact + 0.5)
    True
    """

    answers: ClassVar[frozenset[str]] = frozenset({"log_partition", "marginals"})
    bound: ClassVar[str | None] = "upper"
    # Marginals are less sure than they should be.
    quality: ClassVar[Mapping[str, int]] = {"log_partition": 80, "marginals": 80}

    def __init__(
        self,
        n_trees: int = 8,
        damping: float = 0.0,
        tol: float = 1e-8,
        max_iter: int = 1000,
        random_state: int = 0,
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(damping, tol, max_iter, time_limit=time_limit, memory_limit=memory_limit)
        check_number("n_trees", n_trees, minimum=1, integer=True)
        check_number("random_state", random_state, integer=True)
        self.n_trees, self.random_state = n_trees, random_state

    @property
    def copies(self) -> float:
        """The trees."""
        return float(self.n_trees)

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """Messages, and the cliques of each tree."""
        trees = 16.0 * self.n_trees * (structure.n_variables + structure.n_cliques + 8)
        return super().memory(structure, question, n) + trees

    def forests(self, structure: Structure) -> _kernels.SpanningForests:
        """The spanning trees of a structure, and how often each clique is in one."""
        return _kernels.spanning_forests(structure.topology, self.n_trees, self.random_state)

    def _propagate(
        self,
        potentials: Potentials,
        parts: Potentials | None,
        weight: Floats | None,
        log_partition: Floats,
        forbidden: bool,
    ) -> _kernels.Iterations:
        require_finite_size(potentials)
        with no_time_limit():
            forests = self.forests(potentials.structure)
        return _kernels.tree_reweighted_marginals(
            potentials.scores,
            forests,
            self._settings(forbidden, "sequential", True),
            None if parts is None else parts.writable,
            weight=weight,
            log_partition=log_partition,
        )
