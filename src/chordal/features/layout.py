"""The layout: a linear map from the weights of templates to potentials, and its adjoint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from chordal._blocks import Runner, run_in_turn
from chordal.features._base import Floats, Ints, RowFeatures
from chordal.features.batch import Batch
from chordal.features.clique_template import TableLayout
from chordal.potentials import Potentials
from chordal.structures import Matching, offsets_of
from chordal.targets import Target

#: Of a template, what `potentials` takes: the weights of its rows in their own form, and the table
#: of its intercepts.
Expanded = list[tuple[Any, Floats | None]]

#: Of a template, what `adjoint` adds to: sums of its rows in their own form, and of its outputs.
Sums = list[tuple[Any, Floats]]


@dataclass(frozen=True)
class TemplateLayout:
    """The weights of one template: of its observations, then intercepts of some outputs.

    name : str
    tables : TableLayout, which labellings share a weight
    rows : RowFeatures or None
    kept : int64, the outputs that have an intercept, in rising order
    """

    name: str
    tables: TableLayout
    rows: RowFeatures | None
    kept: Ints

    @property
    def order(self) -> int:
        """Variables per clique."""
        return self.tables.order

    @property
    def n_row_weights(self) -> int:
        """The weights of observations."""
        return 0 if self.rows is None else self.rows.n_weights

    @cached_property
    def every_output(self) -> bool:
        """Whether all outputs have an intercept."""
        return len(self.kept) == self.tables.n_outputs

    def table(self, intercepts: Floats) -> Floats | None:
        """The table that these intercepts fill; None for a template of observations alone."""
        if len(self.kept) == 0 and (self.rows is not None or self.order == 1):
            return None
        outputs = intercepts
        if not self.every_output:
            outputs = np.zeros(self.tables.n_outputs)
            outputs[self.kept] = intercepts
        return self.tables.filled(outputs[None])[0]


@dataclass(frozen=True)
class Shard:
    """Some examples of a batch, compiled; `labels` and `weight` are for training."""

    frame: Potentials  # structure and tying, without numbers
    rows: Sequence[Any]  # of each template
    variables: Sequence[Ints | None]  # of each template of order 1: which; None for all in turn
    blocks: Sequence[slice]  # of each template of higher order: its tables
    places: Sequence[Ints] | None  # of each group of templates: its cliques in the structure
    labels: Target | None
    weight: Floats | None


@final
class Layout:
    """weights → potentials, and parts → gradient.

    The weight vector holds the templates' weights one after another, each first those of its
    observations, then its intercepts. Templates of order 1 add to the scores of labels, those of a
    higher order to the tables of their cliques. Templates with the same cliques share tables, and
    all cliques share one table where no template of them has observations.

    Parameters
    ----------
    n_labels : int
    templates : list of TemplateLayout
        With names that differ.
    """

    def __init__(self, n_labels: int, templates: Sequence[TemplateLayout]) -> None:
        self.n_labels, self.templates = n_labels, list(templates)
        sizes = [own.n_row_weights + len(own.kept) for own in self.templates]
        limits = offsets_of(sizes)
        self.slices = {k.name: slice(*limits[i : i + 2]) for i, k in enumerate(self.templates)}
        self.n_weights = int(limits[-1])
        self._latest: tuple[Floats, Expanded] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_latest": None}

    def __getitem__(self, name: str) -> TemplateLayout:
        """The template of this name."""
        return self.templates[list(self.slices).index(name)]

    def condensed(self, batch: Batch) -> tuple[Layout, Batch, Callable[[Floats], Floats]] | None:
        """A form that costs less in training (see `RowFeatures.condensed`), and how to spread
        its weights. None if there is none.
        """
        found = [
            own.rows.condensed(cliques.rows) if own.rows and cliques.rows else None
            for own, cliques in zip(self.templates, batch.cliques, strict=True)
        ]
        if not any(found):
            return None
        pairs = list(zip(self.templates, found, strict=True))
        layout = Layout(
            self.n_labels, [replace(own, rows=new.features) if new else own for own, new in pairs]
        )
        rows = [new.rows if new else c.rows for new, c in zip(found, batch.cliques, strict=True)]
        spreads = [new.spread if new else None for new in found]  # the rows are not kept alive

        def spread(weights: Floats) -> Floats:
            parts = []
            for own, of_rows in zip(layout.templates, spreads, strict=True):
                mine, n = weights[layout.slices[own.name]], own.n_row_weights
                parts += [of_rows(mine[:n]) if of_rows else mine[:n], mine[n:]]
            return np.concatenate(parts)

        return layout, batch.with_rows(rows), spread

    def compile(
        self,
        batch: Batch,
        begin: int,
        end: int,
        labels: Target | None = None,
        weight: Floats | None = None,
        once: bool = False,
    ) -> Shard:
        """Examples begin..end as a shard, for many rounds of training or for potentials once."""
        rows, variables = [], []
        for own, cliques in zip(self.templates, batch.cliques, strict=True):
            compiled = None
            if own.rows is not None and cliques.rows is not None:
                limits = cliques.rows.offsets  # of the rows, which may be those of labels
                read = own.rows.glimpse if once else own.rows.compile
                compiled = read(cliques.rows, int(limits[begin]), int(limits[end]))
            rows.append(compiled)
            some = own.order == 1 and cliques.pattern != "each"
            some = some and (own.rows is not None or len(own.kept) > 0)
            variables.append(cliques.listed(batch.sizes, begin, end)[:, 0] if some else None)
        frame, blocks, places = self._frame(batch, begin, end)
        first, last = int(batch.offsets[begin]), int(batch.offsets[end])
        return Shard(
            frame,
            rows,
            variables,
            blocks,
            places,
            None if labels is None else labels[first:last],
            None if weight is None else weight[begin:end],
        )

    def _frame(
        self, batch: Batch, begin: int, end: int
    ) -> tuple[Potentials, list[slice], list[Ints] | None]:
        """Structure and tying; the tables of each template, and the places of its cliques."""
        structure, places = batch.structure(begin, end, self.n_labels)
        blocks = [slice(0, 0)] * len(self.templates)
        if isinstance(structure, Matching):
            tying = structure.table_of_clique, structure.table_offsets
            tables = structure.exclusion_tables
            return Potentials.trusted(structure, np.zeros(0), tables, *tying), blocks, None
        index = np.zeros(structure.n_cliques, dtype=np.int32)
        sizes, n_tables, cell = [np.zeros(0, dtype=np.int64)], 0, 0
        for g, group in enumerate(batch.groups):
            cells = self.templates[group[0]].tables.n_cells
            n = structure.n_cliques if places is None else len(places[g])
            untied = any(self.templates[k].rows is not None for k in group)
            own = n if untied else min(n, 1)
            at: slice | Ints = slice(None) if places is None else places[g]
            index[at] = n_tables + (np.arange(n) if untied else 0)
            for k in group:
                blocks[k] = slice(cell, cell + own * cells)
            sizes.append(np.full(own, cells))
            n_tables, cell = n_tables + own, cell + own * cells
        limits = offsets_of(sizes[-1] if len(sizes) < 3 else np.concatenate(sizes))
        zeros = np.broadcast_to(0.0, limits[-1])
        return Potentials.trusted(structure, np.zeros(0), zeros, index, limits), blocks, places

    def expand(
        self, weights: Floats, memory: Expanded | None = None, run: Runner = run_in_turn
    ) -> Expanded:
        """The weights in the form that `potentials` takes, in `memory` of this form."""
        out: Expanded = []
        for k, own in enumerate(self.templates):
            mine, n = weights[self.slices[own.name]], own.n_row_weights
            rows = None
            if own.rows is not None:
                rows = own.rows.expand(mine[:n], memory and memory[k][0], run)
            out.append((rows, own.table(mine[n:])))
        return out

    def expanded(self, weights: Floats) -> Expanded:
        """What `expand` gives for weights that stay as they are: made once."""
        if self._latest is None or self._latest[0] is not weights:
            self._latest = (weights, self.expand(weights))
        return self._latest[1]

    def potentials(self, shard: Shard, w: Expanded, memory: Floats | None = None) -> Potentials:
        """Scores of a shard's labels and cliques; those of labels in `memory` if it is given."""
        n = shard.frame.structure.n_states
        unary = np.empty(n) if memory is None else memory[:n]
        fixed = isinstance(shard.frame.structure, Matching)
        tables = shard.frame.tables if fixed else np.empty(len(shard.frame.tables))
        written: set[tuple[int, int]] = set()  # the first template sets, the others add
        scored = False
        for k, own in enumerate(self.templates):
            if own.rows is None and w[k][1] is None:
                continue
            variables, block = shard.variables[k], shard.blocks[k]
            if own.order > 1:
                place = (block.start, block.stop)
                self._score(own, shard.rows[k], w[k], tables[block], None, place in written)
                written.add(place)
                continue
            if variables is not None and not scored:
                unary[:], scored = 0.0, True
            self._score(own, shard.rows[k], w[k], unary, variables, scored)
            scored = True
        if not scored:
            unary[:] = 0.0
        return shard.frame.like(unary, tables)

    def _score(
        self,
        own: TemplateLayout,
        rows: object,
        w: tuple[Any, Floats | None],
        out: Floats,
        variables: Ints | None,
        add: bool,
    ) -> None:
        """Set `out` to the scores of one template, or add them; `variables` name its rows."""
        tables, table = own.tables, w[1]
        scores = out.reshape(-1, tables.n_cells)
        if own.rows is not None:
            if tables.is_full and variables is None and not add:
                own.rows.map(rows, w[0], out)
            else:
                n = len(scores) if variables is None else len(variables)
                outputs = np.empty(n * tables.n_outputs)
                own.rows.map(rows, w[0], outputs)
                cells = tables.filled(outputs.reshape(n, tables.n_outputs))
                if variables is not None:
                    _add_at(scores, variables, cells)
                elif add:
                    scores += cells
                else:
                    scores[:] = cells
            add = True
        if table is None:
            return
        if variables is not None:
            _add_at(scores, variables, np.broadcast_to(table, (len(variables), len(table))))
        elif add:
            scores += table
        else:
            scores[:] = table

    def zeros(self, memory: Sums | None = None, run: Runner = run_in_turn) -> Sums:
        """An empty gradient, in `memory` of this form."""
        return [
            (
                None if own.rows is None else own.rows.zeros(memory and memory[k][0], run),
                np.zeros(own.tables.n_outputs),
            )
            for k, own in enumerate(self.templates)
        ]

    def _row_blocks(self, n_jobs: int) -> list[int]:
        """Tasks of each template's rows; one where parts have to be gathered first."""
        return [
            0 if k.rows is None else k.rows.n_blocks(n_jobs) if k.tables.is_full else 1
            for k in self.templates
        ]

    def n_blocks(self, n_jobs: int) -> int:
        """Tasks of the adjoint: those of the rows, and one for all intercepts."""
        return 1 + sum(self._row_blocks(n_jobs))

    def adjoint(self, shard: Shard, parts: Potentials, sums: Sums, block: int, n_jobs: int) -> None:
        """Add one block of the gradient."""
        if block == 0:
            for k, own in enumerate(self.templates):
                if len(own.kept):
                    total = self._parts_of(k, shard, parts).sum(axis=0)
                    sums[k][1][:] += own.tables.gathered(total[None])[0]
            return
        block -= 1
        for k, n in enumerate(self._row_blocks(n_jobs)):
            if block < n:
                self._adjoint_rows(k, shard, parts, sums[k][0], block, n_jobs)
                return
            block -= n

    def _adjoint_rows(
        self, k: int, shard: Shard, parts: Potentials, sums: object, block: int, n_jobs: int
    ) -> None:
        own = self.templates[k]
        if own.rows is None:
            return
        gathered = own.tables.gathered(self._parts_of(k, shard, parts)).ravel()
        blocks = [block] if own.tables.is_full else range(own.rows.n_blocks(n_jobs))
        for b in blocks:
            own.rows.adjoint(shard.rows[k], gathered, sums, b, n_jobs)

    def _parts_of(self, k: int, shard: Shard, parts: Potentials) -> Floats:
        """The parts of a template's cliques [n, n_cells]; of tied ones, their sum."""
        own = self.templates[k]
        if own.order > 1:
            return parts.tables[shard.blocks[k]].reshape(-1, own.tables.n_cells)
        rows, variables = parts.unary.reshape(-1, own.tables.n_cells), shard.variables[k]
        return rows if variables is None else rows[variables]

    def collect(self, sums: Sums, out: Floats | None = None, run: Runner = run_in_turn) -> Floats:
        """The finished gradient, in `out` if that is given."""
        out = np.empty(self.n_weights) if out is None else out
        for own, (rows, outputs) in zip(self.templates, sums, strict=True):
            mine, n = out[self.slices[own.name]], own.n_row_weights
            if own.rows is not None:
                own.rows.collect(rows, mine[:n], run)
            mine[n:] = outputs if own.every_output else outputs[own.kept]
        return out


def _add_at(scores: Floats, rows: Ints, values: Floats) -> None:
    """Add values to rows of scores; a row may be named more than once."""
    if (np.diff(rows) > 0).all():
        scores[rows] += values
    else:
        np.add.at(scores, rows, values)
