"""A model of two labels beside its mirror image, in which no edge prefers different labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chordal.potentials import Floats, Potentials
from chordal.structures import FactorGraph, Ints, offsets_of


@dataclass(frozen=True)
class Mirrored:
    """Every variable twice: as it is, and with its labels exchanged.

    A submodular edge (a, b) becomes (a, b) and (a′, b′). Any other becomes (a, b′) and (a′, b),
    with the rows or columns of its table exchanged, and so is submodular. A labelling together with
    its image has twice its score, so the best score of all pairs is at least twice the best score.

    Attributes
    ----------
    potentials : Potentials
        Variable v is 2 v, its image 2 v + 1; cliques and tables likewise.
    states, cells : int64
        For every state and table cell, the corresponding one of the model.
    """

    potentials: Potentials
    states: Ints
    cells: Ints

    @staticmethod
    def of(model: Potentials) -> Mirrored:
        """The mirrored form of a model with at most two labels and pairwise cliques."""
        s = model.structure
        turned = _prefers_difference(model)
        states = _twice(s.state_offsets, np.zeros(s.n_variables, dtype=bool))
        cells = _twice(model.table_offsets, turned)
        orders = np.repeat(s.orders, 2)
        place = np.arange(orders.sum()) - np.repeat(offsets_of(orders)[:-1], orders)
        clique = np.repeat(np.arange(2 * s.n_cliques), orders)
        in_image = (clique % 2 == 1) ^ ((place == 1) & turned[model.table_of_clique[clique // 2]])
        graph = FactorGraph.from_arrays(
            2 * np.diff(s.variable_offsets),
            2 * s.scopes[s.scope_offsets[clique // 2] + place] + in_image,
            orders,
            2 * np.diff(s.clique_offsets),
            np.repeat(s.label_counts, 2),
        )
        sizes = np.repeat(np.diff(model.table_offsets), 2)
        tables = 2 * np.repeat(model.table_of_clique, 2)
        tables[1::2] += 1
        scores = (model.unary[states], model.tables[cells])
        return Mirrored(
            Potentials.trusted(graph, *scores, tables, offsets_of(sizes)), states, cells
        )

    def labels(self, found: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Two labellings of the model: from the variables, and from their images."""
        last = self.potentials.structure.label_counts[1::2] - 1
        return found[::2], (last - found[1::2]).astype(np.int32)

    def fold(self, parts: Potentials, onto: Potentials) -> None:
        """Add half of the parts to the corresponding parts of the model."""
        for source, mine, its in (
            (self.states, parts.unary, onto.unary),
            (self.cells, parts.tables, onto.tables),
        ):
            its += 0.5 * np.bincount(source, mine, minlength=len(its))


def _prefers_difference(model: Potentials) -> NDArray[np.bool_]:
    """Which tables have two rows and columns and are not submodular."""
    sizes = np.diff(model.table_offsets)
    squares = np.flatnonzero(sizes == 4)
    scores: Floats = model.tables[model.table_offsets[squares][:, None] + np.arange(4)]
    turned = np.zeros(len(sizes), dtype=bool)
    turned[squares] = scores[:, 0] + scores[:, 3] < scores[:, 1] + scores[:, 2]
    return turned


def _twice(offsets: Ints, turned: NDArray[np.bool_]) -> Ints:
    """The cells of every block and their reverse, with pairs exchanged if it is turned."""
    sizes, first = np.repeat(np.diff(offsets), 2), np.repeat(offsets[:-1], 2)
    within = np.arange(sizes.sum()) - np.repeat(offsets_of(sizes)[:-1], sizes)
    block = np.repeat(np.arange(len(sizes)), sizes)
    within = np.where(block % 2 == 1, sizes[block] - 1 - within, within)
    cells: Ints = first[block] + (within ^ turned[block // 2])
    return cells
