"""What the page needs to explain predictions: attributes of positions, and their weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal.estimators import ChainCRF, GridCRF
from chordal.explore._links import Links
from chordal.features import Batch, Occurrences, WeightKeys
from chordal.structures import offsets_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LISTED = 200  # attributes per label that can be looked up though they do not occur in the data


@dataclass(frozen=True)
class Attributes:
    """Observations of positions (or of steps between them), and the weights of those that occur.

    names : of the attributes; `rows.ids` are places in it
    starts, outputs, weights : of attribute k, weights[starts[k]:starts[k + 1]] by output. An output
        is the place of a label in the classes, or from · n_classes + to
    shared : whether there is one row for each example, which all its variables see
    """

    names: list[str]
    starts: Ints
    outputs: Ints
    weights: Floats
    rows: Occurrences
    shared: bool = False


@dataclass(frozen=True)
class Weights:
    """What scores are made of.

    node, edge : attributes of positions and of steps; None if there are none
    scores : of every variable by its labels, one after another: where a model's scores are not a
        sum over attributes, or where that sum is known besides
    links : what cliques add to the scores of their variables; None for chains and grids
    tables : weights without observation by name: "transitions" [n, n], "intercept", "start", "end";
        of grids "edges" and its like
    axes : names of the rows and columns of tables that are not those of all labels
    meanings : what attributes of a template are about, by the beginning of their names
    """

    node: Attributes | None = None
    edge: Attributes | None = None
    scores: Floats | None = None
    links: Links | None = None
    tables: dict[str, Floats] = field(default_factory=dict)
    axes: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)
    meanings: dict[str, str] = field(default_factory=dict)


def weights_of_chain(model: Any, crf: ChainCRF, X: Any) -> Weights:
    """Attributes and weights of a chain; of a model that holds one, its scores."""
    tables = {"transitions": crf.transitions_}
    if crf is not model:  # what it observes is its own affair; the scores say what came of it
        found = [np.asarray(scores) for scores in model.node_scores(X)]
        scores = np.concatenate([np.zeros((0, len(crf.classes_))), *found])
        return Weights(scores=scores.ravel(), tables=tables)
    for name, table in (("intercept", crf.intercept_), ("start", crf.start_), ("end", crf.end_)):
        if table.any():
            tables[name] = table
    batch = crf.reader_.read(X, grow=False)
    nodes = [own for name in ("node", "vectors") if (own := _attributes(crf, batch, name, 1))]
    node = joined(nodes)
    return Weights(
        node, _attributes(crf, batch, "edge", 2), tables=tables, meanings=_meanings(crf, node)
    )


def _meanings(crf: ChainCRF, node: Attributes | None) -> dict[str, str]:
    template = crf.columns_template()
    if template is None or node is None:
        return {}
    beginnings = {name[: name.find(":") + 1] for name in node.names}
    return {own: template.explain(own) for own in sorted(beginnings) if own}


def weights_of_grid(model: Any, crf: GridCRF, X: Any) -> Weights:
    """Attributes and weights of pixels; of a model that holds a grid, weights of neighbours."""
    if crf is not model:
        return Weights(tables=_tables(crf))
    batch = crf.reader_.read([np.asarray(x) for x in X], grow=False)
    return Weights(node=_attributes(crf, batch, "pixels", 1), tables=_tables(crf))


def _tables(crf: GridCRF) -> dict[str, Floats]:
    """Intercepts of labels, and of pairs of neighbours by the names of their templates."""
    found = {
        own.name: crf.template_weights(own.name).get("intercept") for own in crf.reader_.templates
    }
    tables = {"intercept" if name == "pixels" else name: w for name, w in found.items()}
    return {name: np.asarray(w) for name, w in tables.items() if w is not None}


def _attributes(crf: Any, batch: Batch, name: str, order: int) -> Attributes | None:
    """The observations of a template; columns of numbers are attributes with values."""
    names = [template.name for template in crf.reader_.templates]
    rows, own = batch.cliques[names.index(name)].rows, crf.layout_[name]
    source = crf.reader_.input(name)
    if rows is None or own.rows is None or source is None:
        return None
    number = np.argsort(crf.labels_.order)  # the class of every label number
    keys, weights = own.rows.keys(), crf.weights_[crf.layout_.slices[name]][: own.n_row_weights]
    n = len(number)
    first, second = np.divmod(keys.output, n)
    outputs = number[second] if order == 1 else number[first] * n + number[second]
    return renumbered(
        source.name,
        source.n_columns,
        occurrences_of(rows.data),
        WeightKeys(keys.column, outputs),
        weights,
    )


def occurrences_of(data: Any) -> Occurrences:
    """Rows of attributes as they are; of arrays, the columns that are not zero."""
    if isinstance(data, Occurrences):
        return data
    row, column = np.nonzero(data)
    counts = np.bincount(row, minlength=len(data))
    return Occurrences(offsets_of(counts), column.astype(np.int32), data[row, column])


def renumbered(
    name: Callable[[int], str], n: int, rows: Occurrences, keys: WeightKeys, weights: Floats
) -> Attributes:
    """All attributes of n that occur, and the largest weights of each label beside them."""
    weighted = np.bincount(keys.column, minlength=n) > 0
    used = np.zeros(n, dtype=bool)
    used[rows.ids[rows.ids >= 0]] = True
    largest = np.argsort(-np.abs(weights), kind="stable")
    for output in np.unique(keys.output):
        used[keys.column[largest[keys.output[largest] == output][:LISTED]]] = True
    columns = np.flatnonzero(used & weighted)
    places = np.full(n, -1, dtype=np.int64)
    places[columns] = np.arange(len(columns))
    kept = np.flatnonzero((places[keys.column] >= 0) & (weights != 0.0))
    kept = kept[np.lexsort((keys.output[kept], places[keys.column[kept]]))]
    starts = offsets_of(np.bincount(places[keys.column[kept]], minlength=len(columns)))
    return Attributes(
        [name(int(k)) for k in columns],
        starts,
        keys.output[kept],
        weights[kept],
        rows.renumbered(places),
    )


def joined(parts: list[Attributes]) -> Attributes | None:
    """Attributes of the same positions as one."""
    if len(parts) < 2:
        return parts[0] if parts else None
    a, b = parts[0], joined(parts[1:])
    assert b is not None
    rows = _side_by_side(a.rows, b.rows, len(a.names))
    return Attributes(
        a.names + b.names,
        np.concatenate([a.starts, a.starts[-1] + b.starts[1:]]),
        np.concatenate([a.outputs, b.outputs]),
        np.concatenate([a.weights, b.weights]),
        rows,
    )


def _side_by_side(a: Occurrences, b: Occurrences, shift: int) -> Occurrences:
    """The attributes of both in each row; those of b have numbers from `shift` on."""
    row = np.concatenate(
        [np.repeat(np.arange(len(o.offsets) - 1), np.diff(o.offsets)) for o in (a, b)]
    )
    order = np.argsort(row, kind="stable")
    values: NDArray[Any] = np.concatenate(
        [np.ones(len(o.ids)) if o.values is None else o.values for o in (a, b)]
    )
    ids = np.concatenate([a.ids, b.ids + shift])[order]
    return Occurrences(a.offsets + b.offsets, ids.astype(np.int32), values[order])
