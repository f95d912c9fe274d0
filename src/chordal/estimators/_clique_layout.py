"""Which weights a model of cliques has, and how they go over into a larger one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chordal.estimators._targets import seen_pairs
from chordal.estimators.clique_template import CliqueTemplate
from chordal.features import (
    CliqueBatch,
    CliqueFeatures,
    CliqueLayout,
    Cliques,
    Input,
    RowFeatures,
    Rows,
    TableLayout,
    WeightKeys,
)
from chordal.potentials import Floats
from chordal.structures import offsets_of
from chordal.targets import PartialLabels, SoftLabels, Target

Ints = NDArray[np.int64]


def layout_of(
    templates: Sequence[CliqueTemplate],
    inputs: Sequence[Input | None],
    batch: CliqueBatch,
    gold: Target,
    n_labels: int,
    states: str,
    min_freq: int,
    known: CliqueFeatures | None,
) -> CliqueFeatures:
    """The features of these templates; of named attributes, those pairs that were seen."""
    layouts = []
    for k, (template, source, cliques) in enumerate(
        zip(templates, inputs, batch.cliques, strict=True)
    ):
        tables = TableLayout(n_labels, template.size, template.tables)
        rows: RowFeatures | None = None
        if source is not None and cliques.rows is not None:
            keys = None if known is None else _renumbered(known.layouts[k], tables)
            at, outputs = _seen(cliques, tables, gold, batch.sizes)
            rows = source.features(
                _taken(cliques.rows, at),
                outputs.astype(np.int32),
                tables.n_outputs,
                states,
                min_freq,
                keys,
            )
        layouts.append(CliqueLayout(template.name, tables, rows, template.bias))
    return CliqueFeatures(n_labels, layouts)


def _taken(rows: Rows, at: Ints) -> Rows:
    """These rows; all of an array, whose columns have weights in any case."""
    if isinstance(rows.data, np.ndarray) or np.array_equal(at, np.arange(rows.n_rows)):
        return rows
    return rows.taken(at)


def _renumbered(old: CliqueLayout, tables: TableLayout) -> WeightKeys | None:
    if old.rows is None:
        return None
    keys = old.rows.keys()
    return WeightKeys(keys.column, old.tables.renumbered(keys.output, tables))


def _seen(cliques: Cliques, tables: TableLayout, gold: Target, sizes: Ints) -> tuple[Ints, Ints]:
    """Which cliques go with which outputs. Where labels are not known for sure, cliques of one
    variable go with all that are possible, others only with labels that are known.
    """
    if cliques.whole and not isinstance(gold, np.ndarray):
        return seen_pairs(gold, tables.n_labels)
    labels = _known_labels(gold, tables.n_labels)
    first = np.repeat(offsets_of(sizes)[:-1], cliques.counts)
    of_clique = labels[cliques.scopes + first[:, None]]
    sure = (of_clique >= 0).all(axis=1)
    shape = (tables.n_labels,) * tables.order
    cells = np.ravel_multi_index(tuple(of_clique[sure].T), shape)
    outputs = tables.output_of_cell[cells]
    return np.flatnonzero(sure)[outputs >= 0], outputs[outputs >= 0]


def _known_labels(gold: Target, n: int) -> Ints:
    """The label of each variable, −1 where it is not known for sure."""
    if isinstance(gold, SoftLabels):
        share = gold.probability.reshape(-1, n)
        return np.where(share.max(axis=1) == 1.0, share.argmax(axis=1), -1)
    if isinstance(gold, PartialLabels):
        allowed = gold.allowed.reshape(-1, n)
        return np.where(allowed.sum(axis=1) == 1, allowed.argmax(axis=1), -1)
    return gold.astype(np.int64)


def transferred_cliques(old: CliqueFeatures, weights: Floats, new: CliqueFeatures) -> Floats:
    """Weights of a new layout, taken over from an old one whose labels keep their numbers."""
    out = np.zeros(new.n_weights)
    for before, after in zip(old.layouts, new.layouts, strict=True):
        own, target = weights[old.slices[before.name]], out[new.slices[after.name]]
        keys = _renumbered(before, after.tables)
        n = before.n_row_weights
        if keys is not None and after.rows is not None:
            here = after.rows.keys()
            n_outputs = after.tables.n_outputs
            _, from_old, to_new = np.intersect1d(
                keys.column * n_outputs + keys.output,
                here.column * n_outputs + here.output,
                assume_unique=True,
                return_indices=True,
            )
            target[: after.n_row_weights][to_new] = own[:n][from_old]
        if before.bias:
            outputs = before.tables.renumbered(np.arange(before.tables.n_outputs), after.tables)
            target[after.n_row_weights :][outputs] = own[n:]
    return out
