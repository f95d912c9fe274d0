"""Labelled sequences for the compiled loops: the one place that reads a chain's features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._blocks import aligned_zeros
from chordal._errors import UnsupportedError
from chordal.features import ChainFeatures, ChainShard, RowEntries, packed_flags, unit_of
from chordal.objectives import MarginObjective, Objective
from chordal.potentials import Potentials
from chordal.structures import Chain, offsets_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GRAM_ROWS = 100  # products of positions that may be kept for each position
PIECE = 1024  # sequences whose costs are found at a time


@dataclass(frozen=True, eq=False, repr=False)
class Chains:
    """Sequences whose weights all lie in one array of cells.

    First come the cells of the rows of nodes, with bias, start and end as rows of weights that
    every, the first and the last position hold; then those of the rows of transitions, or one
    table for all of them.
    """

    arrays: _kernels.OnlineChains
    n_labels: int
    n_cells: int
    cell_of_weight: Ints
    lengths: Ints  # [n_examples]
    gold: NDArray[np.int32]  # labels of all sequences
    weight: Floats | None  # [n_examples]
    tied: bool  # one table for all transitions

    def spread(self, weights: Floats) -> Floats:
        """Weights in their cells; padding is zero."""
        cells = aligned_zeros(self.n_cells)
        cells[self.cell_of_weight] = weights
        return cells

    def gather(self, cells: Floats) -> Floats:
        """The weights in these cells."""
        return cells[self.cell_of_weight]

    def weight_of(self, cells: NDArray[np.uint32]) -> Ints:
        """Which weight lies in each of these cells."""
        weights = np.zeros(self.n_cells, dtype=np.int64)
        weights[self.cell_of_weight] = np.arange(len(self.cell_of_weight))
        return weights[cells]


class ChainDuals:
    """What compiled rules of dual variables take besides the chains.

    Parameters
    ----------
    chains : Chains
    objective : Objective
        Whose cost is a sum over the labels of single positions.
    """

    def __init__(self, chains: Chains, objective: Objective) -> None:
        self.chains = chains
        #: Whether the loss is log Σ exp in place of the maximum.
        self.soft = isinstance(objective, MarginObjective) and bool(objective.temperature)
        self.highest_cost, self.costs = _label_costs(chains, objective)
        n = len(chains.lengths)
        self.sample_weight = np.ones(n) if chains.weight is None else chains.weight
        sizes = chains.lengths * (chains.lengths + 1) // 2
        self.gram_offsets, self.gram = offsets_of(sizes), None
        #: Whether every attribute has a weight for every label.
        self.full = bool(_kernels.chain_is_full(chains.arrays))
        if self.full and sizes.sum() <= GRAM_ROWS * len(chains.gold):
            self.gram = _kernels.chain_gram(chains.arrays, chains.n_cells)

    def gold_keys(self) -> tuple[Ints, Ints]:
        """Where the gold labels lie in padded rows of an example's labels, and the gold
        transitions in padded rows of its tables; example after example.
        """
        n, lengths = self.chains.n_labels, self.chains.lengths
        stride = -(-n // unit_of(n)) * unit_of(n)
        gold = self.chains.gold.astype(np.int64)
        position = np.arange(len(gold)) - np.repeat(offsets_of(lengths)[:-1], lengths)
        right = np.flatnonzero(position > 0)
        transitions = gold[right - 1] * stride + gold[right]
        if not self.chains.tied:
            transitions += (position[right] - 1) * n * stride
        return position * stride + gold, transitions


def _label_costs(chains: Chains, objective: Objective) -> tuple[float, _kernels.LabelCosts]:
    """The highest cost of a label; the distinct rows of costs of a position's labels, and which
    of them each position has.
    """
    n, cost, offsets = chains.n_labels, objective.cost, offsets_of(chains.lengths)
    if cost is None:
        return 0.0, _kernels.LabelCosts(np.zeros(n), np.zeros(len(chains.gold), dtype=np.int32))
    rows, where, known = [np.zeros((1, n))], [np.zeros(0, dtype=np.int32)], 1
    for begin in range(0, len(chains.lengths), PIECE):
        lengths = chains.lengths[begin : begin + PIECE]
        gold = chains.gold[offsets[begin] : offsets[begin + len(lengths)]]
        structure = Chain(lengths, n)
        tables = np.zeros(n * n if structure.n_cliques else 0)
        priced = cost.add(Potentials(structure, np.zeros(structure.n_states), tables), gold)
        if priced.tables.any():
            raise UnsupportedError(
                f"cost {cost.name!r} of objective {objective.name!r} does not decompose into "
                "prices of single labels, which solvers with dual variables of examples need: use "
                "cost 'hamming', or solver 'one_slack'"
            )
        distinct, index = np.unique(priced.unary.reshape(-1, n), axis=0, return_inverse=True)
        rows.append(distinct)
        where.append((known + index.ravel()).astype(np.int32))
        known += len(distinct)
    prices = np.concatenate(rows).ravel()
    return float(prices.max()), _kernels.LabelCosts(prices, np.concatenate(where))


def are_chains(features: object) -> TypeGuard[ChainFeatures]:
    """Whether these are features of chains, which compiled loops can learn."""
    return isinstance(features, ChainFeatures)


def chains_of(features: object, shards: Sequence[ChainShard]) -> Chains:
    """The sequences of shards with gold labels."""
    if not are_chains(features):
        raise TypeError(f"features must be those of chains, got {type(features).__name__}")
    lengths = np.concatenate([np.diff(s.frame.structure.variable_offsets) for s in shards])
    node_offsets = offsets_of(lengths)
    node = _node_entries(features, shards, node_offsets)
    base = -(-node.n_cells // 4) * 4  # flags are kept for four cells at a time
    n, edge = features.n_labels, None
    if features.edge is None:
        edge_cells = base + features.transitions
        n_cells = base + -(-n * n // 4) * 4
    else:
        edge = features.edge.entries([s.edge for s in shards])
        edge = edge.with_wide_row(np.arange(edge.n_rows), features.transitions)
        edge_cells = base + edge.cells
        n_cells = base + -(-edge.n_cells // 4) * 4
    if n_cells >= 2**32:
        raise ValueError("too many weights for online learning: raise min_freq")
    split = features.slices["node"].stop  # weights of bias, start and end come last
    cells = np.concatenate([node.cells[:split], edge_cells, node.cells[split:]])
    gold = np.concatenate([s.labels for s in shards if isinstance(s.labels, np.ndarray)])
    weights = [s.weight for s in shards if s.weight is not None]
    weight = np.concatenate(weights) if weights else None
    gold = gold.astype(np.int32)
    arrays = _kernels.OnlineChains(
        node_offsets,
        offsets_of(np.maximum(lengths - 1, 0)),
        gold,
        weight,
        packed_flags(cells, n_cells),
        _kernel_rows(node, 0),
        None if edge is None else _kernel_rows(edge, base),
        base,
        n,
    )
    return Chains(arrays, n, n_cells, cells, lengths, gold, weight, edge is None)


def _node_entries(
    features: ChainFeatures, shards: Sequence[ChainShard], offsets: Ints
) -> RowEntries:
    """The rows of nodes, with the weights of bias, start and end after their own."""
    entries = features.node.entries([s.node for s in shards])
    labels = np.arange(features.n_labels)
    filled = np.diff(offsets) > 0
    if features.bias:
        entries = entries.with_wide_row(np.arange(entries.n_rows), labels)
    if features.ends:
        entries = entries.with_wide_row(offsets[:-1][filled], labels)
        entries = entries.with_wide_row(offsets[1:][filled] - 1, labels)
    return entries


def _kernel_rows(entries: RowEntries, base: int) -> _kernels.OnlineRows:
    """Entries for the kernel, their cells counted from `base` on."""
    moved = replace(entries, narrow_cells=entries.narrow_cells + np.uint32(base))
    return _kernels.OnlineRows(
        moved.wide_offsets,
        moved.wide_codes,
        moved.wide_values,
        moved.narrow_offsets,
        moved.narrow_outputs,
        moved.narrow_cells,
        moved.narrow_values,
        moved.n_outputs,
        unit_of(moved.n_outputs),
        base,
    )
