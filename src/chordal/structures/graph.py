"""Graphs: variables joined by arbitrary edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from chordal._validate import array_of, check_listed
from chordal.structures._base import (
    Ints,
    Structure,
    check_scopes,
    checked_counts,
    counts_per_variable,
    offsets_of,
)


@final
class Graph(Structure):
    """A batch of graphs; clique *k* of an example joins the two ends of its edge *k*.

    Graphs may be disconnected and have isolated nodes. The ends of an edge keep their order: its
    table has a row per label of the first node and a column per label of the second.

    Parameters
    ----------
    n_nodes : array-like of int [n_examples]
        The number of variables of each example.
    edges : list of array-like of int [n_edges, 2]
        The edges of each example, as pairs of node numbers, from 0 in each example.
    n_labels : int or array-like of int [n_variables]
        The number of labels of all variables, or of each.

    Examples
    --------
    >>> triangle, pair = [(0, 1), (1, 2), (0, 2)], [(1, 0)]
    >>> graphs = Graph([3, 2], [triangle, pair], n_labels=2)
    >>> graphs
    Graph(2 examples, 5 variables, 4 cliques)
    >>> graphs.scope(3)
    array([4, 3])
    >>> graphs.is_forest
    False
    """

    def __init__(
        self, n_nodes: ArrayLike, edges: Sequence[ArrayLike], n_labels: int | ArrayLike
    ) -> None:
        sizes = checked_counts(n_nodes, "n_nodes")
        check_listed(edges, "edges")
        if len(edges) != len(sizes):
            raise ValueError(
                f"edges must have one entry per example ({len(sizes)}), got {len(edges)}"
            )
        pairs = [_pairs(of_example, i) for i, of_example in enumerate(edges)]
        cliques = offsets_of([len(of_example) for of_example in pairs])
        ends = np.concatenate([np.zeros((0, 2), dtype=np.int64), *pairs])
        scope_offsets = 2 * np.arange(len(ends) + 1)
        check_scopes(ends.ravel(), scope_offsets, cliques, sizes)
        variables = offsets_of(sizes)
        ends = ends + np.repeat(variables[:-1], np.diff(cliques))[:, None]
        _refuse_duplicates(ends, cliques, variables)
        counts = counts_per_variable(n_labels, variables[-1])
        super().__init__(counts, variables, ends.ravel(), scope_offsets, cliques)


def _pairs(edges: ArrayLike, example: int) -> Ints:
    array = array_of(edges)
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"edges of example {example} must be whole numbers of shape [n_edges, 2], "
            f"got {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64)


def _refuse_duplicates(ends: Ints, cliques: Ints, variables: Ints) -> None:
    twice = repeated_edge(ends)
    if twice is None:
        return
    first, second = twice
    example = int(np.searchsorted(cliques, first, side="right") - 1)
    a, b = ends[second] - variables[example]
    raise ValueError(
        f"edges {first - cliques[example]} and {second - cliques[example]} of example {example} "
        f"both join nodes {a} and {b}; keep one of them, with the features of both"
    )


def repeated_edge(ends: Ints, directed: bool = False) -> tuple[int, int] | None:
    """Two edges that join the same nodes (if directed, in the same order), or None."""
    if len(ends) < 2:
        return None
    ends = ends if directed else np.sort(ends, axis=1)
    keys = np.sort(ends[:, 0] * (ends.max() + 1) + ends[:, 1])  # many times as fast as lexsort
    if (keys[1:] != keys[:-1]).all():
        return None
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    again = (np.diff(ends[order], axis=0) == 0).all(axis=1)
    if not again.any():
        return None
    first, second = sorted(order[int(np.argmax(again)) :][:2])
    return int(first), int(second)
