"""A fitted chain from weights that are already known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.estimators.chain_crf import CHAIN, GROUPS, ChainCRF
from chordal.features import (
    AttributeFeatures,
    Batch,
    Cliques,
    Input,
    Layout,
    Occurrences,
    RowFeatures,
    Rows,
    TableLayout,
    TemplateLayout,
)
from chordal.features.clique_template import PATTERNS
from chordal.inference import INFERENCE
from chordal.labels import SequenceLabels
from chordal.potentials import Floats
from chordal.structures import offsets_of

Ints = NDArray[np.int64]


def fitted_chain(
    model: ChainCRF,
    labels: SequenceLabels,
    inputs: Mapping[str, Input],
    rows: Mapping[str, tuple[RowFeatures, Floats]],
    intercepts: Mapping[str, tuple[Ints, Floats]],
) -> ChainCRF:
    """The model with these parts, by template: rows with their weights, and kept outputs with
    theirs; what is not named has no weights.
    """
    model._check_parameters()
    layout = chain_layout(
        len(labels),
        {name: features for name, (features, _) in rows.items()},
        {name: kept for name, (kept, _) in intercepts.items()},
    )
    weights = [part[name][1] for name in GROUPS for part in (rows, intercepts) if name in part]
    reader = model._new_reader([], keep=True)
    reader.inputs = [inputs.get(name) for name in GROUPS]
    model.reader_, model.labels_, model.classes_ = reader, labels, labels.classes
    model.layout_, model.weights_ = layout, np.concatenate(weights)
    chosen = "chain" if model.inference == "auto" else model.inference
    model.inference_ = INFERENCE.resolve(chosen)
    model.objective_, model.n_iter_ = float("nan"), 0  # what was minimised is not known
    return model


def pair_features(
    attribute: Ints, output: Ints, counts: Ints, n_outputs: int
) -> tuple[AttributeFeatures, Ints]:
    """The layout of these attribute–output pairs, all different, and the order in which it takes
    their weights. `counts` says how often each attribute occurs.
    """
    keys = attribute * np.int64(n_outputs) + output
    order = np.arange(len(keys))
    if not (np.diff(keys) > 0).all():
        order = np.argsort(keys, kind="stable")
    sizes = np.bincount(attribute, minlength=len(counts))
    outputs = output[order].astype(np.int32)
    features = AttributeFeatures(len(counts), n_outputs, offsets_of(sizes), outputs, counts)
    laid = features.keys()
    place = np.searchsorted(keys[order], laid.column * np.int64(n_outputs) + laid.output)
    return features, order[place]


def chain_layout(
    n_labels: int, rows: Mapping[str, RowFeatures | None], kept: Mapping[str, Ints]
) -> Layout:
    """The layout of a chain: rows, and outputs with an intercept, by template."""
    none = np.zeros(0, dtype=np.int64)
    return Layout(
        n_labels,
        [
            TemplateLayout(
                name,
                TableLayout(n_labels, PATTERNS[cliques], "full"),
                rows.get(name),
                kept.get(name, none),
            )
            for name, cliques in CHAIN.items()
        ],
    )


def chain_batch(node: Rows, edge: Rows | None = None) -> Batch:
    """A batch of chains with these rows of positions, and perhaps of transitions."""
    rows, sizes = {"node": node, "edge": edge}, node.lengths
    return Batch(
        sizes,
        [
            Cliques.of_pattern(cliques, PATTERNS[cliques], sizes, rows.get(name))
            for name, cliques in CHAIN.items()
        ],
    )


def chain_crf(
    labels: SequenceLabels,
    source: Input,
    coef: Floats,
    intercept: Floats | None = None,
    transitions: Floats | None = None,
    start: Floats | None = None,
    end: Floats | None = None,
    **parameters: Any,
) -> ChainCRF:
    """A fitted `ChainCRF` with these weights, all in the order of the classes.

    Parameters
    ----------
    labels : SequenceLabels
    source : DenseInput or SparseInput
    coef : array [n_classes, n_columns]
    intercept, start, end : arrays [n_classes], optional
    transitions : array [n_classes, n_classes], optional
        From row to column; without them labels are not linked.
    **parameters
        Of `ChainCRF`; those that say which weights there are follow from the weights.
    """
    n, order = len(labels), np.argsort(labels.order)  # the class of every label number
    fixed: dict[str, Any] = {
        "pairs": "all",
        "transitions": "none" if transitions is None else "all",
        "fit_intercept": intercept is not None,
        "ends": start is not None or end is not None,
    }
    given = sorted(parameters.keys() & fixed.keys())
    if given:
        raise UnsupportedError(f"{given[0]} follows from the weights and cannot be set")
    model = ChainCRF(**fixed, **{"warm_start": True, **parameters})
    empty = Occurrences(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), None)
    no_rows = Rows(np.zeros(0, dtype=np.int64), empty)
    node = source.features(no_rows, np.zeros(0, dtype=np.int32), n, "all")
    keys, every = node.keys(), np.arange(n)
    kept: dict[str, tuple[Ints, Floats]] = {}
    if transitions is not None:
        kept["transitions"] = (np.arange(n * n), transitions[np.ix_(order, order)].ravel())
    if intercept is not None:
        kept["intercept"] = (every, intercept[order])
    if fixed["ends"]:
        for name, weights in (("start", start), ("end", end)):
            kept[name] = (every, np.zeros(n) if weights is None else weights[order])
    rows = {"node": (node, coef[order][keys.output, keys.column])}
    return fitted_chain(model, labels.copy(), {"node": source}, rows, kept)
