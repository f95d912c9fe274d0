"""The features of a chain: what its labels, transitions and ends are scored by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from chordal._blocks import Runner, run_in_turn
from chordal.features._base import Floats, Ints, RowFeatures, Rows
from chordal.potentials import Potentials
from chordal.structures import Chain, offsets_of
from chordal.targets import Target

#: The groups of weights, in the order of the weight vector.
GROUPS = ("node", "edge", "transitions", "bias", "start", "end")


@dataclass(frozen=True)
class ChainShard:
    """Some sequences of the batch, compiled; `labels` and `weight` are for training."""

    frame: Potentials  # structure and tying, without numbers
    node: Any
    edge: Any
    first: Ints  # rows where a sequence begins, and where one ends
    last: Ints
    labels: Target | None
    weight: Floats | None


@dataclass(frozen=True)
class _Expanded:
    node: Any
    edge: Any
    table: Floats  # [n_labels * n_labels]
    bias: Floats  # [n_labels]
    start: Floats
    end: Floats


@final
class ChainFeatures:
    """weights → potentials of chains, and parts → gradient.

    The weight vector is, in this order: `node` (rows × labels), `edge` (rows of observations ×
    label pairs), `transitions` (label pairs without observation), `bias`, `start`, `end` (labels).

    Parameters
    ----------
    node : RowFeatures with n_labels outputs
    edge : RowFeatures with n_labels² outputs (y_{t-1}, y_t), or None
    transitions : int64 [n_transitions]
        The label pairs i * n_labels + j that have a weight; the others score 0.
    bias, ends : bool
        Whether labels have a weight of their own, and one for the first and last position.
    """

    def __init__(
        self,
        n_labels: int,
        node: RowFeatures,
        edge: RowFeatures | None,
        transitions: Ints,
        bias: bool,
        ends: bool,
    ) -> None:
        self.n_labels, self.node, self.edge = n_labels, node, edge
        self.transitions, self.bias, self.ends = transitions, bias, ends
        edges, at_ends = edge.n_weights if edge else 0, n_labels if ends else 0
        n_bias = n_labels if bias else 0
        limits = offsets_of([node.n_weights, edges, len(transitions), n_bias, at_ends, at_ends])
        self.slices = {k: slice(*limits[i : i + 2]) for i, k in enumerate(GROUPS)}
        self.n_weights = int(limits[-1])

    def condensed(
        self, node_rows: Rows, edge_rows: Rows | None
    ) -> tuple[ChainFeatures, Rows, Rows | None, Callable[[Floats], Floats]] | None:
        """A form that costs less in training (see `RowFeatures.condensed`): features, rows of
        nodes and of transitions, and how to spread weights. None if there is none.
        """
        node = self.node.condensed(node_rows)
        edge = self.edge.condensed(edge_rows) if self.edge and edge_rows else None
        if node is None and edge is None:
            return None
        features = ChainFeatures(
            self.n_labels,
            node.features if node else self.node,
            edge.features if edge else self.edge,
            self.transitions,
            self.bias,
            self.ends,
        )

        # By group; the rows are not kept alive.
        spreads = {"node": node.spread if node else None, "edge": edge.spread if edge else None}

        def spread(weights: Floats) -> Floats:
            parts = {group: weights[part] for group, part in features.slices.items()}
            for group, of_group in spreads.items():
                if of_group is not None:
                    parts[group] = of_group(parts[group])
            return np.concatenate(list(parts.values()))

        return features, node.rows if node else node_rows, edge.rows if edge else edge_rows, spread

    def compile(
        self,
        node_rows: Rows,
        edge_rows: Rows | None,
        begin: int,
        end: int,
        labels: Target | None = None,
        weight: Floats | None = None,
        once: bool = False,
    ) -> ChainShard:
        """Sequences begin..end as a shard, for many rounds of training or for potentials once."""
        lengths = node_rows.lengths[begin:end]
        first_row = int(node_rows.offsets[begin])
        structure = Chain(lengths, self.n_labels)
        n, edges = structure.n_variables, structure.n_cliques
        edge = None
        if self.edge is not None and edge_rows is not None:
            first_edge = int(edge_rows.offsets[begin])
            read = self.edge.glimpse if once else self.edge.compile
            edge = read(edge_rows, first_edge, first_edge + edges)
        # One tied table, or a table for each transition.
        n_tables = min(edges, 1) if self.edge is None else edges
        index = np.zeros(edges) if self.edge is None else np.arange(edges)
        limits = np.arange(n_tables + 1, dtype=np.int64) * self.n_labels**2
        frame = Potentials.trusted(
            structure,
            np.zeros(0),
            np.broadcast_to(0.0, limits[-1]),
            index.astype(np.int32),
            limits,
        )
        offsets, filled = structure.variable_offsets, lengths > 0
        read = self.node.glimpse if once else self.node.compile
        return ChainShard(
            frame,
            read(node_rows, first_row, first_row + n),
            edge,
            offsets[:-1][filled],
            offsets[1:][filled] - 1,
            None if labels is None else labels[first_row : first_row + n],
            None if weight is None else weight[begin:end],
        )

    def expand(
        self, weights: Floats, memory: _Expanded | None = None, run: Runner = run_in_turn
    ) -> _Expanded:
        """The weights in the form that `potentials` takes, in `memory` of this form."""
        table = np.zeros(self.n_labels**2)
        table[self.transitions] = weights[self.slices["transitions"]]
        return _Expanded(
            self.node.expand(weights[self.slices["node"]], memory and memory.node, run),
            self.edge.expand(weights[self.slices["edge"]], memory and memory.edge, run)
            if self.edge
            else None,
            table,
            *(weights[self.slices[k]] for k in ("bias", "start", "end")),
        )

    def potentials(
        self, shard: ChainShard, w: _Expanded, memory: Floats | None = None
    ) -> Potentials:
        """Scores of a shard's labels and transitions, in `memory` if that is given."""
        n, size = shard.frame.structure.n_variables, self.n_labels
        unary = np.empty(n * size) if memory is None else memory[: n * size]
        self.node.map(shard.node, w.node, unary)
        rows = unary.reshape(n, size)
        if self.bias:
            rows += w.bias
        if self.ends:
            rows[shard.first] += w.start
            rows[shard.last] += w.end
        edges = shard.frame.structure.n_cliques
        if self.edge is None:
            return shard.frame.like(unary, w.table[: len(shard.frame.tables)])
        tables = np.empty(edges * size**2)
        self.edge.map(shard.edge, w.edge, tables)
        tables.reshape(edges, size**2)[:] += w.table
        return shard.frame.like(unary, tables)

    def zeros(
        self, memory: dict[str, Any] | None = None, run: Runner = run_in_turn
    ) -> dict[str, Any]:
        """An empty gradient, in `memory` of this form."""
        old = memory or {"node": None, "edge": None}
        sums: dict[str, Any] = {k: np.zeros(self.n_labels) for k in ("bias", "start", "end")}
        sums["node"], sums["table"] = self.node.zeros(old["node"], run), np.zeros(self.n_labels**2)
        sums["edge"] = self.edge.zeros(old["edge"], run) if self.edge else None
        return sums

    def n_blocks(self, n_jobs: int) -> int:
        """Tasks of the adjoint: those of the rows, and one for all that is tied."""
        return 1 + self.node.n_blocks(n_jobs) + (self.edge.n_blocks(n_jobs) if self.edge else 0)

    def adjoint(
        self, shard: ChainShard, parts: Potentials, sums: dict[str, Any], block: int, n_jobs: int
    ) -> None:
        """Add one block of the gradient."""
        if block == 0:
            self._adjoint_tied(shard, parts, sums)
            return
        block -= 1
        if block < self.node.n_blocks(n_jobs):
            self.node.adjoint(shard.node, parts.unary, sums["node"], block, n_jobs)
        elif self.edge is not None:
            block -= self.node.n_blocks(n_jobs)
            self.edge.adjoint(shard.edge, parts.tables, sums["edge"], block, n_jobs)

    def _adjoint_tied(self, shard: ChainShard, parts: Potentials, sums: dict[str, Any]) -> None:
        if len(parts.tables):
            sums["table"] += parts.tables.reshape(-1, self.n_labels**2).sum(axis=0)
        rows = parts.unary.reshape(-1, self.n_labels)
        if self.bias:
            sums["bias"] += rows.sum(axis=0)
        if self.ends:
            sums["start"] += rows[shard.first].sum(axis=0)
            sums["end"] += rows[shard.last].sum(axis=0)

    def collect(
        self, sums: dict[str, Any], out: Floats | None = None, run: Runner = run_in_turn
    ) -> Floats:
        """The finished gradient, in `out` if that is given."""
        out = np.empty(self.n_weights) if out is None else out
        self.node.collect(sums["node"], out[self.slices["node"]], run)
        if self.edge is not None:
            self.edge.collect(sums["edge"], out[self.slices["edge"]], run)
        out[self.slices["transitions"]] = sums["table"][self.transitions]
        for k in ("bias", "start", "end"):
            if self.slices[k].stop > self.slices[k].start:
                out[self.slices[k]] = sums[k]
        return out
