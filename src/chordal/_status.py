"""Why training stopped."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """Why a solver stopped.

    >>> Status.CONVERGED.succeeded, Status.INTERRUPTED.succeeded
    (True, False)
    """

    CONVERGED = "converged"
    MAX_ITERATIONS = "reached max_iter"
    MAX_TIME = "reached time_limit"
    SETTLED = "the objective hardly falls, but nothing shows that it is at its minimum"
    STALLED = "no step improves the objective further"
    STOPPED = "stopped by a callback"
    INTERRUPTED = "interrupted"

    @property
    def succeeded(self) -> bool:
        """Whether the solver converged; if not, the weights are the best so far."""
        return self is Status.CONVERGED
