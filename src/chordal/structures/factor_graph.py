"""Factor graphs: cliques of any size over any variables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal._validate import array_of, check_listed
from chordal.structures._base import (
    Ints,
    Structure,
    check_scopes,
    checked_counts,
    counts_per_variable,
    offsets_of,
)

#: The cliques of one example.
Cliques: TypeAlias = Sequence[Sequence[int]] | NDArray[np.integer]


@final
class FactorGraph(Structure):
    """A batch of factor graphs; several cliques may have the same variables.

    Parameters
    ----------
    n_variables : array-like of int [n_examples]
        The number of variables of each example.
    cliques : list of lists of tuples of int, or of arrays of int [n_cliques, order]
        The cliques of each example, each a tuple of variable numbers, from 0 in each example.
    n_labels : int or array-like of int [n_variables]
        The number of labels of all variables, or of each.

    Examples
    --------
    >>> triplets = FactorGraph([4], [[(0, 1, 2), (1, 2, 3), (0, 3)]], n_labels=2)
    >>> triplets
    FactorGraph(1 examples, 4 variables, 3 cliques)
    >>> triplets.table_sizes
    array([8, 8, 4])
    """

    def __init__(
        self,
        n_variables: ArrayLike,
        cliques: Sequence[Cliques],
        n_labels: int | ArrayLike,
    ) -> None:
        sizes = checked_counts(n_variables, "n_variables")
        check_listed(cliques, "cliques")
        if len(cliques) != len(sizes):
            raise ValueError(
                f"cliques must have one entry per example ({len(sizes)}), got {len(cliques)}"
            )
        flat, orders = _listed(cliques)
        scope_offsets = offsets_of(orders)
        clique_offsets = offsets_of([len(of_example) for of_example in cliques])
        check_scopes(flat, scope_offsets, clique_offsets, sizes)
        variables = offsets_of(sizes)
        of_clique = np.repeat(variables[:-1], np.diff(clique_offsets))
        flat = flat + np.repeat(of_clique, np.diff(scope_offsets))
        counts = counts_per_variable(n_labels, variables[-1])
        super().__init__(counts, variables, flat, scope_offsets, clique_offsets)

    @classmethod
    def from_arrays(
        cls,
        n_variables: Ints,
        scopes: Ints,
        orders: Ints,
        n_cliques: Ints,
        n_labels: int | ArrayLike,
    ) -> FactorGraph:
        """Create from valid arrays, without checks.

        Parameters
        ----------
        n_variables, n_cliques : int64 [n_examples]
        scopes : int64, the variables of each clique, by their numbers in the whole batch
        orders : int64 [total of n_cliques]
        n_labels : int or array-like of int [n_variables]
        """
        made, variables = object.__new__(cls), offsets_of(n_variables)
        counts = counts_per_variable(n_labels, variables[-1])
        Structure.__init__(
            made, counts, variables, scopes, offsets_of(orders), offsets_of(n_cliques)
        )
        return made


def _listed(cliques: Sequence[Cliques]) -> tuple[Ints, Ints]:
    """The variables of all cliques in order, and the number of each clique's variables."""
    scopes: list[NDArray[np.generic]] = [np.zeros(0, dtype=np.int64)]
    orders = [np.zeros(0, dtype=np.int64)]
    for i, of_example in enumerate(cliques):
        check_listed(of_example, f"cliques[{i}]")
        if isinstance(of_example, np.ndarray) and of_example.ndim == 2:
            scopes.append(of_example.ravel())
            orders.append(np.full(len(of_example), of_example.shape[1], dtype=np.int64))
        elif len(of_example):
            try:
                scopes.append(np.array(list(chain.from_iterable(of_example))))
                orders.append(np.fromiter(map(len, of_example), np.int64, len(of_example)))
            except (TypeError, ValueError):
                _refuse_scopes(cliques)
                raise
    whole = all(np.issubdtype(own.dtype, np.integer) and own.ndim == 1 for own in scopes)
    found = np.concatenate(orders)
    if not whole or found.min(initial=1) == 0:
        _refuse_scopes(cliques)
    return np.concatenate(scopes).astype(np.int64), found


def _refuse_scopes(cliques: Sequence[Cliques]) -> None:
    """Raise an error that names the first clique that is not a tuple of variables."""
    for k, scope in enumerate(chain.from_iterable(cliques)):
        array = array_of(scope)
        if array.ndim != 1 or len(array) == 0 or not np.issubdtype(array.dtype, np.integer):
            raise ValueError(
                f"clique {k} of the batch must be a tuple of variables, got {array.tolist()}"
            )
