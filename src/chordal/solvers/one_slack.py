"""One-slack cutting planes: planes under the whole loss, and a small quadratic program."""

from __future__ import annotations

from typing import final

from chordal.solvers._planes import PlaneSolver


@final
class OneSlack(PlaneSolver):
    """Minimises a lower model of a convex loss, made of planes, and adds a plane per evaluation.

    The weights minimise the highest of all planes plus the regularisation: a quadratic program with
    one variable per plane, whose value is the lower bound. The next plane is evaluated between the
    best weights so far and this minimum. Planes that were inactive for `max_idle` programs are
    removed. The first plane is evaluated at the starting weights, so a warm start helps. It
    supports any convex objective, also smooth ones.

    References
    ----------
    Joachims, Finley and Yu (2009), Cutting-plane training of structural SVMs; Teo et al. (2010),
    Bundle methods for regularized risk minimization; Lemaréchal, Nemirovskii and Nesterov (1995),
    New variants of bundle methods.
    """
