"""Exponentiated gradient: the duals of the likelihood and the hinge, one example at a time."""

from __future__ import annotations

from typing import ClassVar, final

from chordal._errors import UnsupportedError
from chordal.oracle import Problem
from chordal.oracle.examples import DualRule
from chordal.oracle.rules.exponentiated_gradient import ExponentiatedRule
from chordal.solvers._dual import BlockSolver


@final
class ExponentiatedGradient(BlockSolver):
    """Multiplicative steps on the dual variables of one example after another.

    The dual variables of an example are a distribution over its labellings, stored as scores of
    labels and transitions. A step moves these towards the scores under the current weights, only if
    the dual rises, so there is no learning rate. An iteration is a pass over all examples in a new
    order. Memory holds the potentials of all examples. The hinge is approximated by smooth losses
    that approach it from pass to pass, because a labelling with probability zero could not return.
    If a run still stalls, its gap shows it.

    References
    ----------
    Collins, Globerson, Koo, Carreras and Bartlett (2008), Exponentiated gradient algorithms for
    conditional random fields and max-margin Markov networks.
    """

    scales: ClassVar[bool] = False  # the compiled loops take one l2
    rule: ClassVar[DualRule] = ExponentiatedRule()
    objectives: ClassVar[tuple[str, ...]] = ("likelihood", "hinge")

    def check(self, problem: Problem) -> None:
        """As in `BlockSolver`; also an error for structures other than chains."""
        super().check(problem)
        if not problem.chains:
            raise UnsupportedError(
                f"solver {self.name!r} works only on chains; use "
                "'block_frank_wolfe' or 'one_slack', or for the likelihood 'lbfgs'"
            )
