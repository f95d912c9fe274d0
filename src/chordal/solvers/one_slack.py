"""One-slack cutting planes: planes under the whole loss, and a small quadratic program."""

from __future__ import annotations

from typing import final

from chordal.solvers._planes import PlaneSolver


@final
class OneSlack(PlaneSolver):
    """Minimises the best lower model of a convex loss, and adds the plane that it lacks.

    Each evaluation gives a plane under the loss. The weights are those that minimise the highest of
    all planes plus the regularisation, a quadratic program with a variable per plane, whose
    value is the lower bound. The next plane is taken on the way there from the best weights so far.
    Planes that were not used for `max_idle` programs are removed. The first plane is taken at the
    starting weights, so that a good start helps. Any convex objective will do, also a smooth one.

    References
    ----------
    Joachims, Finley and Yu (2009), Cutting-plane training of structural SVMs; Teo et al. (2010),
    Bundle methods for regularized risk minimization; Lemaréchal, Nemirovskii and Nesterov (1995),
    New variants of bundle methods.
    """
