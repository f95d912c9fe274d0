"""Moves that relabel all except a few variables at once, by the best or a random labelling.

The few are chosen so that the rest has a clique tree with small tables (`bounded_subgraph`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal.inference._answers import Labels
from chordal.inference._clique_tree import ORDERS
from chordal.potentials import Floats, Potentials
from chordal.structures import FactorGraph, Ints, offsets_of

#: log2 of the cells that tables may have beyond what was asked for.
SLACK = 3.0


class Subgraph:
    """The free variables of a model of one example, given labels of the others.

    potentials : Potentials with a table for each clique, or tied ones
    free : bool [n_variables]
    limit : log2 of the maximum number of cells of a table of the clique tree
    """

    def __init__(self, potentials: Potentials, free: NDArray[np.bool_], limit: float) -> None:
        self._potentials = potentials
        s = potentials.structure
        self.free = np.flatnonzero(free)
        self._states = np.flatnonzero(np.repeat(free, s.label_counts))
        self._places(free)
        counts = s.label_counts[self.free]
        number = np.cumsum(free) - 1
        joint = self._n_free >= 2
        scopes = number[self._free_scopes[np.repeat(joint, self._n_free)]]
        graph = FactorGraph.from_arrays(
            np.array([len(self.free)]),
            scopes,
            self._n_free[joint],
            np.array([int(joint.sum())]),
            counts,
        )
        self._of_table = np.flatnonzero(np.repeat(joint, self._sizes))
        single = np.repeat(self._n_free == 1, self._sizes)
        self._of_state = np.flatnonzero(single)
        alone = self._free_scopes[np.repeat(self._n_free == 1, self._n_free)]
        own = self._sizes[self._n_free == 1]
        within = np.arange(own.sum()) - np.repeat(offsets_of(own)[:-1], own)
        starts = offsets_of(counts)[:-1]
        self._state_of = np.repeat(starts[number[alone]], own) + within
        self._frame = Potentials.trusted(
            graph,
            np.zeros(graph.n_states),
            np.zeros(len(self._of_table)),
            np.arange(graph.n_cliques, dtype=np.int32),
            offsets_of(self._sizes[joint]),
        )
        rule = ORDERS.index("auto")
        self._tree = _kernels.clique_tree_plan(graph.topology, rule, limit + SLACK)

    def _places(self, free: NDArray[np.bool_]) -> None:
        """The cells of the model's tables that belong to the free variables."""
        p, s = self._potentials, self._potentials.structure
        touched = np.add.reduceat(free[s.scopes], s.scope_offsets[:-1]) > 0 if s.n_cliques else None
        cliques = np.flatnonzero(touched) if touched is not None else np.zeros(0, dtype=np.int64)
        orders = s.orders[cliques]
        place = np.repeat(s.scope_offsets[cliques] - offsets_of(orders)[:-1], orders)
        place = place + np.arange(len(place))
        variables = s.scopes[place]
        clique = np.repeat(np.arange(len(cliques)), orders)
        strides = _strides(s.label_counts[variables], orders)
        is_free = free[variables]
        self._n_free = np.bincount(clique[is_free], minlength=len(cliques))
        self._free_scopes = variables[is_free]
        counts = s.label_counts[self._free_scopes]
        starts = offsets_of(self._n_free)
        self._sizes = np.multiply.reduceat(counts, starts[:-1]) if len(cliques) else orders
        # From the digits of a cell of the free variables to a place in the whole table.
        total = int(self._sizes.sum())
        owner = np.repeat(np.arange(len(cliques)), self._sizes)
        rest = np.arange(total) - offsets_of(self._sizes)[owner]
        offset = p.table_offsets[p.table_of_clique[cliques]][owner]
        free_strides = strides[is_free]
        for axis in range(1, int(self._n_free.max(initial=0)) + 1):
            there = np.flatnonzero(self._n_free[owner] >= axis)
            k = starts[owner[there] + 1] - axis
            rest[there], digit = np.divmod(rest[there], counts[k])
            offset[there] += digit * free_strides[k]
        self._cells, self._owner, self._n_cliques = offset, owner, len(cliques)
        held = ~is_free
        self._held = variables[held]
        self._held_strides, self._held_clique = strides[held], clique[held]

    @property
    def works(self) -> bool:
        """Whether the clique tree has small tables."""
        return len(self._tree.stuck) == 0 and len(self.free) > 0

    @property
    def cells(self) -> float:
        """Number of cells of all tables: the cost of a move."""
        return float(self._tree.cells.max(initial=0.0))

    def given(self, labels: Labels, scale: float = 1.0) -> Potentials:
        """The model of the free variables, its scores divided by a temperature."""
        p = self._potentials
        shift = np.bincount(
            self._held_clique,
            weights=self._held_strides * labels[self._held],
            minlength=self._n_cliques,
        ).astype(np.int64)
        scores = p.tables[self._cells + shift[self._owner]]
        unary = p.unary[self._states] + np.bincount(
            self._state_of, weights=scores[self._of_state], minlength=len(self._states)
        )
        tables = scores[self._of_table]
        if scale != 1.0:
            unary, tables = unary * scale, tables * scale
        return self._frame.like(unary, tables)

    def improve(self, labels: Labels) -> None:
        """Give the free variables their best labels, in place."""
        score, found = np.empty(1), np.zeros(len(self.free), dtype=np.int32)
        model = self.given(labels)
        _kernels.clique_tree_best_labelling(model.scores, self._tree, score, found)
        if score[0] > -np.inf:
            labels[self.free] = found

    def draw(self, labels: Labels, temperature: float, rng: np.random.Generator) -> None:
        """Draw the free variables' labels, in place."""
        found, log_z = np.zeros(len(self.free), dtype=np.int32), np.empty(1)
        _kernels.clique_tree_sample(
            self.given(labels, 1.0 / temperature).scores,
            self._tree,
            True,
            uniform=rng.random(len(self._tree)),
            log_partition=log_z,
            labels=found,
        )
        if np.isfinite(log_z[0]):
            labels[self.free] = found


def _strides(counts: Ints, orders: Ints) -> Ints:
    """Strides of each variable in each clique's table."""
    strides = np.ones(len(counts), dtype=np.int64)
    after = np.repeat(offsets_of(orders)[1:], orders) - 1 - np.arange(len(counts))
    for depth in range(1, int(after.max(initial=0)) + 1):
        k = np.flatnonzero(after == depth)
        strides[k] = strides[k + 1] * counts[k + 1]
    return strides


def regrets(potentials: Potentials, labels: Labels) -> Floats:
    """The best score of each clique's table minus its present score (float64 [n_cliques])."""
    p, s = potentials, potentials.structure
    clique = np.repeat(np.arange(s.n_cliques), s.orders)
    strides = _strides(s.label_counts[s.scopes], s.orders)
    cell = np.bincount(clique, weights=strides * labels[s.scopes], minlength=s.n_cliques)
    own = p.tables[p.table_offsets[p.table_of_clique] + cell.astype(np.int64)]
    best = np.maximum.reduceat(p.tables, p.table_offsets[:-1]) if s.n_cliques else own
    return np.asarray(best[p.table_of_clique] - own if s.n_cliques else own)


def crossed(potentials: Potentials, labels: Labels, other: Labels) -> Labels:
    """The best mixture of two labellings of one example.

    The variables on which they differ form connected pieces; each piece takes the labels that score
    better. This is the best mixture that does not split a piece.
    """
    s = potentials.structure
    differs = labels != other
    if not differs.any():
        return labels
    touched = (
        np.flatnonzero(np.logical_or.reduceat(differs[s.scopes], s.scope_offsets[:-1]))
        if s.n_cliques
        else np.zeros(0, dtype=np.int64)
    )
    orders = s.orders[touched]
    place = np.repeat(s.scope_offsets[touched] - offsets_of(orders)[:-1], orders)
    place = place + np.arange(len(place))
    variables, clique = s.scopes[place], np.repeat(np.arange(len(touched)), orders)
    strides = _strides(s.label_counts[variables], orders)
    start = potentials.table_offsets[potentials.table_of_clique[touched]]
    piece = _reached(differs, variables, clique, len(touched))
    gain = np.zeros(s.n_variables)
    with np.errstate(invalid="ignore"):
        score = [
            potentials.tables[
                start
                + np.bincount(
                    clique, weights=strides * kind[variables], minlength=len(touched)
                ).astype(np.int64)
            ]
            for kind in (labels, other)
        ]
        own = s.state_offsets[:-1]
        change = potentials.unary[own + other] - potentials.unary[own + labels]
        where = np.flatnonzero(differs)
        np.add.at(gain, piece[where], change[where])
        first = np.flatnonzero(differs[variables])
        some = np.zeros(len(touched), dtype=np.int64)
        some[clique[first]] = piece[variables[first]]
        np.add.at(gain, some, score[1] - score[0])
    better = differs & (gain > 0.0)[piece]
    return np.where(better, other, labels)


def _reached(differs: NDArray[np.bool_], variables: Ints, clique: Ints, n: int) -> Ints:
    """The smallest differing variable that each is connected with through differing ones."""
    keep = differs[variables]
    variables, clique = variables[keep], clique[keep]
    piece = np.arange(len(differs))
    while len(variables):
        least = np.full(n, len(differs))
        np.minimum.at(least, clique, piece[variables])
        after = piece.copy()
        np.minimum.at(after, variables, least[clique])
        np.minimum.at(after, piece[variables], least[clique])
        after = after[after]
        if (after == piece).all():
            break
        piece = after
    return piece
