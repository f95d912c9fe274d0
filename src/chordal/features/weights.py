"""Which weights a model has, and how they go over into a larger one."""

from __future__ import annotations

import numpy as np

from chordal.features._base import Floats, Ints, RowFeatures, Rows, WeightKeys
from chordal.features.batch import Batch, Cliques
from chordal.features.clique_template import CliqueTemplate, TableLayout
from chordal.features.layout import Layout, TemplateLayout
from chordal.features.reader import Reader
from chordal.structures import offsets_of
from chordal.targets import PartialLabels, SoftLabels, Target


def layout_of(
    reader: Reader,
    batch: Batch,
    gold: Target,
    n_labels: int,
    pairs: str = "seen",
    min_freq: int = 0,
    known: Layout | None = None,
) -> Layout:
    """The layout of a reader's templates for training on a batch.

    Of named attributes, `pairs` says which outputs have weights: those that were "seen" with them
    at least `min_freq` times, or "all". What a `known` layout has stays.
    """
    seen = seen_pairs(gold, n_labels)
    templates = []
    for k, template in enumerate(reader.templates):
        tables = TableLayout(1 if template.labelwise else n_labels, template.size, template.tables)
        old = known[template.name] if known and template.name in known.slices else None
        source, cliques = reader.inputs[k], batch.cliques[k]
        wants = source is not None or template.fit_intercept == "seen"
        at, outputs = _none, _none
        if wants and not template.labelwise:
            at, outputs = _seen(cliques, tables, gold, seen, batch.sizes)
        rows: RowFeatures | None = None
        if source is not None and cliques.rows is not None:
            keys = None if old is None else _renumbered(old, tables)
            taken = _taken(cliques.rows, at)
            rows = source.features(
                taken, outputs.astype(np.int32), tables.n_outputs, pairs, min_freq, keys
            )
        kept = _kept(template, tables, outputs, min_freq, old)
        templates.append(TemplateLayout(template.name, tables, rows, kept))
    return Layout(n_labels, templates)


_none: Ints = np.zeros(0, dtype=np.int64)


def _taken(rows: Rows, at: Ints) -> Rows:
    """These rows; all of an array, whose columns have weights in any case."""
    if isinstance(rows.data, np.ndarray) or np.array_equal(at, np.arange(rows.n_rows)):
        return rows
    return rows.taken(at)


def _kept(
    template: CliqueTemplate,
    tables: TableLayout,
    outputs: Ints,
    min_freq: int,
    old: TemplateLayout | None,
) -> Ints:
    """The outputs that have an intercept."""
    if not template.fit_intercept:
        return _none
    if template.fit_intercept is True:
        return np.arange(tables.n_outputs)
    seen, count = np.unique(outputs, return_counts=True)
    kept = seen[count >= min_freq]
    return kept if old is None else np.union1d(kept, old.tables.renumbered(old.kept, tables))


def _renumbered(old: TemplateLayout, tables: TableLayout) -> WeightKeys | None:
    if old.rows is None:
        return None
    keys = old.rows.keys()
    return WeightKeys(keys.column, old.tables.renumbered(keys.output, tables))


def seen_pairs(target: Target, n: int) -> tuple[Ints, Ints]:
    """The variables and labels that go together, in order; variables about which nothing is known
    have none. With one label per variable, every variable has one pair.
    """
    if isinstance(target, SoftLabels):
        variables, labels = np.nonzero(target.probability.reshape(-1, n))
        return variables, labels
    if isinstance(target, PartialLabels):
        allowed = target.allowed.reshape(-1, n)
        observed = np.asarray((~allowed).any(axis=1, keepdims=True) | (n == 1))
        variables, labels = np.nonzero(allowed & observed)
        return variables, labels
    return np.arange(len(target)), target.astype(np.int64)


def _seen(
    cliques: Cliques, tables: TableLayout, gold: Target, seen: tuple[Ints, Ints], sizes: Ints
) -> tuple[Ints, Ints]:
    """Which cliques go with which outputs: every possible label of a variable with every possible
    one of the others.
    """
    n, (variables, labels) = tables.n_labels, seen
    if cliques.pattern == "each":
        clique, cell = variables, labels
    else:
        scopes = cliques.listed(sizes)
        if isinstance(gold, np.ndarray):
            clique = np.arange(len(scopes))
            cell = np.ravel_multi_index(tuple(labels[scopes].T), (n,) * tables.order)
        else:
            count = np.bincount(variables, minlength=len(gold))
            clique, cell = _combined(scopes, offsets_of(count)[:-1], count, labels, n)
    if tables.is_full:
        return clique, cell
    outputs = tables.output_of_cell[cell]
    return clique[outputs >= 0], outputs[outputs >= 0]


def _combined(scopes: Ints, first: Ints, count: Ints, labels: Ints, n: int) -> tuple[Ints, Ints]:
    """All combinations of the labels of each clique's variables: cliques, and cells of tables."""
    clique, cell = np.arange(len(scopes)), np.zeros(len(scopes), dtype=np.int64)
    for axis in range(scopes.shape[1]):
        variable = scopes[clique, axis]
        choices = count[variable]
        repeat = np.repeat(np.arange(len(clique)), choices)
        within = np.arange(len(repeat)) - np.repeat(offsets_of(choices)[:-1], choices)
        cell = cell[repeat] * n + labels[first[variable][repeat] + within]
        clique = clique[repeat]
    return clique, cell


def transferred(old: Layout, weights: Floats, new: Layout) -> Floats:
    """Weights of a new layout, taken over from an old one whose labels keep their numbers."""
    out = np.zeros(new.n_weights)
    for after in new.templates:
        if after.name not in old.slices:
            continue
        before = old[after.name]
        own, target = weights[old.slices[before.name]], out[new.slices[after.name]]
        n, m = before.n_row_weights, after.n_row_weights
        keys = _renumbered(before, after.tables)
        if keys is not None and after.rows is not None:
            here, n_outputs = after.rows.keys(), after.tables.n_outputs
            _, from_old, to_new = np.intersect1d(
                keys.column * n_outputs + keys.output,
                here.column * n_outputs + here.output,
                assume_unique=True,
                return_indices=True,
            )
            target[:m][to_new] = own[:n][from_old]
        outputs = np.zeros(after.tables.n_outputs)
        outputs[before.tables.renumbered(before.kept, after.tables)] = own[n:]
        target[m:] = outputs[after.kept]
    return out
