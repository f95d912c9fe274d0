"""Convert cost functions, whose sum is minimised, to potentials."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chordal.formats.uai._functions import Function, assemble
from chordal.potentials import Potentials


def from_costs(counts: Sequence[int], functions: Sequence[Function], top: float) -> Potentials:
    """Potentials whose scores are minus costs; what costs `top` or more is forbidden.

    A cell is −inf if its cost reaches `top` with whatever the others cost at least; costs below
    zero elsewhere may still make up for it. That a whole labelling must cost less is not kept.
    """
    least = np.array([min(0.0, float(table.min(initial=0.0))) for _, table in functions])
    total = float(least.sum())
    scores: list[Function] = []
    for (scope, table), own in zip(functions, least.tolist(), strict=True):
        forbidden = table >= top - (total - own)
        scores.append((scope, np.where(forbidden, -np.inf, 0.0 - table)))
    return assemble(counts, scores)
