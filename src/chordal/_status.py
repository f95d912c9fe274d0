"""How a run ended, and a warning if it ended early."""

from __future__ import annotations

import sys
import warnings
from enum import Enum


class Status(Enum):
    """Why a solver stopped.

    >>> Status.CONVERGED.succeeded, Status.INTERRUPTED.succeeded
    (True, False)
    """

    CONVERGED = "converged"
    MAX_ITERATIONS = "reached max_iter"
    MAX_TIME = "reached time_limit"
    STALLED = "no step improves the objective further"
    STOPPED = "stopped by a callback"
    INTERRUPTED = "interrupted"

    @property
    def succeeded(self) -> bool:
        """Whether the weights are a solution rather than the best so far."""
        return self is Status.CONVERGED


class ConvergenceWarning(UserWarning):
    """Stands in for scikit-learn's where scikit-learn is not imported, which takes a second."""


def warn_not_converged(status: Status, solver: str, n_iter: int) -> None:
    """Warn of a fit that stopped at `max_iter` before it converged."""
    if status is not Status.MAX_ITERATIONS:
        return
    kind: type[Warning] = ConvergenceWarning
    if "sklearn" in sys.modules:
        from sklearn import exceptions

        kind = exceptions.ConvergenceWarning
    warnings.warn(
        f"solver {solver!r} did not converge in {n_iter} iterations; "
        "increase max_iter, increase tol, or scale the data",
        kind,
        stacklevel=3,
    )
