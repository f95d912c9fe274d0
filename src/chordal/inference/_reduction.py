"""Smaller models with the same best labellings: remove what is decided, split the rest.

The result is a batch whose examples are the independent parts of the given examples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from chordal.inference._answers import Labels
from chordal.inference._cliques import propagated
from chordal.potentials import Floats, Potentials, refuse_infeasible
from chordal.structures import FactorGraph, Ints, Structure, offsets_of

T = TypeVar("T", bound=np.generic)

#: Number of table cells above which a model is not reduced.
MAX_CELLS = 20_000_000


@dataclass(frozen=True)
class Reduced:
    """Independent parts of a batch, without excluded labels and fixed variables.

    potentials : the parts, each an example
    owner : int64 [parts], the example that each belongs to
    constant : float64 [n_examples], the score of what was removed
    """

    potentials: Potentials
    owner: Ints
    constant: Floats
    _variables: Ints  # [variables of the parts], where they lie in the batch
    _states: Ints  # [states of the parts], the labels they stand for
    _fixed: Labels  # [variables of the batch], the labels of those taken out

    def labels(self, of_parts: Labels) -> Labels:
        """The labels of the batch, from those of its parts."""
        labels = self._fixed.copy()
        states = self.potentials.structure.state_offsets[:-1] + of_parts
        labels[self._variables] = self._states[states]
        return labels

    def total(self, of_parts: Floats) -> Floats:
        """The score (or bound) of each example, from those of its parts."""
        out = self.constant.copy()
        np.add.at(out, self.owner, of_parts)
        return out


def reduced(potentials: Potentials) -> Reduced:
    """The independent parts of all examples, without what constraints (−inf) decide.

    Raises
    ------
    InfeasibleError
        If constraint propagation leaves some variable without a label.
    """
    s = potentials.structure
    if int(s.table_sizes.sum()) > MAX_CELLS:
        return _unchanged(potentials)
    left = propagated(potentials)
    open_states = left.unary > -np.inf
    counts = np.add.reduceat(open_states, s.state_offsets[:-1]) if s.n_variables else s.label_counts
    counts = counts.astype(np.int64)
    _refuse_empty(s, counts)
    model = _Cliques.of(left, open_states, counts)
    states = np.flatnonzero(open_states)
    label = states - np.repeat(s.state_offsets[:-1], s.label_counts)[states]
    offsets = offsets_of(counts)
    fixed = np.zeros(s.n_variables, dtype=np.int32)
    alone = counts == 1
    fixed[alone] = label[offsets[:-1][alone]]
    unary = left.unary[states]
    owner = np.repeat(np.arange(s.n_examples), np.diff(s.variable_offsets))
    constant = np.zeros(s.n_examples)
    np.add.at(constant, owner[alone], unary[offsets[:-1][alone]])
    model.absorb(unary, offsets, constant)
    refuse_infeasible(constant)
    return _split(model.merged(), unary, label, counts, owner, constant, fixed)


def one_of(potentials: Potentials, example: int) -> Potentials:
    """One example of a batch, as a batch."""
    s = potentials.structure
    if s.n_examples == 1:
        return potentials
    first, last = s.variable_offsets[example : example + 2]
    begin, end = s.clique_offsets[example : example + 2]
    graph = FactorGraph.from_arrays(
        np.array([last - first]),
        s.scopes[s.scope_offsets[begin] : s.scope_offsets[end]] - first,
        s.orders[begin:end],
        np.array([end - begin]),
        s.label_counts[first:last],
    )
    tables, place = np.unique(potentials.table_of_clique[begin:end], return_inverse=True)
    sizes = np.diff(potentials.table_offsets)[tables]
    cells = np.repeat(potentials.table_offsets[tables] - offsets_of(sizes)[:-1], sizes)
    return Potentials.trusted(
        graph,
        potentials.unary[s.state_offsets[first] : s.state_offsets[last]],
        potentials.tables[cells + np.arange(len(cells))],
        place.astype(np.int32),
        offsets_of(sizes),
    )


def _unchanged(potentials: Potentials) -> Reduced:
    s = potentials.structure
    label = np.arange(s.n_states) - np.repeat(s.state_offsets[:-1], s.label_counts)
    return Reduced(
        potentials,
        np.arange(s.n_examples),
        np.zeros(s.n_examples),
        np.arange(s.n_variables),
        label,
        np.zeros(s.n_variables, dtype=np.int32),
    )


def _refuse_empty(s: Structure, counts: Ints) -> None:
    lost = np.zeros(s.n_examples)
    empty = np.flatnonzero(counts == 0)
    lost[np.searchsorted(s.variable_offsets, empty, side="right") - 1] = -np.inf
    refuse_infeasible(lost)


class _Cliques:
    """Cliques with one table each, from which variables and labels are removed."""

    def __init__(
        self, scopes: Ints, orders: Ints, tables: Floats, sizes: Ints, example: Ints, counts: Ints
    ) -> None:
        self.scopes, self.orders, self.tables, self.sizes = scopes, orders, tables, sizes
        self.example, self.counts = example, counts

    @classmethod
    def of(cls, potentials: Potentials, open_states: NDArray[np.bool_], counts: Ints) -> _Cliques:
        """All cliques, with the cells of open states, over the variables with several of them."""
        s, whole = potentials.structure, potentials.untied()
        clique = np.repeat(np.arange(s.n_cliques), s.table_sizes)
        cell = np.arange(len(clique)) - whole.table_offsets[clique]
        keep = np.ones(len(clique), dtype=bool)
        if not open_states.all():
            for axis in range(1, int(s.orders.max(initial=0)) + 1):  # from the last one
                there = np.flatnonzero(s.orders[clique] >= axis)
                variable = s.scopes[s.scope_offsets[clique[there] + 1] - axis]
                cell[there], label = np.divmod(cell[there], s.label_counts[variable])
                keep[there] &= open_states[s.state_offsets[variable] + label]
        several = counts[s.scopes] > 1
        of_place = np.repeat(np.arange(s.n_cliques), s.orders)
        orders = np.bincount(of_place[several], minlength=s.n_cliques)
        sizes = np.bincount(clique[keep], minlength=s.n_cliques)
        example = np.repeat(np.arange(s.n_examples), np.diff(s.clique_offsets))
        return cls(s.scopes[several], orders, whole.tables[keep], sizes, example, counts)

    def absorb(self, unary: Floats, offsets: Ints, constant: Floats) -> None:
        """Move tables of no variable to the constants, and those of one to its scores."""
        cells = offsets_of(self.sizes)
        none, one = self.orders == 0, self.orders == 1
        np.add.at(constant, self.example[none], self.tables[cells[:-1][none]])
        variable = self.scopes[offsets_of(self.orders)[:-1][one]]
        sizes = self.sizes[one]
        within = np.arange(sizes.sum()) - np.repeat(offsets_of(sizes)[:-1], sizes)
        np.add.at(
            unary,
            np.repeat(offsets[variable], sizes) + within,
            self.tables[np.repeat(cells[:-1][one], sizes) + within],
        )
        self._keep(self.orders >= 2)

    def _keep(self, chosen: NDArray[np.bool_]) -> None:
        self.scopes = self.scopes[np.repeat(chosen, self.orders)]
        self.tables = self.tables[np.repeat(chosen, self.sizes)]
        self.orders, self.sizes = self.orders[chosen], self.sizes[chosen]
        self.example = self.example[chosen]

    def merged(self) -> _Cliques:
        """Merge cliques over the same variables in the same order; for pairs, in any order."""
        self._sort_pairs()
        n = len(self.orders)
        widest = int(self.orders.max(initial=0))
        padded = np.full((n, widest), -1, dtype=np.int64)
        row = np.repeat(np.arange(n), self.orders)
        padded[row, np.arange(len(row)) - offsets_of(self.orders)[row]] = self.scopes
        if n == 0:
            return self
        _, first, place = np.unique(padded, axis=0, return_index=True, return_inverse=True)
        if len(first) == n:
            return self
        target = offsets_of(self.sizes)[:-1][first[place.ravel()]]
        shift = np.repeat(target - offsets_of(self.sizes)[:-1], self.sizes)
        tables = np.zeros(len(self.tables))
        np.add.at(tables, np.arange(len(tables)) + shift, self.tables)
        self.tables = tables
        chosen = np.zeros(n, dtype=bool)
        chosen[first] = True
        self._keep(chosen)
        return self

    def _sort_pairs(self) -> None:
        begin = offsets_of(self.orders)[:-1]
        pairs = np.flatnonzero(self.orders == 2)
        a, b = self.scopes[begin[pairs]], self.scopes[begin[pairs] + 1]
        turned, a, b = pairs[a > b], a[a > b], b[a > b]
        sizes, cells = self.sizes[turned], offsets_of(self.sizes)[:-1][turned]
        within = np.arange(sizes.sum()) - np.repeat(offsets_of(sizes)[:-1], sizes)
        i, j = np.divmod(within, np.repeat(self.counts[a], sizes))  # of the turned table
        old = np.repeat(cells, sizes) + j * np.repeat(self.counts[b], sizes) + i
        self.tables[np.repeat(cells, sizes) + within] = self.tables[old]
        self.scopes[begin[turned]], self.scopes[begin[turned] + 1] = b, a


def _pieces(n: int, scopes: Ints, orders: Ints) -> Ints:
    """The smallest variable of each variable's connected component."""
    piece = np.arange(n)
    starts = offsets_of(orders)[:-1]
    while len(orders):
        least = np.minimum.reduceat(piece[scopes], starts)
        after = piece.copy()
        np.minimum.at(after, scopes, np.repeat(least, orders))
        np.minimum.at(after, piece[scopes], np.repeat(least, orders))
        after = after[after]
        if (after == piece).all():
            break
        piece = after
    return piece


def _split(
    cliques: _Cliques,
    unary: Floats,
    label: Ints,
    counts: Ints,
    owner: Ints,
    constant: Floats,
    fixed: Labels,
) -> Reduced:
    """Undecided variables and their cliques, by connected component."""
    n = len(counts)
    piece = _pieces(n, cliques.scopes, cliques.orders)
    chosen = np.flatnonzero(counts > 1)
    order = chosen[np.argsort(piece[chosen], kind="stable")]
    pieces, n_variables = np.unique(piece[order], return_counts=True)
    number = np.zeros(n, dtype=np.int64)
    number[order] = np.arange(len(order))
    first = cliques.scopes[offsets_of(cliques.orders)[:-1]]
    of_clique = np.searchsorted(pieces, piece[first])
    by_piece = np.argsort(of_clique, kind="stable")
    scopes = _rearranged(number[cliques.scopes], cliques.orders, by_piece)
    states = _rearranged(np.arange(len(unary)), counts, order)
    graph = FactorGraph.from_arrays(
        n_variables,
        scopes,
        cliques.orders[by_piece],
        np.bincount(of_clique, minlength=len(pieces)),
        counts[order],
    )
    parts = Potentials.trusted(
        graph,
        unary[states],
        _rearranged(cliques.tables, cliques.sizes, by_piece),
        np.arange(len(by_piece), dtype=np.int32),
        offsets_of(cliques.sizes[by_piece]),
    )
    return Reduced(parts, owner[pieces], constant, order, label[states], fixed)


def _rearranged(values: NDArray[T], sizes: Ints, order: Ints) -> NDArray[T]:
    """Blocks of these sizes in another order."""
    starts, taken = offsets_of(sizes)[:-1][order], sizes[order]
    return values[np.repeat(starts - offsets_of(taken)[:-1], taken) + np.arange(taken.sum())]
