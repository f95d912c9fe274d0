"""The features of cliques: templates that score labels, pairs, triplets and more of any graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from chordal._blocks import Runner, run_in_turn
from chordal.features._base import Floats, Ints, RowFeatures, Rows
from chordal.features._tables import TableLayout
from chordal.potentials import Potentials
from chordal.structures import FactorGraph, offsets_of
from chordal.targets import Target


@dataclass(frozen=True)
class Cliques:
    """The cliques that a template finds in a batch, example after example.

    scopes : int64 [n, order], variables by their numbers within the example
    counts : int64 [n_examples]
    rows : a row of observations for each, or None
    whole : bool, one clique for every variable in turn (of order 1)
    """

    scopes: Ints
    counts: Ints
    rows: Rows | None
    whole: bool = False

    def reordered(self, order: Ints) -> Cliques:
        at = Rows(self.counts, self.scopes).positions(order)
        rows = None if self.rows is None else self.rows.reordered(order)
        return replace(self, scopes=self.scopes[at], counts=self.counts[order], rows=rows)

    def kept(self, mask: Any) -> Cliques:
        """Those of a mask [n]."""
        example = np.repeat(np.arange(len(self.counts)), self.counts)
        counts = np.bincount(example[mask], minlength=len(self.counts))
        rows = None
        if self.rows is not None:
            rows = Rows(counts, self.rows.data[np.flatnonzero(mask)])
        return replace(self, scopes=self.scopes[mask], counts=counts, rows=rows)


@dataclass(frozen=True)
class CliqueBatch:
    """Examples with the cliques of all templates; `sizes` counts their variables."""

    sizes: Ints
    cliques: Sequence[Cliques]

    def reordered(self, order: Ints) -> CliqueBatch:
        """The examples in this order."""
        return CliqueBatch(self.sizes[order], [c.reordered(order) for c in self.cliques])

    def kept(self, variables: Any) -> CliqueBatch:
        """The subgraph of these variables (a mask): cliques with others are left out."""
        example = np.repeat(np.arange(len(self.sizes)), self.sizes)
        sizes = np.bincount(example[variables], minlength=len(self.sizes))
        number = np.cumsum(variables) - 1  # of the batch, then within the example
        number -= np.repeat(offsets_of(sizes)[:-1], self.sizes)
        cliques = []
        for c in self.cliques:
            first = np.repeat(offsets_of(self.sizes)[:-1], c.counts)
            scopes = c.scopes + first[:, None]
            inside = variables[scopes].all(axis=1)
            cliques.append(replace(c, scopes=number[scopes]).kept(inside))
        return CliqueBatch(sizes, cliques)

    def cells(self, n_labels: int) -> Ints:
        """How many scores each example has."""
        cells = self.sizes * n_labels
        for c in self.cliques:
            if c.scopes.shape[1] > 1:
                cells = cells + c.counts * n_labels ** c.scopes.shape[1]
        return cells


@dataclass(frozen=True)
class CliqueLayout:
    """The weights of one template: of its observations, and constants for every labelling."""

    name: str
    tables: TableLayout
    rows: RowFeatures | None
    bias: bool

    @property
    def order(self) -> int:
        return self.tables.order

    @property
    def n_row_weights(self) -> int:
        return 0 if self.rows is None else self.rows.n_weights

    @property
    def n_weights(self) -> int:
        return self.n_row_weights + (self.tables.n_outputs if self.bias else 0)


@dataclass(frozen=True)
class CliqueShard:
    """Some examples of the batch, compiled; `labels` and `weight` are for training."""

    frame: Potentials  # structure and tying, without numbers
    rows: Sequence[Any]  # of each template
    variables: Sequence[Any]  # of each template of order 1: which; None for all in turn
    blocks: Sequence[slice]  # of each template of higher order: its tables
    labels: Target | None
    weight: Floats | None


@final
class CliqueFeatures:
    """weights → potentials of cliques, and parts → gradient.

    The weight vector holds the templates' weights one after another, each first those of its
    observations, then its constants. Templates of order 1 add to the scores of labels. One of a
    higher order gives each clique a table; without observations all its cliques share one.

    Parameters
    ----------
    n_labels : int
    layouts : list of CliqueLayout
        With names that differ.
    """

    def __init__(self, n_labels: int, layouts: Sequence[CliqueLayout]) -> None:
        self.n_labels, self.layouts = n_labels, list(layouts)
        limits = offsets_of([layout.n_weights for layout in layouts])
        self.slices = {k.name: slice(*limits[i : i + 2]) for i, k in enumerate(self.layouts)}
        self.n_weights = int(limits[-1])

    def condensed(
        self, batch: CliqueBatch
    ) -> tuple[CliqueFeatures, CliqueBatch, Callable[[Floats], Floats]] | None:
        """A form that costs less in training (see `RowFeatures.condensed`), and how to spread
        its weights. None if there is none.
        """
        found = [
            layout.rows.condensed(cliques.rows) if layout.rows and cliques.rows else None
            for layout, cliques in zip(self.layouts, batch.cliques, strict=True)
        ]
        if not any(found):
            return None
        features = CliqueFeatures(
            self.n_labels,
            [
                replace(k, rows=made.features) if made else k
                for k, made in zip(self.layouts, found, strict=True)
            ],
        )
        cliques = [
            replace(c, rows=made.rows) if made else c
            for c, made in zip(batch.cliques, found, strict=True)
        ]

        def spread(weights: Floats) -> Floats:
            parts = []
            for layout, made in zip(features.layouts, found, strict=True):
                own = weights[features.slices[layout.name]]
                n = layout.n_row_weights
                parts += [made.spread(own[:n]) if made else own[:n], own[n:]]
            return np.concatenate(parts)

        return features, CliqueBatch(batch.sizes, cliques), spread

    def compile(
        self,
        batch: CliqueBatch,
        begin: int,
        end: int,
        labels: Target | None = None,
        weight: Floats | None = None,
    ) -> CliqueShard:
        """Examples begin..end as a shard."""
        sizes = batch.sizes[begin:end]
        variables = offsets_of(sizes)
        rows, of_order_1, blocks = [], [], []
        scopes, examples, tables = [], [], []
        n_tables, cell = 0, 0
        for layout, cliques in zip(self.layouts, batch.cliques, strict=True):
            limits = offsets_of(cliques.counts)
            first, last = int(limits[begin]), int(limits[end])
            n = last - first
            compiled = None
            if layout.rows is not None and cliques.rows is not None:
                compiled = layout.rows.compile(cliques.rows, first, last)
            rows.append(compiled)
            example = np.repeat(np.arange(len(sizes)), cliques.counts[begin:end])
            scope = cliques.scopes[first:last] + variables[example][:, None]
            of_order_1.append(None if layout.order > 1 or cliques.whole else scope[:, 0])
            if layout.order == 1:
                blocks.append(slice(0, 0))
                continue
            own = n if layout.rows is not None else min(n, 1)
            tables.append(n_tables + (np.arange(n) if own == n else np.zeros(n, dtype=np.int64)))
            blocks.append(slice(cell, cell + own * layout.tables.n_cells))
            n_tables, cell = n_tables + own, cell + own * layout.tables.n_cells
            scopes.append(scope)
            examples.append(example)
        frame = self._frame(sizes, scopes, examples, tables, blocks)
        first_variable = int(batch.sizes[:begin].sum())
        return CliqueShard(
            frame,
            rows,
            of_order_1,
            blocks,
            None if labels is None else labels[first_variable : first_variable + variables[-1]],
            None if weight is None else weight[begin:end],
        )

    def _frame(
        self,
        sizes: Ints,
        scopes: Sequence[Ints],
        examples: Sequence[Ints],
        tables: Sequence[Ints],
        blocks: Sequence[slice],
    ) -> Potentials:
        """Structure and tying: cliques by example, then by template."""
        none = np.zeros(0, dtype=np.int64)
        example = np.concatenate([none, *examples])
        order = np.argsort(example, kind="stable")
        lengths = np.concatenate([none, *(np.full(len(s), s.shape[1]) for s in scopes)])
        flat = np.concatenate([none, *(s.ravel() for s in scopes)])
        offsets, taken = offsets_of(lengths), lengths[order]
        at = np.repeat(offsets[:-1][order] - offsets_of(taken)[:-1], taken) + np.arange(len(flat))
        structure = FactorGraph.from_arrays(
            sizes, flat[at], taken, np.bincount(example, minlength=len(sizes)), self.n_labels
        )
        cells = [
            np.full((block.stop - block.start) // k.tables.n_cells, k.tables.n_cells)
            for k, block in zip(self.layouts, blocks, strict=True)
        ]
        limits = offsets_of(np.concatenate([none, *cells]))
        return Potentials.trusted(
            structure,
            np.zeros(0),
            np.broadcast_to(0.0, limits[-1]),
            np.concatenate([none, *tables])[order].astype(np.int32),
            limits,
        )

    def expand(
        self, weights: Floats, memory: Any = None, run: Runner = run_in_turn
    ) -> list[tuple[Any, Floats | None]]:
        """For each template the weights of its rows as these take them, and its constant table."""
        out: list[tuple[Any, Floats | None]] = []
        for k, layout in enumerate(self.layouts):
            own, n = weights[self.slices[layout.name]], layout.n_row_weights
            rows = None
            if layout.rows is not None:
                rows = layout.rows.expand(own[:n], memory and memory[k][0], run)
            table = layout.tables.filled(own[None, n:])[0] if layout.bias else None
            out.append((rows, table))
        return out

    def potentials(
        self,
        shard: CliqueShard,
        w: list[tuple[Any, Floats | None]],
        memory: Floats | None = None,
    ) -> Potentials:
        """Scores of a shard's labels and cliques; those of labels in `memory` if it is given."""
        n, size = shard.frame.structure.n_variables, self.n_labels
        unary = np.empty(n * size) if memory is None else memory[: n * size]
        tables = np.empty(len(shard.frame.tables))
        empty = True  # the first template writes, the others add
        for k, layout in enumerate(self.layouts):
            if layout.order > 1:
                self._map_tables(layout, shard.rows[k], w[k], tables[shard.blocks[k]])
                continue
            every = shard.variables[k] is None
            if empty and not (every and layout.rows is not None):
                unary[:] = 0.0
            scores = unary.reshape(n, size)
            if empty and every and layout.rows is not None:
                layout.rows.map(shard.rows[k], w[k][0], unary)
                if (table := w[k][1]) is not None:
                    scores += table
            else:
                self._add_scores(layout, shard.rows[k], w[k], scores, shard.variables[k])
            empty = False
        if empty:
            unary[:] = 0.0
        return shard.frame.like(unary, tables)

    def _map_tables(
        self, layout: CliqueLayout, rows: Any, w: tuple[Any, Floats | None], out: Floats
    ) -> None:
        cells, n_outputs = layout.tables.n_cells, layout.tables.n_outputs
        tables = out.reshape(-1, cells)
        if layout.rows is None:
            tables[:] = w[1]
            return
        if layout.tables.is_full:
            layout.rows.map(rows, w[0], out)
        else:
            scores = np.empty(len(tables) * n_outputs)
            layout.rows.map(rows, w[0], scores)
            tables[:] = layout.tables.filled(scores.reshape(-1, n_outputs))
        if w[1] is not None:
            tables += w[1]

    def _add_scores(
        self,
        layout: CliqueLayout,
        rows: Any,
        w: tuple[Any, Floats | None],
        scores: Floats,
        variables: Any,
    ) -> None:
        """Add a template of order 1 to the scores of some labels."""
        n = len(scores) if variables is None else len(variables)
        own = np.zeros((n, self.n_labels))
        if layout.rows is not None:
            layout.rows.map(rows, w[0], own.ravel())
        if w[1] is not None:
            own += w[1]
        if variables is None:
            scores += own
        else:
            np.add.at(scores, variables, own)

    def zeros(self, memory: Any = None, run: Runner = run_in_turn) -> list[tuple[Any, Floats]]:
        """An empty gradient, in `memory` of this form."""
        return [
            (
                None if k.rows is None else k.rows.zeros(memory and memory[i][0], run),
                np.zeros(k.tables.n_outputs),
            )
            for i, k in enumerate(self.layouts)
        ]

    def _row_blocks(self, n_jobs: int) -> list[int]:
        """Tasks of each template's rows; one where parts have to be gathered first."""
        return [
            0 if k.rows is None else k.rows.n_blocks(n_jobs) if k.tables.is_full else 1
            for k in self.layouts
        ]

    def n_blocks(self, n_jobs: int) -> int:
        """Tasks of the adjoint: those of the rows, and one for all constants."""
        return 1 + sum(self._row_blocks(n_jobs))

    def adjoint(
        self,
        shard: CliqueShard,
        parts: Potentials,
        sums: list[tuple[Any, Floats]],
        block: int,
        n_jobs: int,
    ) -> None:
        """Add one block of the gradient."""
        if block == 0:
            for k, layout in enumerate(self.layouts):
                if layout.bias:
                    total = self._tables_of(k, shard, parts).sum(axis=0)
                    sums[k][1][:] += layout.tables.gathered(total[None])[0]
            return
        block -= 1
        for k, n in enumerate(self._row_blocks(n_jobs)):
            if block < n:
                self._adjoint_rows(k, shard, parts, sums[k][0], block, n_jobs)
                return
            block -= n

    def _adjoint_rows(
        self, k: int, shard: CliqueShard, parts: Potentials, sums: Any, block: int, n_jobs: int
    ) -> None:
        layout = self.layouts[k]
        if layout.rows is None:
            return
        own = layout.tables.gathered(self._tables_of(k, shard, parts)).ravel()
        blocks = [block] if layout.tables.is_full else range(layout.rows.n_blocks(n_jobs))
        for b in blocks:
            layout.rows.adjoint(shard.rows[k], own, sums, b, n_jobs)

    def _tables_of(self, k: int, shard: CliqueShard, parts: Potentials) -> Floats:
        """The parts of a template's cliques [n, n_cells]; of tied ones, their sum."""
        layout = self.layouts[k]
        if layout.order > 1:
            return parts.tables[shard.blocks[k]].reshape(-1, layout.tables.n_cells)
        rows, variables = parts.unary.reshape(-1, self.n_labels), shard.variables[k]
        return rows if variables is None else rows[variables]

    def collect(
        self,
        sums: list[tuple[Any, Floats]],
        out: Floats | None = None,
        run: Runner = run_in_turn,
    ) -> Floats:
        """The finished gradient, in `out` if that is given."""
        out = np.empty(self.n_weights) if out is None else out
        for layout, (rows, table) in zip(self.layouts, sums, strict=True):
            own, n = out[self.slices[layout.name]], layout.n_row_weights
            if layout.rows is not None:
                layout.rows.collect(rows, own[:n], run)
            if layout.bias:
                own[n:] = table
        return out
