"""Attributes of the variables of any model: rows, nodes of graphs, cliques of one variable."""

from __future__ import annotations

from typing import Any

import numpy as np

from chordal.explore._labels import Ints, LabelSets
from chordal.explore._weights import Attributes, joined, occurrences_of, renumbered
from chordal.features import Batch, Occurrences, SharedInput, WeightKeys
from chordal.structures import offsets_of


def unary_attributes(crf: Any, batch: Batch, sets: LabelSets) -> Attributes | None:
    """The attributes of every variable of a batch, from all templates of single variables.

    Outputs are places in `sets`. Names tell the template if several have attributes.
    """
    found = []
    for k, own in enumerate(crf.reader_.templates):
        layout, source = crf.layout_[own.name], crf.reader_.inputs[k]
        observed = layout.rows is not None and source is not None and source.n_columns
        if layout.order == 1 and observed and not isinstance(source, SharedInput):
            found.append((k, own, source))
    several = len(found) > 1
    parts = [_of_template(crf, batch, sets, k, several) for k, _, _ in found]
    return joined(parts)


def _of_template(crf: Any, batch: Batch, sets: LabelSets, k: int, several: bool) -> Attributes:
    template, source = crf.reader_.templates[k], crf.reader_.inputs[k]
    layout, cliques = crf.layout_[template.name], batch.cliques[k]
    kind = sets.titles.index(template.types[0]) if crf.labels_.types else 0
    keys, weights = layout.rows.keys(), crf.weights_[crf.layout_.slices[template.name]]
    order = crf.labels_.order_of(kind) if crf.labels_.types else crf.labels_.order
    place = sets.first[kind] + np.argsort(order)  # of every label number
    outputs = place[layout.tables.cell_of_output[keys.output]]
    given = getattr(crf, "feature_names_in_", None) if k == 0 else None

    def name(column: int) -> str:
        own = str(source.name(column) if given is None else given[column])
        return f"{template.name}: {own}" if several else own

    assert cliques.rows is not None
    rows = occurrences_of(cliques.rows.data)
    at = cliques.listed(batch.sizes)[:, 0]
    return renumbered(
        name,
        source.n_columns,
        _by_variable(rows, at, int(batch.sizes.sum())),
        WeightKeys(keys.column, outputs),
        weights[: layout.n_row_weights],
    )


def _by_variable(rows: Occurrences, at: Ints, n: int) -> Occurrences:
    """One row for each of n variables: what all rows that are `at` it have, one after another."""
    order = np.argsort(at, kind="stable")
    if len(at) == n and np.array_equal(at[order], np.arange(n)):
        return rows if np.array_equal(order, np.arange(n)) else rows[order]
    moved, counts = rows[order], np.zeros(n, dtype=np.int64)
    np.add.at(counts, at, np.diff(rows.offsets))
    return Occurrences(offsets_of(counts), moved.ids, moved.values)
