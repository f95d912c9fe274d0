"""Potentials of matchings from scores of pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from chordal.potentials import Potentials
from chordal.structures import Matching


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
    tables = structure.exclusion_tables, structure.table_of_clique, structure.table_offsets
    return Potentials.trusted(structure, np.concatenate(rows), *tables).check()
