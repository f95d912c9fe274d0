"""Grids: the pixels of images, the voxels of volumes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from chordal._validate import check_listed, whole_numbers
from chordal.structures._base import (
    Ints,
    Structure,
    counts_per_variable,
    offsets_of,
    read_only,
    refuse_huge,
)

#: The steps to half of the neighbours (the other half step back), by their number.
_DIAGONALS = {4: (2, False), 8: (2, True), 6: (3, False), 26: (3, True)}


@final
class Grid(Structure):
    """A batch of grids of any size, in C order; edges join neighbours.

    Parameters
    ----------
    shapes : list of tuples of int
        (height, width) of each example, or (depth, height, width).
    n_labels : int or array-like of int [n_variables]
        The number of labels of all variables, or of each.
    neighbours : {4, 8, 6, 26}, default=4
        4 or 8 neighbours of a pixel (8 with diagonals), 6 or 26 of a voxel.

    Attributes
    ----------
    directions : tuple of tuples of int
        The step from the first to the second end, for each kind of edge.
    direction_of_clique : int64 [n_cliques]
        The direction of each edge. Edges of an example are sorted by direction.

    Examples
    --------
    >>> grid = Grid([(2, 3)], n_labels=2)
    >>> grid
    Grid(1 examples, 6 variables, 7 cliques)
    >>> grid.directions
    ((0, 1), (1, 0))
    >>> grid.scope(4)  # the first edge downwards
    array([0, 3])
    """

    def __init__(
        self, shapes: Sequence[Sequence[int]], n_labels: int | ArrayLike, neighbours: int = 4
    ) -> None:
        if not isinstance(neighbours, (int, np.integer)) or neighbours not in _DIAGONALS:
            raise ValueError(f"neighbours must be 4 or 8 (2-d), 6 or 26 (3-d), got {neighbours!r}")
        ndim, diagonal = _DIAGONALS[neighbours]
        check_listed(shapes, "shapes")
        found = [whole_numbers(shape, f"shape of example {i}") for i, shape in enumerate(shapes)]
        for i, own in enumerate(found):
            if own.shape != (ndim,) or own.min() < 0:
                raise ValueError(
                    f"shape of example {i} must be {ndim} sizes of at least 0 for {neighbours} "
                    f"neighbours, got {own.tolist()}"
                )
        self.shapes = [tuple(map(int, own)) for own in found]
        self.directions = _steps(ndim, diagonal)
        whole = [math.prod(shape) for shape in self.shapes]
        refuse_huge(np.array(whole, dtype=np.float64), "the number of pixels")
        sizes = np.array(whole, dtype=np.int64)
        variables = offsets_of(sizes)
        made: dict[tuple[int, ...], tuple[Ints, Ints]] = {}
        ends, kinds = [np.zeros((0, 2), dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for first, shape in zip(variables, self.shapes, strict=False):
            if shape not in made:
                made[shape] = _edges(shape, self.directions)
            ends.append(made[shape][0] + first)
            kinds.append(made[shape][1])
        cliques = offsets_of([len(kind) for kind in kinds[1:]])
        self.direction_of_clique = read_only(np.concatenate(kinds))
        counts = counts_per_variable(n_labels, variables[-1])
        scopes = np.concatenate(ends).ravel()
        super().__init__(counts, variables, scopes, 2 * np.arange(cliques[-1] + 1), cliques)


def _steps(ndim: int, diagonal: bool) -> tuple[tuple[int, ...], ...]:
    """One step of each pair of opposite steps, the later in C order; straight steps first."""
    steps = [s for s in itertools.product((-1, 0, 1), repeat=ndim) if s > (0,) * ndim]
    straight = sorted(s for s in steps if sum(map(abs, s)) == 1)
    slanted = sorted(s for s in steps if sum(map(abs, s)) > 1)
    return tuple(straight + slanted) if diagonal else tuple(straight)


def _edges(shape: tuple[int, ...], steps: Sequence[tuple[int, ...]]) -> tuple[Ints, Ints]:
    """Both ends of every edge [n_edges, 2], and which step it takes."""
    number = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    ends, kinds = [], []
    for kind, step in enumerate(steps):
        here = number[
            tuple(slice(max(0, -d), n - max(0, d)) for d, n in zip(step, shape, strict=True))
        ]
        there = number[
            tuple(slice(max(0, d), n - max(0, -d)) for d, n in zip(step, shape, strict=True))
        ]
        ends.append(np.stack([here.ravel(), there.ravel()], axis=1))
        kinds.append(np.full(here.size, kind))
    return np.concatenate(ends), np.concatenate(kinds)
