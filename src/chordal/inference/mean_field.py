"""Naive mean field: marginals of independent variables, and a lower bound of log Z, compiled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, final

import numpy as np

from chordal import _kernels
from chordal._validate import check_number
from chordal.inference._answers import Convergence, Marginals
from chordal.inference._base import Inference
from chordal.inference._messages import ending
from chordal.inference._variational import start
from chordal.potentials import Floats, Potentials, refuse_infeasible
from chordal.structures import Structure


@final
class MeanFieldInference(Inference):
    """Approximation by independent variables, each updated given the others until none changes.

    log Z is a lower bound that never falls during iterations, so they always settle, for cliques of
    any order. The answer is a local optimum: one mode of several, and overconfident if interactions
    are strong. `structured_mean_field` keeps the edges of trees and is tighter; `loopy_bp` has
    better marginals if it settles.

    If tables forbid something, the start is an allowed labelling, and labels that are incompatible
    with the present support of others stay out. If no allowed labelling is found, that is an error.

    Parameters
    ----------
    tol : float, default=1e-8
        Stop when no probability changes by more than this.
    max_iter : int, default=1000
        Maximum number of iterations; each updates every variable once.

    References
    ----------
    Jordan, Ghahramani, Jaakkola and Saul (1999), An introduction to variational methods for
    graphical models.

    Examples
    --------
    >>> from chordal.inference.exhaustive import ExhaustiveInference
    >>> from chordal.structures import Grid
    >>> p = Potentials(Grid([(3, 3)], n_labels=2), np.cos(np.arange(18)), [0.4, 0, 0, 0.4])
    >>> bound = MeanFieldInference().log_partition(p)
    >>> exact = ExhaustiveInference().log_partition(p)
    >>> bool(exact - 0.3 <= bound <= exact)
    True
    """

    answers: ClassVar[frozenset[str]] = frozenset({"log_partition", "marginals"})
    bound: ClassVar[str | None] = "lower"
    # A local optimum that is too sure of one mode.
    quality: ClassVar[Mapping[str, int]] = {"log_partition": 60, "marginals": 60}
    anytime: ClassVar[bool] = True

    def __init__(
        self,
        tol: float = 1e-8,
        max_iter: int = 1000,
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(time_limit=time_limit, memory_limit=memory_limit)
        check_number("tol", tol)
        check_number("max_iter", max_iter, minimum=1, integer=True)
        self.tol, self.max_iter = float(tol), max_iter

    def supports(self, structure: Structure) -> bool:
        """Any structure."""
        return True

    def exact_on(self, structure: Structure) -> bool:
        """Exact if no clique links variables."""
        return bool((structure.orders <= 1).all())

    def log_partition(self, potentials: Potentials) -> Floats:
        """A lower bound of log Z."""
        return self._ascend(potentials)[0]

    def marginals(
        self, potentials: Potentials, weight: Floats | None = None, overwrite: bool = False
    ) -> Marginals:
        """Marginals of the best approximation by independent variables."""
        bound, shares, ended = self._ascend(potentials)
        refuse_infeasible(bound)
        s = potentials.structure
        parts = potentials.like(shares, np.zeros(len(potentials.tables)))
        _kernels.mean_field_products(
            potentials.scores, None, q=shares, weight=weight, out_tables=parts.tables
        )
        if weight is not None:
            of_variable = np.repeat(weight, np.diff(s.variable_offsets))
            parts.unary *= np.repeat(of_variable, s.label_counts)
        return Marginals(bound, parts, ended)

    def _ascend(self, potentials: Potentials) -> tuple[Floats, Floats, Convergence]:
        shares, bound = start(potentials, self.name), np.zeros(potentials.structure.n_examples)
        done = _kernels.mean_field_ascend(
            potentials.scores, self.tol, self.max_iter, q=shares, bound=bound
        )
        return bound, shares, ending(done, self.tol)
