"""Block-coordinate Frank–Wolfe: structured support vector machines, one example at a time."""

from __future__ import annotations

from typing import ClassVar, final

from chordal.oracle.examples import DualRule
from chordal.oracle.rules.frank_wolfe import FrankWolfeRule
from chordal.solvers._dual import MARGINS, BlockSolver


@final
class BlockFrankWolfe(BlockSolver):
    """Frank–Wolfe steps on the dual variables of one example after another.

    Each step asks for the best labelling with its cost, and moves towards it by the step that
    raises the dual most; there is no learning rate. An iteration is a pass over all examples in a
    new order. The weights are judged after each pass by their primal value; `n_evaluations` counts
    the visits to examples of both. Of chains they are the mean over all steps, later ones counting
    more. Of other structures every example's labellings so far are kept, and the best mixture
    of all is found after each pass, which needs no inference. Where l2 is small, steps are taken on
    the objective plus a quadratic term around a point that moves on, which leaves the bounds as
    they are.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt and Pletscher (2013), Block-coordinate Frank–Wolfe optimization
    for structural SVMs; Shah, Kolmogorov and Lampert (2015), A multi-plane block-coordinate
    Frank–Wolfe algorithm for training structural SVMs with a costly max-oracle; Lin, Mairal and
    Harchaoui (2015), A universal catalyst for first-order optimization.
    """

    rule: ClassVar[DualRule] = FrankWolfeRule()
    objectives: ClassVar[tuple[str, ...]] = MARGINS
