"""Bipartite matchings: each item has at most one partner on the other side."""

from __future__ import annotations

from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal.structures._base import (
    Ints,
    Structure,
    checked_counts,
    offsets_of,
    read_only,
    refuse_huge,
)

Floats = NDArray[np.float64]


@final
class Matching(Structure):
    """A batch of matchings between source and target items, as in word alignment.

    Each source item is a variable. Its labels are the target items of its example and, last, "no
    target". All pairs of source items of an example form cliques. They share one table, which
    forbids equal targets; see `exclusion_tables`.

    Parameters
    ----------
    n_source, n_target : array-like of int [n_examples]
        The number of source and target items of each example.

    Examples
    --------
    >>> matching = Matching([2, 3], [1, 4])
    >>> matching
    Matching(2 examples, 5 variables, 4 cliques)
    >>> matching.label_counts
    array([2, 2, 5, 5, 5])
    >>> matching.exclusion_tables[:4]  # both may have no target, but not the same one
    array([-inf,   0.,   0.,   0.])
    """

    def __init__(self, n_source: ArrayLike, n_target: ArrayLike) -> None:
        self.n_source, self.n_target = (
            checked_counts(n_source, "n_source"),
            checked_counts(n_target, "n_target"),
        )
        if len(self.n_source) != len(self.n_target):
            raise ValueError(
                f"n_source and n_target must have one entry per example, got {len(self.n_source)} "
                f"and {len(self.n_target)}"
            )
        refuse_huge(self.n_source.astype(np.float64) ** 2, "the number of pairs of source items")
        variables = offsets_of(self.n_source)
        cliques = offsets_of(self.n_source * (self.n_source - 1) // 2)
        pairs = [
            np.stack(np.triu_indices(n, 1), axis=1) + first
            for n, first in zip(self.n_source.tolist(), variables, strict=False)
        ]
        scopes = np.concatenate([np.zeros((0, 2), dtype=np.int64), *pairs]).ravel()
        counts = np.repeat(self.n_target + 1, self.n_source)
        super().__init__(counts, variables, scopes, 2 * np.arange(cliques[-1] + 1), cliques)

    @cached_property
    def table_of_clique(self) -> NDArray[np.int32]:
        """The table of each clique: that of its example."""
        sizes = np.diff(self.clique_offsets)
        filled = sizes[sizes > 0]
        return read_only(np.repeat(np.arange(len(filled), dtype=np.int32), filled))

    @cached_property
    def table_offsets(self) -> Ints:
        """Where each table begins (int64 [n_tables + 1])."""
        sizes = self.n_target[self.n_source > 1] + 1
        refuse_huge(sizes.astype(np.float64) ** 2, "the number of cells of all tables")
        return read_only(offsets_of(sizes**2))

    @cached_property
    def exclusion_tables(self) -> Floats:
        """Scores of all tables: −inf for two equal targets, else 0."""
        tables = [exclusion_table(m) for m in self.n_target[self.n_source > 1].tolist()]
        return read_only(np.concatenate([np.zeros(0), *(table.ravel() for table in tables)]))


def exclusion_table(n_target: int) -> Floats:
    """Scores of two source items' targets: −inf if they are equal, else 0.

    >>> exclusion_table(1)
    array([[-inf,   0.],
           [  0.,   0.]])
    """
    table = np.zeros((n_target + 1, n_target + 1))
    np.fill_diagonal(table[:n_target, :n_target], -np.inf)
    return table
