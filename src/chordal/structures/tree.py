"""Trees and forests: each variable is joined to its parent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from chordal._validate import check_listed, whole_numbers
from chordal.structures._base import Ints, Structure, counts_per_variable, offsets_of


@final
class Tree(Structure):
    """A batch of trees or forests; each clique joins a parent to its child, in the child's order.

    Parameters
    ----------
    parents : list of array-like of int [n_nodes]
        For each example, the parent of every node by its number; −1 for a root.
    n_labels : int or array-like of int [n_variables]
        The number of labels of all variables, or of each.

    Examples
    --------
    >>> trees = Tree([[-1, 0, 0, 2], [-1]], n_labels=3)
    >>> trees
    Tree(2 examples, 5 variables, 3 cliques)
    >>> trees.scope(2)
    array([2, 3])
    """

    def __init__(self, parents: Sequence[ArrayLike], n_labels: int | ArrayLike) -> None:
        check_listed(parents, "parents")
        trees = [_checked(of_example, i) for i, of_example in enumerate(parents)]
        variables = offsets_of([len(tree) for tree in trees])
        parent = np.concatenate([np.zeros(0, dtype=np.int64), *trees])
        child = np.flatnonzero(parent >= 0)
        first = np.repeat(variables[:-1], np.diff(variables))
        scopes = np.stack([parent[child] + first[child], child], axis=1).ravel()
        cliques = offsets_of([int((tree >= 0).sum()) for tree in trees])
        counts = counts_per_variable(n_labels, variables[-1])
        super().__init__(counts, variables, scopes, 2 * np.arange(len(child) + 1), cliques)


def _checked(parents: ArrayLike, example: int) -> Ints:
    array = whole_numbers(parents, f"parents of example {example}").astype(np.int64, copy=False)
    n = array.size
    if array.ndim != 1:
        raise ValueError(f"parents of example {example} must be a 1-d array, got {array.ndim}-d")
    if n and (array.min() < -1 or array.max() >= n):
        raise ValueError(f"parents of example {example} must be between -1 and {n - 1}")
    # Every step to a parent's parent doubles the distance: a node that never leaves is in a loop.
    above = np.append(array, -1)
    for _ in range(max(1, n).bit_length()):
        above = above[above]
    if (above >= 0).any():
        node = int(np.argmax(above >= 0))
        raise ValueError(f"parents of example {example} have a cycle through node {node}")
    return array
