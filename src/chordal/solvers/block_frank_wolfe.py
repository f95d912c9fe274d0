"""Block-coordinate Frank–Wolfe: structured support vector machines, one example at a time."""

from __future__ import annotations

from typing import ClassVar, final

from chordal.oracle.examples import DualRule
from chordal.oracle.rules.frank_wolfe import FrankWolfeRule
from chordal.solvers._dual import MARGINS, BlockSolver


@final
class BlockFrankWolfe(BlockSolver):
    """Frank–Wolfe steps on the dual variables of one example after another.

    Each step finds the best labelling of score plus cost and moves towards it by the best step
    size, so there is no learning rate. An iteration is a pass over all examples in a new order,
    after which the primal value is computed. `n_evaluations` counts the visits to examples of both.

    On chains the weights are a weighted mean over all steps, with more weight on later ones. On
    other structures, all labellings found so far are kept, and their best mixture is computed after
    each pass without inference. For small l2 the solver adds a quadratic term around a moving
    point, which does not change the bounds.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt and Pletscher (2013), Block-coordinate Frank–Wolfe optimization
    for structural SVMs; Shah, Kolmogorov and Lampert (2015), A multi-plane block-coordinate
    Frank–Wolfe algorithm for training structural SVMs with a costly max-oracle; Lin, Mairal and
    Harchaoui (2015), A universal catalyst for first-order optimization.
    """

    rule: ClassVar[DualRule] = FrankWolfeRule()
    objectives: ClassVar[tuple[str, ...]] = MARGINS
