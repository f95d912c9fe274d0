"""The layout: the weights of all templates, their linear map to potentials, and its adjoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from chordal import _kernels
from chordal._blocks import Runner, run_in_turn
from chordal.features.batch import Batch, Floats, Ints, LabelCounts, joined
from chordal.features.template_layout import TemplateLayout
from chordal.potentials import Potentials
from chordal.structures import Matching, offsets_of
from chordal.targets import Target

LARGE = 1000.0  # the root mean square of a column that solvers cannot leave as it is

#: Of a template, what `potentials` takes: the weights of its rows in their own form, and the table
#: of its intercepts.
Expanded = list[tuple[Any, Floats | None]]

#: Of a template, what `adjoint` adds to: sums of its rows in their own form, and of its outputs.
Sums = list[tuple[Any, Floats]]


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


#: Of each template, sums of squares of its columns of numbers, and how many rows.
Squares = Sequence[tuple[Floats, int] | None]


@final
class Layout:
    """weights → potentials, and parts → gradient.

    The weight vector has the weights of one template after another, each with its observations
    first, then its intercepts. Templates of order 1 add to the scores of labels, others to the
    tables of their cliques. Templates with the same cliques share tables; without observations, all
    cliques share one table.

    Parameters
    ----------
    n_labels : int, or tuple of int
        Of every variable, or of those of each type.
    templates : list of TemplateLayout
        With names that differ.
    """

    def __init__(self, n_labels: LabelCounts, templates: Sequence[TemplateLayout]) -> None:
        self.counts, self.templates = n_labels, list(templates)
        limits = offsets_of([own.n_row_weights + len(own.kept) for own in self.templates])
        self.slices = {k.name: slice(*limits[i : i + 2]) for i, k in enumerate(self.templates)}
        self.n_weights = int(limits[-1])
        self.scale: Floats | None = None  # of every weight: what stands for it is times this
        self._latest: tuple[Floats, Expanded] | None = None

    @property
    def n_labels(self) -> int:
        """The labels of a variable, where all have as many."""
        assert isinstance(self.counts, int)
        return self.counts

    @property
    def shares_transitions(self) -> bool:
        """Whether labellings of a clique share weights, as in a symmetric table."""
        return any(own.order > 1 and not own.tables.is_full for own in self.templates)

    def scaled(self, scale: Floats) -> Layout:
        """The same map for weights multiplied by these nonzero numbers."""
        layout = Layout(self.counts, self.templates)
        layout.scale = scale
        return layout

    def column_squares(self, parts: Iterable[Batch]) -> Squares:
        """Of each template with rows of numbers: the sum of squares of every column, and rows."""
        out: list[tuple[Floats, int] | None] = [None] * len(self.templates)
        for batch in parts:
            for k, (own, cliques) in enumerate(zip(self.templates, batch.cliques, strict=True)):
                data = None if cliques.rows is None else cliques.rows.data
                if own.rows is None or not isinstance(data, np.ndarray) or data.size == 0:
                    continue
                flat = data.reshape(-1, data.shape[-1])
                with np.errstate(over="ignore"):
                    found = np.einsum("ij,ij->j", flat, flat, dtype=np.float64)
                before, n = out[k] or (0.0, 0)
                out[k] = (before + found, n + len(flat))
        return out

    def scale_from(self, squares: Squares) -> Floats | None:
        """The size of each weight's numeric column; None if none is very large.

        Weights times these numbers have derivatives of similar size, which helps solvers.
        """
        scale, largest = np.ones(self.n_weights), 0.0
        for own, found, at in zip(self.templates, squares, self.slices.values(), strict=True):
            if own.rows is None or found is None:
                continue
            with np.errstate(over="ignore"):
                size = np.sqrt(found[0] / found[1])
            if not np.isfinite(size).all():
                return None  # beyond what scores can be
            largest = max(largest, float(size.max(initial=0.0)))
            size[size == 0.0] = 1.0
            scale[at.start : at.start + own.n_row_weights] = size[own.rows.keys().column]
        return scale if largest > LARGE else None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_latest": None}

    def __getitem__(self, name: str) -> TemplateLayout:
        """The template of this name."""
        return self.templates[list(self.slices).index(name)]

    def split(self, weights: Floats) -> Iterator[tuple[TemplateLayout, Floats, Floats]]:
        """Each template with the weights of its observations, and its intercepts."""
        for own in self.templates:
            mine, n = weights[self.slices[own.name]], own.n_row_weights
            yield own, mine[:n], mine[n:]

    def condensed(
        self, parts: Iterable[Batch]
    ) -> tuple[Layout, Callable[[Batch], Batch], Callable[[Floats], Floats]] | None:
        """A cheaper form for training on parts (see `RowFeatures.condensed`): its layout, the
        conversion of batches, and that of weights. None if there is none.
        """
        templates, changes, spreads = [], [], []
        for k, own in enumerate(self.templates):
            new = None
            if own.rows is not None:
                every = (batch.cliques[k].rows for batch in parts)
                new = own.rows.condensed(rows for rows in every if rows is not None)
            templates.append(replace(own, rows=new.features) if new else own)
            changes.append(new.rows if new else None)
            spreads.append(new.spread if new else None)
        if not any(spreads):
            return None
        layout = Layout(self.counts, templates)

        def condense(batch: Batch) -> Batch:
            rows = []
            for change, cliques in zip(changes, batch.cliques, strict=True):
                old = cliques.rows
                rows.append(old if change is None or old is None else change(old))
            return batch.with_rows(rows)

        def spread(weights: Floats) -> Floats:
            out = []
            for spread_rows, (_, of_rows, rest) in zip(spreads, layout.split(weights), strict=True):
                out += [spread_rows(of_rows) if spread_rows else of_rows, rest]
            return np.concatenate(out)

        return layout, condense, spread

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
        first, last = int(batch.offsets[begin]), int(batch.offsets[end])
        gold = None if labels is None else labels[first:last]
        factors = None if weight is None else weight[begin:end]
        frame, blocks, places = self._frame(batch, begin, end)
        return Shard(frame, rows, variables, blocks, places, gold, factors)

    def _frame(
        self, batch: Batch, begin: int, end: int
    ) -> tuple[Potentials, list[slice], list[Ints] | None]:
        """Structure and tying; the tables of each template, and the places of its cliques."""
        structure, places = batch.structure(begin, end, self.counts)
        blocks = [slice(0, 0)] * len(self.templates)
        if isinstance(structure, Matching):
            tying = structure.table_of_clique, structure.table_offsets
            tables = structure.exclusion_tables
            return Potentials.trusted(structure, np.zeros(0), tables, *tying), blocks, None
        index = np.zeros(structure.n_cliques, dtype=np.int32)
        sizes, n_tables, cell = [], 0, 0
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
        limits = offsets_of(sizes[0] if len(sizes) == 1 else joined(sizes))
        zeros = np.broadcast_to(0.0, limits[-1])
        return Potentials.trusted(structure, np.zeros(0), zeros, index, limits), blocks, places

    def expand(
        self, weights: Floats, memory: Expanded | None = None, run: Runner = run_in_turn
    ) -> Expanded:
        """The weights in the form that `potentials` takes, in `memory` of this form."""
        if self.scale is not None:
            weights = weights / self.scale
        out: Expanded = []
        for k, (own, of_rows, intercepts) in enumerate(self.split(weights)):
            kept = memory and memory[k][0]
            rows = None if own.rows is None else own.rows.expand(of_rows, kept, run)
            out.append((rows, own.table(intercepts)))
        return out

    def expanded(self, weights: Floats) -> Expanded:
        """The result of `expand` for constant weights, cached."""
        if self._latest is None or self._latest[0] is not weights:
            self._latest = (weights, self.expand(weights))
        return self._latest[1]

    def potentials(self, shard: Shard, w: Expanded, memory: Floats | None = None) -> Potentials:
        """Scores of a shard's labels and cliques; those of labels in `memory` if it is given."""
        n = shard.frame.structure.n_states
        unary = np.empty(n) if memory is None else memory[:n]
        fixed = isinstance(shard.frame.structure, Matching)
        tables = shard.frame.tables if fixed else np.empty(len(shard.frame.tables))
        # Tables, or None for labels: the first template sets, the others add.
        written: set[tuple[int, int] | None] = set()
        for k, own in enumerate(self.templates):
            if own.rows is None and w[k][1] is None:
                continue
            block, variables = shard.blocks[k], shard.variables[k]
            states = self._states(k, shard)
            if states is not None:  # which the other variables' labels are not
                if None not in written:
                    unary[:] = 0.0
                scores = np.zeros(states.size)
                if len(states):
                    own.score(shard.rows[k], w[k], scores, None, False)
                np.add.at(unary, states, scores.reshape(states.shape))
                written.add(None)
                continue
            place = (block.start, block.stop) if own.order > 1 else None
            out = tables[block] if own.order > 1 else unary
            if variables is not None and place not in written:
                out[:] = 0.0
            own.score(shard.rows[k], w[k], out, variables, place in written)
            written.add(place)
        if None not in written:
            unary[:] = 0.0
        return shard.frame.like(unary, tables)

    def _states(self, k: int, shard: Shard) -> Ints | None:
        """Where the labels of a template's variables are, [n, n_cells], if variables have types."""
        own, variables = self.templates[k], shard.variables[k]
        if isinstance(self.counts, int) or own.order > 1 or variables is None:
            return None
        first = shard.frame.structure.state_offsets[variables]
        return first[:, None] + np.arange(own.tables.n_cells)

    def zeros(self, memory: Sums | None = None, run: Runner = run_in_turn) -> Sums:
        """An empty gradient, in `memory` of this form."""
        out: Sums = []
        for k, own in enumerate(self.templates):
            rows = None if own.rows is None else own.rows.zeros(memory and memory[k][0], run)
            out.append((rows, np.zeros(own.tables.n_outputs)))
        return out

    def n_blocks(self, n_jobs: int) -> int:
        """Tasks of the adjoint: those of the rows, and one for all intercepts."""
        return 1 + sum(own.n_blocks(n_jobs) for own in self.templates)

    def adjoint(self, shard: Shard, parts: Potentials, sums: Sums, block: int, n_jobs: int) -> None:
        """Add one block of the gradient."""
        for k, own in enumerate(self.templates):
            if block == 0 and len(own.kept):
                total = np.zeros(own.tables.n_cells)
                own_parts = self._parts_of(k, shard, parts).ravel()
                _kernels.intercept_adjoint(parts=own_parts, out=total)
                sums[k][1][:] += own.tables.gathered(total[None])[0]
            elif block > 0:
                n = own.n_blocks(n_jobs)
                if block <= n:
                    mine = self._parts_of(k, shard, parts)
                    own.adjoint(shard.rows[k], mine, sums[k][0], block - 1, n_jobs)
                    return
                block -= n

    def _parts_of(self, k: int, shard: Shard, parts: Potentials) -> Floats:
        """The parts of a template's cliques [n, n_cells]; of tied ones, their sum."""
        own = self.templates[k]
        if own.order > 1:
            return parts.tables[shard.blocks[k]].reshape(-1, own.tables.n_cells)
        return self.rows_of(k, shard, parts.unary)

    def rows_of(self, k: int, shard: Shard, unary: Floats) -> Floats:
        """The scores of labels of a template's variables [n, n_cells]."""
        states = self._states(k, shard)
        if states is not None:
            return unary[states]
        rows = unary.reshape(-1, self.templates[k].tables.n_cells)
        variables = shard.variables[k]
        return rows if variables is None else rows[variables]

    def collect(self, sums: Sums, out: Floats | None = None, run: Runner = run_in_turn) -> Floats:
        """The finished gradient, in `out` if that is given."""
        out = np.empty(self.n_weights) if out is None else out
        for (own, of_rows, intercepts), (rows, outputs) in zip(self.split(out), sums, strict=True):
            if own.rows is not None:
                own.rows.collect(rows, of_rows, run)
            intercepts[:] = outputs if own.every_output else outputs[own.kept]
        if self.scale is not None:
            out /= self.scale
        return out


def transferred(old: Layout, weights: Floats, new: Layout) -> Floats:
    """The weights of a new layout, copied from an old one with the same label numbers."""
    out = np.zeros(new.n_weights)
    known = {part[0].name: part for part in old.split(weights)}
    for after, of_rows, intercepts in new.split(out):
        if after.name not in known:
            continue
        before, old_of_rows, old_intercepts = known[after.name]
        keys, n_outputs = before.keys_in(after.tables), after.tables.n_outputs
        if keys is not None and after.rows is not None:
            here = after.rows.keys()
            _, from_old, to_new = np.intersect1d(
                keys.column * n_outputs + keys.output,
                here.column * n_outputs + here.output,
                assume_unique=True,
                return_indices=True,
            )
            of_rows[to_new] = old_of_rows[from_old]
        outputs = np.zeros(n_outputs)
        outputs[before.tables.renumbered(before.kept, after.tables)] = old_intercepts
        intercepts[:] = outputs[after.kept]
    return out
