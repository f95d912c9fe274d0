"""Batch Frank–Wolfe: the dual of any convex loss, as a mixture of few planes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from chordal import _kernels
from chordal.oracle import Floats
from chordal.solvers._base import number
from chordal.solvers._planes import PlaneModel, PlaneSolver

EXACTNESS = 0.1  # the gap of a mixture as a share of the gap so far
VISITS = 50  # to all planes at a time
ROUNDS = 100


@final
@dataclass(eq=False)
class FrankWolfe(PlaneSolver):
    """Frank–Wolfe on the dual, with steps towards planes, away from them, and between them.

    Each evaluation gives a plane under the loss. The weights are those of a mixture of planes,
    which moves from the lowest of them to the highest by the step that raises the dual most, until
    it is nearly the best mixture of all. Where there are more than `memory`, two become one. It
    needs no package for quadratic programs, as "one_slack" does; "block_frank_wolfe" asks for fewer
    best labellings.

    Parameters
    ----------
    memory : int
        Most planes that are kept.

    References
    ----------
    Lacoste-Julien and Jaggi (2015), On the global linear convergence of Frank–Wolfe optimization
    variants; Platt (1998), Sequential minimal optimization.
    """

    memory: int = number(40, minimum=2)

    def _full(self, model: PlaneModel) -> bool:
        return len(model.offsets) >= self.memory

    def _program(self, model: PlaneModel, gap: float) -> Floats:
        values, vectors = np.linalg.eigh(model.gram)
        rows = vectors * np.sqrt(np.maximum(values, 0.0))  # with the same products as the slopes
        n, l2 = len(rows), model.l2
        planes = _kernels.Planes(
            example_offsets=np.array([0, n]),
            row_offsets=np.arange(n + 1) * n,
            cells=np.tile(np.arange(n, dtype=np.int32), n),
            values=rows.ravel(),
            offsets=model.offsets,
            n_weights=n,
        )
        alpha = model.alpha.copy()
        v = -(alpha @ rows) / l2
        for _ in range(ROUNDS):
            planes.ascend(l2, np.zeros(VISITS, dtype=np.int64), alpha=alpha, v=v)
            v = -(alpha @ rows) / l2
            heights = model.offsets + rows @ v
            # Of the mixture: the highest plane, or 0, less the mean height.
            if max(float(heights.max()), 0.0) - float(alpha @ heights) <= EXACTNESS * gap:
                break
        return alpha
