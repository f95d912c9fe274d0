"""Features of pairs: what the choices of a matching are scored by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from chordal._blocks import Runner, run_in_turn
from chordal.features._base import Floats
from chordal.potentials import Potentials
from chordal.structures import Matching
from chordal.targets import Labels


def matching_potentials(
    scores: Sequence[ArrayLike], no_target: Sequence[ArrayLike] | None = None
) -> Potentials:
    """Potentials of matchings.

    Parameters
    ----------
    scores : list of arrays [n_source, n_target]
        The score of every pair of each example.
    no_target : list of arrays [n_source], optional
        The score of leaving each source item without a target; 0 by default.

    Examples
    --------
    >>> p = matching_potentials([[[1.0, 2.0], [3.0, 4.0]]])
    >>> p.score([1, 2])  # the first takes the last target, the second none
    array([2.])
    >>> p.score([1, 1])
    array([-inf])
    """
    pairs = [np.asarray(of_example, dtype=np.float64) for of_example in scores]
    for i, array in enumerate(pairs):
        if array.ndim != 2:
            raise ValueError(
                f"scores[{i}] must be an array [n_source, n_target], got {array.shape}"
            )
    if no_target is None:
        no_target = [np.zeros(len(array)) for array in pairs]
    rows = [np.zeros(0)]
    for i, (array, alone) in enumerate(zip(pairs, no_target, strict=True)):
        column = np.asarray(alone, dtype=np.float64)
        if column.shape != array.shape[:1]:
            raise ValueError(
                f"no_target[{i}] must have a score per source item ({len(array)}), "
                f"got shape {column.shape}"
            )
        rows.append(np.column_stack([array, column]).ravel())
    structure = Matching(*np.array([a.shape for a in pairs], dtype=np.int64).reshape(-1, 2).T)
    return frame_of(structure).like(np.concatenate(rows), structure.exclusion_tables).check()


def frame_of(structure: Matching) -> Potentials:
    """Tables and tying of the structure, without unary scores."""
    return Potentials.trusted(
        structure,
        np.zeros(0),
        structure.exclusion_tables,
        structure.table_of_clique,
        structure.table_offsets,
    )


@dataclass(frozen=True)
class MatchingShard:
    """Some examples, compiled; `labels` and `weight` are for training."""

    frame: Potentials
    rows: Floats  # [n_states, n_features + 1]: every pair's features; of no target, the last
    labels: Labels | None
    weight: Floats | None


@final
class MatchingFeatures:
    """weights → scores of pairs, and back: a weight per feature, and the last for "no target".

    Examples
    --------
    >>> features = MatchingFeatures(1)
    >>> shard = features.compile([np.array([[[1.0], [3.0]]])])  # one source, two target items
    >>> features.potentials(shard, np.array([2.0, 5.0])).unary
    array([2., 6., 5.])
    """

    def __init__(self, n_features: int) -> None:
        self.n_features, self.n_weights = n_features, n_features + 1

    def compile(
        self, pairs: Sequence[Floats], labels: Labels | None = None, weight: Floats | None = None
    ) -> MatchingShard:
        """Examples, each an array [n_source, n_target, n_features], as a shard."""
        structure = Matching([len(p) for p in pairs], [p.shape[1] for p in pairs])
        rows = [np.zeros((0, self.n_weights))]
        for array in pairs:
            own = np.zeros((array.shape[0], array.shape[1] + 1, self.n_weights))
            own[:, :-1, :-1] = array
            own[:, -1, -1] = 1.0
            rows.append(own.reshape(-1, self.n_weights))
        return MatchingShard(frame_of(structure), np.concatenate(rows), labels, weight)

    def expand(self, weights: Floats, memory: None = None, run: Runner = run_in_turn) -> Floats:
        """The weights as `potentials` takes them: as they are."""
        return weights

    def potentials(
        self, shard: MatchingShard, w: Floats, memory: Floats | None = None
    ) -> Potentials:
        """Scores of a shard's labels, in `memory` if that is given."""
        n = len(shard.rows)
        unary = np.empty(n) if memory is None else memory[:n]
        np.dot(shard.rows, w, out=unary)
        return shard.frame.like(unary, shard.frame.tables)

    def zeros(self, memory: Floats | None = None, run: Runner = run_in_turn) -> Floats:
        """An empty gradient."""
        return np.zeros(self.n_weights)

    def n_blocks(self, n_jobs: int) -> int:
        """Tasks of the adjoint: weights are few."""
        return 1

    def adjoint(
        self, shard: MatchingShard, parts: Potentials, sums: Floats, block: int, n_jobs: int
    ) -> None:
        """Add the gradient of a shard."""
        sums += parts.unary @ shard.rows

    def collect(self, sums: Floats, out: Floats | None = None, run: Runner = run_in_turn) -> Floats:
        """The finished gradient, in `out` if that is given."""
        if out is None:
            return sums.copy()
        out[:] = sums
        return out
