"""Two labels, one function: the second label scores 0, and the first its log odds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np

from chordal._blocks import Runner, run_in_turn
from chordal.features._base import Floats, RowFeatures, Rows, WeightKeys
from chordal.features._entries import RowEntries


@final
class BinaryFeatures(RowFeatures):
    """Scores (f, 0) of two outputs, from features that score one.

    Where only differences of scores matter, one of two functions can be zero without loss. There
    are half as many weights, and regularisation is that of binary logistic regression.

    Parameters
    ----------
    function : RowFeatures with one output
    """

    n_outputs = 2

    def __init__(self, function: RowFeatures) -> None:
        self.function = function
        self.n_weights = function.n_weights

    def compile(self, rows: Rows, first: int, last: int) -> Any:
        return self.function.compile(rows, first, last)

    def expand(self, weights: Floats, memory: Any = None, run: Runner = run_in_turn) -> Any:
        return self.function.expand(weights, memory, run)

    def map(self, rows: Any, expanded: Any, out: Floats) -> None:
        scores = np.empty(len(out) // 2)
        self.function.map(rows, expanded, scores)
        out[0::2], out[1::2] = scores, 0.0

    def zeros(self, memory: Any = None, run: Runner = run_in_turn) -> Any:
        return self.function.zeros(memory, run)

    def n_blocks(self, n_jobs: int) -> int:
        return self.function.n_blocks(n_jobs)

    def adjoint(self, rows: Any, parts: Floats, sums: Any, block: int, n_jobs: int) -> None:
        self.function.adjoint(rows, np.ascontiguousarray(parts[0::2]), sums, block, n_jobs)

    def collect(self, sums: Any, out: Floats, run: Runner = run_in_turn) -> None:
        self.function.collect(sums, out, run)

    def keys(self) -> WeightKeys:
        return self.function.keys()

    def entries(self, shards: Sequence[Any]) -> RowEntries:
        # Rows of weights are padded to a unit, which is the same for one output and for two.
        return replace(self.function.entries(shards), n_outputs=2)
