"""Sums by a tree over the numbers of parts, of which every worker does its own corner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")

#: Sums of the tree, by their place: (level, k) is of the parts from k·2^level, 2^level in number.
Nodes = dict[tuple[int, int], T]


def fold(nodes: Nodes[T], n: int, plus: Callable[[T, T], T]) -> Nodes[T]:
    """The nodes of a tree over n parts, joined in place wherever two are neighbours in it.

    What is added to what depends on the numbers of parts alone. It is the same whoever holds which
    part, and so are the last digits of the sum.

    Examples
    --------
    >>> fold({(0, 2): "c", (0, 3): "d", (0, 4): "e"}, 5, lambda a, b: f"({a}{b})")
    {(1, 1): '(cd)', (2, 1): 'e'}
    >>> fold({(1, 0): "(ab)", (1, 1): "(cd)", (2, 1): "e"}, 5, lambda a, b: f"({a}{b})")
    {(3, 0): '(((ab)(cd))e)'}
    """
    for level in range((n - 1).bit_length()):
        last = (n - 1) >> level
        for k in sorted(k for own, k in nodes if own == level and k % 2 == 0):
            if k == last:  # it has no neighbour
                nodes[level + 1, k // 2] = nodes.pop((level, k))
            elif (level, k + 1) in nodes:
                pair = nodes.pop((level, k)), nodes.pop((level, k + 1))
                nodes[level + 1, k // 2] = plus(*pair)
    return nodes


def corner(
    parts: Sequence[Any], first: int, n: int, plus: Callable[[T, T], T], answer: Callable[..., T]
) -> Nodes[T]:
    """What answer(number, part) is for parts in a row, of which the first has this number."""
    nodes: Nodes[T] = {}
    for k, part in enumerate(parts[: n - first], start=first):
        nodes[0, k] = answer(k, part)
        fold(nodes, n, plus)
    return nodes


def cuts(sizes: Sequence[float], n_groups: int) -> list[tuple[int, int]]:
    """Rows of neighbours, about equal in their sums of sizes, and none of them empty.

    Examples
    --------
    >>> cuts([1, 1, 1, 1, 4], 2)
    [(0, 4), (4, 5)]
    >>> cuts([1, 1], 3)
    [(0, 1), (1, 2)]
    """
    n, n_groups = len(sizes), min(n_groups, len(sizes))
    ends = np.cumsum(np.maximum(np.asarray(sizes, dtype=float), 1e-9))
    middles = ends - 0.5 * np.diff(ends, prepend=0.0)
    at = [0]
    for k in range(1, n_groups):
        wanted = int(np.searchsorted(middles, ends[-1] * k / n_groups))
        at.append(min(max(wanted, at[-1] + 1), n - n_groups + k))
    return list(pairwise([*at, n]))
