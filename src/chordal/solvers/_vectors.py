"""Sums and products of vectors, the same for any number of threads."""

from __future__ import annotations

import numpy as np

from chordal._blocks import Runner, blocks_of, run_in_turn
from chordal.oracle import Floats


class Vectors:
    """Sums and products of vectors of one length.

    The blocks do not depend on the number of threads and are summed in order, so every digit of the
    result is reproducible.
    """

    def __init__(self, run: Runner = run_in_turn) -> None:
        self.run = run
        self._spare: list[Floats] = []

    def dot(self, a: Floats, b: Floats) -> float:
        """a · b; infinite or NaN where it overflows."""

        def block(part: slice) -> float:
            return float(np.dot(a[part], b[part]))

        return sum(self.run(block, blocks_of(len(a))))

    def norm(self, a: Floats) -> float:
        """‖a‖."""
        return float(np.sqrt(self.dot(a, a)))

    def moved(self, start: Floats, direction: Floats, step: float) -> Floats:
        """start + step · direction; reuses recycled memory."""
        out = self._spare.pop() if self._spare else np.empty_like(start)

        def block(part: slice) -> None:
            np.multiply(direction[part], step, out=out[part])
            out[part] += start[part]

        self.run(block, blocks_of(len(start)))
        return out

    def recycle(self, vector: Floats) -> None:
        """Return a vector from `moved` for reuse: new memory pages are slow."""
        self._spare = [vector]
