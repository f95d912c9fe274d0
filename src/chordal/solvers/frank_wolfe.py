"""Batch Frank–Wolfe: the dual of any convex loss, as a mixture of few planes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from chordal.oracle.plane_model import PlaneModel
from chordal.solvers._base import number
from chordal.solvers._planes import PlaneSolver


@final
@dataclass(eq=False)
class FrankWolfe(PlaneSolver):
    """Frank–Wolfe on the dual, with steps towards planes, away from them, and between them.

    Each evaluation gives a plane under the loss. The weights are those of the best mixture of the
    stored planes. Above `memory` planes, two are merged, so memory is bounded. "block_frank_wolfe"
    needs fewer best labellings.

    Parameters
    ----------
    memory : int, default=40
        Maximum number of stored planes.

    References
    ----------
    Lacoste-Julien and Jaggi (2015), On the global linear convergence of Frank–Wolfe optimization
    variants; Wolfe (1976), Finding the nearest point in a polytope.
    """

    memory: int = number(40, minimum=2)

    def _full(self, model: PlaneModel) -> bool:
        return len(model.offsets) >= self.memory
