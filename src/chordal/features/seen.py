"""Counts of what occurs in labelled batches, and the layout of weights that follows from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from chordal.features._base import SeenList, SeenRows, added
from chordal.features.batch import Batch, Cliques, Ints, LabelCounts, Rows, ranges
from chordal.features.clique_template import CliqueTemplate, TableLayout
from chordal.features.layout import Layout
from chordal.features.reader import Reader
from chordal.features.template_layout import TemplateLayout
from chordal.structures import offsets_of
from chordal.targets import SoftLabels, Target


@dataclass(frozen=True)
class SeenTemplate:
    """Counts of what was seen for one template.

    rows : SeenRows or None, of its observations
    outputs, times : int64, outputs in rising order, and how often each was seen
    """

    rows: SeenRows | SeenList | None
    outputs: Ints
    times: Ints

    def listed(self) -> SeenTemplate:
        """The same in a form that can be merged."""
        return replace(self, rows=self.rows.listed()) if isinstance(self.rows, SeenRows) else self

    def whole(self) -> SeenTemplate:
        """The same in the form that features are made of."""
        return replace(self, rows=self.rows.rows()) if isinstance(self.rows, SeenList) else self

    def merged(self, other: SeenTemplate) -> SeenTemplate:
        """The sum of both counts."""
        rows = self.rows if other.rows is None else other.rows
        if isinstance(self.rows, SeenList) and isinstance(other.rows, SeenList):
            rows = self.rows.merged(other.rows)
        return SeenTemplate(rows, *added(self.outputs, self.times, other.outputs, other.times))


#: What was seen in a batch, template by template.
Seen = list[SeenTemplate]


def layout_of(
    reader: Reader,
    batch: Batch,
    gold: Target,
    n_labels: LabelCounts,
    pairs: str = "seen",
    min_freq: int = 0,
    known: Layout | None = None,
) -> Layout:
    """The layout of a reader's templates for training on a batch.

    For named attributes, `pairs` chooses the outputs with weights: those "seen" at least `min_freq`
    times, or "all". Weights of a `known` layout are kept.
    """
    seen = seen_in(reader, batch, gold, n_labels, pairs)
    return layout_from(reader, seen, n_labels, pairs, min_freq, known)


def seen_in(
    reader: Reader, batch: Batch, gold: Target, n_labels: LabelCounts, pairs: str = "seen"
) -> Seen:
    """The counts of a batch for every template: the data-dependent part of `layout_of`.

    Batches of one reader, or with merged numbering (`merged_readers`), can be counted one by one;
    `layout_from` takes the result of `merged`.
    """
    labels, out = _seen_labels(gold), []
    for k, template in enumerate(reader.templates):
        tables = _tables(reader, template, n_labels)
        source, cliques = reader.inputs[k], batch.cliques[k]
        at = outputs = none = np.zeros(0, dtype=np.int64)
        if (source is not None or template.fit_intercept == "seen") and not template.labelwise:
            at, outputs = _seen_outputs(cliques, tables, gold, labels, batch.sizes)
        rows, observed = None, cliques.rows
        if source is not None and observed is not None:
            # All rows of an array, whose columns have weights in any case.
            every = isinstance(observed.data, np.ndarray)
            if not every and not np.array_equal(at, np.arange(observed.n_rows)):
                observed = Rows(np.array([len(at)]), observed.data[at])
            rows = source.seen(observed, outputs.astype(np.int32), tables.n_outputs, pairs)
        found = (none, none)
        if template.fit_intercept == "seen":
            found = np.unique(outputs, return_counts=True)
        out.append(SeenTemplate(rows, *found))
    return out


def merged(parts: Iterable[Seen]) -> Seen:
    """The sum of all counts; parts are taken one after another, and few are kept.

    Each part is merged with others of similar size, so that a pair moves only log(parts) times.
    """
    rest = iter(parts)
    first, second = next(rest, None), next(rest, None)
    if first is None:
        raise ValueError("there is nothing to merge: give at least one batch")
    if second is None:
        return first
    kept: list[tuple[int, Seen]] = []  # how many parts each stands for, falling
    for part in chain([first, second], rest):
        kept.append((1, [own.listed() for own in part]))
        del part
        while len(kept) > 1 and kept[-2][0] <= kept[-1][0]:
            kept.append(_two(*kept.pop(-2), *kept.pop()))
    while len(kept) > 1:
        kept.append(_two(*kept.pop(-2), *kept.pop()))
    return [own.whole() for own in kept[0][1]]


def _two(n: int, first: Seen, m: int, second: Seen) -> tuple[int, Seen]:
    return n + m, [a.merged(b) for a, b in zip(first, second, strict=True)]


def layout_from(
    reader: Reader,
    seen: Seen,
    n_labels: LabelCounts,
    pairs: str = "seen",
    min_freq: int = 0,
    known: Layout | None = None,
) -> Layout:
    """The layout for what was seen; see `layout_of`."""
    templates = []
    for template, source, own in zip(reader.templates, reader.inputs, seen, strict=True):
        tables = _tables(reader, template, n_labels)
        old = known[template.name] if known and template.name in known.slices else None
        rows = None
        if source is not None and isinstance(own.rows, SeenRows):
            keys = None if old is None else old.keys_in(tables)
            rows = source.features_of(own.rows, tables.n_outputs, pairs, min_freq, keys)
        kept = np.arange(tables.n_outputs if template.fit_intercept else 0)
        if template.fit_intercept == "seen":
            kept = own.outputs[own.times >= min_freq]
            if old is not None:
                kept = np.union1d(kept, old.tables.renumbered(old.kept, tables))
        templates.append(TemplateLayout(template.name, tables, rows, kept))
    return Layout(n_labels, templates)


def _tables(reader: Reader, template: CliqueTemplate, n_labels: LabelCounts) -> TableLayout:
    return TableLayout(reader.shape(template, n_labels), template.tables)


def _seen_labels(target: Target) -> tuple[Ints, Ints]:
    """The variables and labels that go together, in order; variables about which nothing is known
    have none. With one label per variable, every variable has one pair.
    """
    if isinstance(target, np.ndarray):
        return np.arange(len(target)), target.astype(np.int64)
    counts = np.diff(target.state_offsets)
    variable = np.repeat(np.arange(len(target)), counts)
    if isinstance(target, SoftLabels):
        possible = target.probability != 0.0
    else:
        left = np.bincount(variable, target.allowed, minlength=len(target))
        possible = target.allowed & ((left < counts) | (counts == 1))[variable]
    states = np.flatnonzero(possible)
    return variable[states], states - target.state_offsets[variable[states]]


def _seen_outputs(
    cliques: Cliques, tables: TableLayout, gold: Target, seen: tuple[Ints, Ints], sizes: Ints
) -> tuple[Ints, Ints]:
    """Which cliques go with which outputs: every possible label of a variable with every possible
    one of the others.
    """
    variables, labels = seen
    if cliques.pattern == "each":
        clique, cell = variables, labels
    elif isinstance(gold, np.ndarray):
        scopes = cliques.listed(sizes)
        clique = np.arange(len(scopes))
        cell = np.ravel_multi_index(tuple(labels[scopes].T), tables.shape)
    else:
        scopes, count = cliques.listed(sizes), np.bincount(variables, minlength=len(gold))
        first, clique = offsets_of(count), np.arange(len(scopes))
        cell = np.zeros_like(clique)
        for axis, n in enumerate(tables.shape):
            variable = scopes[clique, axis]
            choices = count[variable]
            cell = np.repeat(cell, choices) * n + labels[ranges(first[variable], choices)]
            clique = np.repeat(clique, choices)
    if tables.is_full:
        return clique, cell
    outputs = tables.output_of_cell[cell]
    return clique[outputs >= 0], outputs[outputs >= 0]
