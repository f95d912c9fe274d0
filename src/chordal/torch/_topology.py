"""Which variables and cliques the examples of a batch have, and scores on them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from chordal.structures import Structure


class GraphScores(NamedTuple):
    """Scores of a batch, of one dtype and on one device."""

    unary: Tensor  # [B, N, L]
    tables: Tensor  # [1 or B, cells]: tables one after another, each in C order
    table_of_clique: Tensor  # [E]
    table_offsets: Tensor  # [number of tables + 1]

    def held(self, allowed: Tensor) -> GraphScores:
        """The same with labels forbidden: `allowed` is [B, N, L]."""
        return self._replace(unary=self.unary.masked_fill(~allowed, -torch.inf))

    def detach(self) -> GraphScores:
        """The same without derivatives."""
        return self._replace(unary=self.unary.detach(), tables=self.tables.detach())

    def untied(self, orders: Tensor, n_cells: int) -> GraphScores:
        """The same scores with a table for each clique, `n_cells` in all; `orders` is [E]."""
        sizes = self.unary.shape[2] ** orders
        offsets = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        shift = self.table_offsets[self.table_of_clique] - offsets[:-1]
        cells = torch.arange(n_cells, device=sizes.device)
        cells = cells + shift.repeat_interleave(sizes, output_size=n_cells)
        own = torch.arange(len(orders), device=cells.device)
        return GraphScores(self.unary, self.tables[:, cells], own, offsets)

    def edge_tables(self) -> Tensor:
        """[1 or B, 1 or E, L, L], where all cliques are edges; 1 where all share one table."""
        n_labels = self.unary.shape[2]
        tables = self.tables.reshape(self.tables.shape[0], -1, n_labels, n_labels)
        return tables if tables.shape[1] == 1 else tables[:, self.table_of_clique]


class Topology(nn.Module):
    """The variables and cliques of every example, as tensors that move with the layer."""

    scopes: Tensor  # the variables of each clique, one clique after another
    orders: Tensor  # [E]

    def __init__(self, structure: Structure) -> None:
        super().__init__()
        self.n_variables, self.n_labels = structure.n_variables, int(structure.label_counts[0])
        self.n_cliques = structure.n_cliques
        self.n_cells = int((self.n_labels**structure.orders).sum())  # of all cliques' tables
        self.sizes = sorted(set(structure.orders.tolist()))  # how many variables cliques have
        self._hold("scopes", structure.scopes)
        self._hold("orders", structure.orders)
        for order in self.sizes:
            cliques = np.flatnonzero(structure.orders == order)
            first = structure.scope_offsets[cliques]
            self._hold(f"cliques_{order}", cliques)
            self._hold(f"scopes_{order}", structure.scopes[first[:, None] + np.arange(order)])

    def _hold(self, name: str, array: np.ndarray) -> None:
        tensor = torch.tensor(array.astype(np.int64))
        self.register_buffer(name, tensor, persistent=False)

    def score(self, scores: GraphScores, labels: Tensor) -> Tensor:
        """[B]: the score of one labelling [B, N]."""
        tables = scores.tables.expand(labels.shape[0], -1)
        total = scores.unary.gather(2, labels.unsqueeze(2)).sum((1, 2))
        for order in self.sizes:
            cells, _, _ = self._cells(scores, labels, order)
            total = total + tables.gather(1, cells).sum(1)
        return total

    def conditionals(self, scores: GraphScores, labels: Tensor) -> Tensor:
        """[B, N, L]: the score of each label given the other variables' labels [B, N].

        Up to a number that is the same for all labels of a variable.
        """
        batch, n_labels = labels.shape[0], self.n_labels
        tables, total = scores.tables.expand(batch, -1), scores.unary
        label = torch.arange(n_labels, device=labels.device)
        for order in self.sizes:
            cells, own, scopes = self._cells(scores, labels, order)
            for place in range(order):
                stride = n_labels ** (order - 1 - place)
                others = cells - own[:, :, place] * stride
                wanted = others.unsqueeze(2) + label * stride
                found = tables.gather(1, wanted.flatten(1)).reshape(wanted.shape)
                total = total.index_add(1, scopes[:, place], found)
        return total

    def _cells(
        self, scores: GraphScores, labels: Tensor, order: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Of the cliques of one order: cells [B, E'], labels [B, E', order], scopes [E', order]."""
        cliques, scopes = self.get_buffer(f"cliques_{order}"), self.get_buffer(f"scopes_{order}")
        own = labels[:, scopes]
        first = scores.table_offsets[scores.table_of_clique[cliques]]
        strides = [self.n_labels ** (order - 1 - place) for place in range(order)]
        cells = (own * torch.tensor(strides, device=labels.device)).sum(2) + first
        return cells, own, scopes
