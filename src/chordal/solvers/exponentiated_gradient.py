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

    The dual variables of an example are a distribution over its labellings, kept as scores of
    labels and transitions; a step moves these towards the scores that the weights give, and is
    made only where the dual rises, so that there is no learning rate. An iteration is a pass
    over all examples in a new order. The memory is that of all examples' potentials. The hinge is
    approached through smooth losses that come nearer to it from pass to pass, since a labelling
    that it has given up altogether could not come back; should a run stall all the same, its gap
    says so.

    References
    ----------
    Collins, Globerson, Koo, Carreras and Bartlett (2008), Exponentiated gradient algorithms for
    conditional random fields and max-margin Markov networks.
    """

    scales: ClassVar[bool] = False  # the compiled loops take one l2
    rule: ClassVar[DualRule] = ExponentiatedRule()
    objectives: ClassVar[tuple[str, ...]] = ("likelihood", "hinge")

    def check(self, problem: Problem) -> None:
        """Refuse what is no chain, too."""
        super().check(problem)
        if not problem.chains:
            raise UnsupportedError(
                f"solver {self.name!r} keeps dual variables of chains alone; use "
                "'block_frank_wolfe' or 'one_slack', or for the likelihood 'lbfgs'"
            )
