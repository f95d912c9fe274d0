"""Chains: each variable is joined to the next."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import ArrayLike

from chordal.structures._base import Structure, checked_counts, counts_per_variable, offsets_of


@final
class Chain(Structure):
    """A batch of chains; clique *t* of a chain joins its variables *t* and *t + 1*.

    Parameters
    ----------
    lengths : array-like of int [n_examples]
        The number of variables of each chain.
    n_labels : int or array-like of int [n_variables]
        The number of labels of all variables, or of each.

    Examples
    --------
    >>> chains = Chain([3, 1], n_labels=2)
    >>> chains
    Chain(2 examples, 4 variables, 2 cliques)
    >>> chains.scope(1)
    array([1, 2])
    """

    def __init__(self, lengths: ArrayLike, n_labels: int | ArrayLike) -> None:
        sizes = checked_counts(lengths, "lengths")
        variables = offsets_of(sizes)
        edges = offsets_of(np.maximum(sizes - 1, 0))
        counts = counts_per_variable(n_labels, variables[-1])
        # The left end of every edge: all variables but the last of each chain.
        is_left = np.ones(variables[-1], dtype=bool)
        is_left[variables[1:][sizes > 0] - 1] = False
        (left,) = is_left.nonzero()
        scopes = np.repeat(left, 2)
        scopes[1::2] += 1
        super().__init__(counts, variables, scopes, 2 * np.arange(len(left) + 1), edges)

    @property
    def lengths(self) -> np.ndarray:
        """The number of variables of each chain."""
        return np.diff(self.variable_offsets)
