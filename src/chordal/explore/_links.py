"""Cliques of graphs, and what each adds to the scores of its variables beside predicted labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chordal.potentials import Potentials
from chordal.structures import offsets_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Links:
    """The cliques of all examples, one after another.

    counts : cliques of each example
    orders : variables of each clique
    members : the variables of each clique, by their numbers within the example
    starts : where the scores of each member begin
    scores : of each member, θ(label, predicted labels of the others) for each of its labels
    """

    counts: Ints
    orders: Ints
    members: Ints
    starts: Ints
    scores: Floats

    @property
    def offsets(self) -> Ints:
        """Where the cliques of each example begin."""
        return offsets_of(self.counts)

    @property
    def member_offsets(self) -> Ints:
        """Where the members of each clique begin."""
        return offsets_of(self.orders)


def links_of(potentials: Potentials, labels: Ints) -> Links:
    """The cliques of potentials, beside these labels of all variables.

    Let θ be the table of a clique and y the labels. A member v gets the column of θ in which all
    other members have their labels of y.
    """
    structure = potentials.structure
    orders = np.diff(structure.scope_offsets)
    clique = np.repeat(np.arange(structure.n_cliques), orders)
    shape = structure.label_counts[structure.scopes]  # labels of each member
    strides = _strides(shape, structure.scope_offsets)
    here = labels[structure.scopes] * strides
    total = np.concatenate([[0], np.cumsum(here)])
    cell = (total[structure.scope_offsets[1:]] - total[structure.scope_offsets[:-1]])[clique]
    table = potentials.table_offsets[potentials.table_of_clique.astype(np.int64)][clique]
    first = table + cell - here
    starts = offsets_of(shape)
    local = np.arange(starts[-1]) - np.repeat(starts[:-1], shape)
    scores = potentials.tables[np.repeat(first, shape) + local * np.repeat(strides, shape)]
    counts = np.diff(structure.clique_offsets)
    before = np.repeat(structure.variable_offsets[:-1], counts)[clique]
    return Links(counts, orders, structure.scopes - before, starts, scores)


def _strides(shape: Ints, offsets: Ints) -> Ints:
    """Steps in a table from one label of each member to the next; tables are in C order."""
    strides = np.ones(len(shape), dtype=np.int64)
    last = offsets[1:] - 1
    for step in range(1, int(np.diff(offsets).max(initial=1))):
        at = last[np.diff(offsets) > step] - step
        strides[at] = strides[at + 1] * shape[at + 1]
    return strides


def joined_links(parts: Sequence[Links]) -> Links:
    """The links of several batches as one."""
    starts = [own.starts[:-1] for own in parts]
    ends = np.cumsum([0, *(int(own.starts[-1]) for own in parts)])
    moved = [own + end for own, end in zip(starts, ends, strict=False)]
    return Links(
        np.concatenate([own.counts for own in parts]),
        np.concatenate([own.orders for own in parts]),
        np.concatenate([own.members for own in parts]),
        np.concatenate([*moved, ends[-1:]]),
        np.concatenate([own.scores for own in parts]),
    )
