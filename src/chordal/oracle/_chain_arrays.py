"""Labelled sequences for the compiled loops: the one place that reads a chain's layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._blocks import aligned_zeros
from chordal._errors import UnsupportedError
from chordal.features import (
    Layout,
    RowEntries,
    Shard,
    Spilled,
    packed_flags,
    release,
    unit_of,
)
from chordal.objectives import MarginObjective, Objective
from chordal.potentials import Potentials
from chordal.structures import Chain, offsets_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GRAM_ROWS = 100  # products of positions that may be kept for each position
PIECE = 1024  # sequences whose costs are found at a time


@dataclass(frozen=True, eq=False, repr=False)
class ChainBlock:
    """Some sequences as arrays: they may lie in a file."""

    offsets: Ints  # [n_examples + 1], into positions
    gold: NDArray[np.int32]  # labels of all positions
    weight: Floats | None  # [n_examples]
    node: RowEntries
    edge: RowEntries | None


@dataclass(frozen=True, eq=False, repr=False)
class Chains:
    """Sequences whose weights all lie in one array of cells.

    First come the cells of the rows of nodes. Intercepts, start and end are rows of weights, too:
    every position has the first of them, the first position start, and the last position end.
    Then come the cells of the rows of transitions, or one table for all of them.
    """

    blocks: Sequence[ChainBlock]
    bound: Sequence[_kernels.OnlineChains]  # the blocks as the kernel takes them
    limits: Ints  # where the examples of each block begin, and where the last ones end
    n_labels: int
    n_cells: int
    cell_of_weight: Ints
    tied: bool  # one table for all transitions

    @property
    def arrays(self) -> _kernels.OnlineChains:
        """All sequences, if they are one block."""
        (arrays,) = self.bound
        return arrays

    @property
    def lengths(self) -> Ints:
        """The lengths of all sequences, if they are one block."""
        (block,) = self.blocks
        return np.diff(block.offsets)

    @property
    def gold(self) -> NDArray[np.int32]:
        """The labels of all sequences, if they are one block."""
        (block,) = self.blocks
        return block.gold

    @property
    def weight(self) -> Floats | None:
        """The weights of all examples, if they are one block."""
        (block,) = self.blocks
        return block.weight

    def within(self, block: int, examples: Ints) -> tuple[_kernels.OnlineChains, Ints]:
        """A block for the kernel, and these of its examples by their numbers there."""
        return self.bound[block], examples - self.limits[block]

    def place(self, example: int) -> tuple[int, int]:
        """The block of an example, and its number there."""
        block = int(np.searchsorted(self.limits, example, side="right")) - 1
        return block, example - int(self.limits[block])

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
            self.gram = _kernels.chain_gram(chains.arrays)

    def gold_keys(self) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
        """Where the gold labels lie, and where the gold transitions lie, example after example.

        The places of labels count the cells of an example's padded rows of labels, those of
        transitions the cells of its padded tables. With each comes the number of these cells, by
        example.
        """
        n, lengths = self.chains.n_labels, self.chains.lengths
        stride = -(-n // unit_of(n)) * unit_of(n)
        gold = self.chains.gold.astype(np.int64)
        position = np.arange(len(gold)) - np.repeat(offsets_of(lengths)[:-1], lengths)
        right = np.flatnonzero(position > 0)
        transitions = gold[right - 1] * stride + gold[right]
        if not self.chains.tied:
            transitions += (position[right] - 1) * n * stride
        tables = np.ones_like(lengths) if self.chains.tied else np.maximum(lengths - 1, 0)
        labels = (position * stride + gold, lengths * stride)
        return labels, (transitions, tables * n * stride)


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


def chains_of(layout: Layout, shards: Sequence[Shard], cuts: Sequence[int]) -> Chains:
    """The sequences of shards with gold labels; blocks of shards begin at `cuts`.

    If there are several blocks of shards in a file, the blocks lie in a file too.
    """
    n, places = layout.n_labels, list[_Places]()

    def made() -> Iterator[ChainBlock]:
        for a, b in pairwise(cuts):
            block, own = _block(layout, shards[a:b])
            places[:] = [own]  # the same for all blocks
            release(shards[a:b])
            yield block

    stored = isinstance(shards, Spilled) and len(cuts) > 2
    blocks: Sequence[ChainBlock] = Spilled.of(made()) if stored else list(made())
    base, n_cells, cells = places[0]
    live = packed_flags(cells, n_cells)
    return Chains(
        blocks=blocks,
        bound=[_bound(block, live, base, n) for block in blocks],
        limits=offsets_of([len(block.offsets) - 1 for block in blocks]),
        n_labels=n,
        n_cells=n_cells,
        cell_of_weight=cells,
        tied=blocks[0].edge is None,
    )


class _Places(NamedTuple):
    """Where weights lie."""

    base: int  # the first cell of transitions
    n_cells: int
    cells: Ints  # [n_weights]


def _block(layout: Layout, shards: Sequence[Shard]) -> tuple[ChainBlock, _Places]:
    """The sequences of some shards, and the cells of all weights."""
    lengths = np.concatenate([np.diff(s.frame.structure.variable_offsets) for s in shards])
    node, node_cells, of_node = _entries(layout, shards, pairs=False)
    edge, edge_cells, of_edge = _entries(layout, shards, pairs=True)
    assert node is not None  # the reader has seen to it
    base, n = -(-node.n_cells // 4) * 4, layout.n_labels  # flags are kept for four cells at a time
    n_cells = base + -(-(n * n if edge is None else edge.n_cells) // 4) * 4
    if n_cells >= 2**32:
        raise ValueError("too many weights for online learning: raise min_freq")
    cells = np.empty(layout.n_weights, dtype=np.int64)
    cells[of_node], cells[of_edge] = node_cells, base + edge_cells
    gold = np.concatenate([s.labels for s in shards if isinstance(s.labels, np.ndarray)])
    weights = [s.weight for s in shards if s.weight is not None]
    block = ChainBlock(
        offsets_of(lengths),
        gold.astype(np.int32),
        np.concatenate(weights) if weights else None,
        node.without_weights(),
        None if edge is None else edge.without_weights(base),
    )
    return block, _Places(base, n_cells, cells)


def _bound(
    block: ChainBlock, live: NDArray[np.uint8], base: int, n_labels: int
) -> _kernels.OnlineChains:
    """A block for the kernel, which copies nothing."""
    return _kernels.OnlineChains(
        offsets=block.offsets,
        gold=block.gold,
        weight=block.weight,
        live=live,
        node=_kernel_rows(block.node, 0),
        edge=None if block.edge is None else _kernel_rows(block.edge, base),
        table=base,
        labels=n_labels,
    )


def _entries(
    layout: Layout, shards: Sequence[Shard], pairs: bool
) -> tuple[RowEntries | None, Ints, Ints]:
    """The rows of all templates of variables, or of pairs of them, as one list of entries.

    Also the cells of their weights, and which weights these are. If there are no rows, these are
    the cells of one table.
    """
    found: RowEntries | None = None
    table, places = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    numbered = [(k, own) for k, own in enumerate(layout.templates) if (own.order > 1) == pairs]
    for k, own in sorted(numbered, key=lambda item: item[1].rows is None):  # those with rows first
        first, outputs = layout.slices[own.name].start, own.tables.cell_of_output
        if own.rows is not None:
            if found is not None if pairs else any(s.variables[k] is not None for s in shards):
                raise UnsupportedError(
                    "learning from one chain after another takes features of all variables, and "
                    "those of one template of pairs at most; use a solver such as 'lbfgs'"
                )
            entries = own.rows.entries([s.rows[k] for s in shards])
            if not pairs and not own.tables.is_full:
                entries = entries.of_output(int(outputs[0]), layout.n_labels)
            found = entries if found is None else found.beside(entries)
            places.append(first + np.arange(own.n_row_weights))
        if found is None:
            table.append(outputs[own.kept])
        elif len(own.kept):
            variables = [s.variables[k] for s in shards]
            rows = np.arange(found.n_rows) if pairs else _rows_of(variables, shards)
            found = found.with_wide_row(rows, outputs[own.kept])
        places.append(first + own.n_row_weights + np.arange(len(own.kept)))
    return found, np.concatenate(table) if found is None else found.cells, np.concatenate(places)


def _rows_of(variables: Sequence[Ints | None], shards: Sequence[Shard]) -> Ints:
    """The variables of a template, counted through all shards."""
    sizes = [shard.frame.structure.n_variables for shard in shards]
    first = offsets_of(sizes)[:-1]
    parts = [
        at + (np.arange(n) if own is None else own)
        for at, n, own in zip(first, sizes, variables, strict=True)
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _kernel_rows(entries: RowEntries, base: int) -> _kernels.OnlineRows:
    """Entries for the kernel; wide ones count their cells from `base` on."""
    wide = _kernels.WideRows(
        offsets=entries.wide_offsets, codes=entries.wide_codes, values=entries.wide_values
    )
    narrow = _kernels.NarrowRows(
        offsets=entries.narrow_offsets,
        outputs=entries.narrow_outputs,
        cells=entries.narrow_cells,
        values=entries.narrow_values,
    )
    outputs = entries.n_outputs
    return _kernels.OnlineRows(wide, narrow, outputs=outputs, unit=unit_of(outputs), base=base)
