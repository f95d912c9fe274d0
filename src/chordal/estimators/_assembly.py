"""A fitted model from weights that are already known: those of another tool, or of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal import _kernels
from chordal._errors import UnsupportedError
from chordal.estimators._labels import SequenceLabels
from chordal.estimators._state import MAX_WEIGHT
from chordal.estimators.chain_crf import CHAIN, GROUPS, ChainCRF
from chordal.features import (
    PATTERNS,
    AttributeFeatures,
    AttributeInput,
    Batch,
    Cliques,
    Input,
    Layout,
    Occurrences,
    RowFeatures,
    Rows,
    TableLayout,
    TemplateInput,
    TemplateLayout,
)
from chordal.inference import INFERENCE
from chordal.potentials import Floats
from chordal.structures import offsets_of

Ints = NDArray[np.int64]
Names = Sequence[str | bytes]

MAX_LABELS = 2**14  # a table of all label pairs then takes 2 GB


def assembled(
    classes: Sequence[str],
    attributes: Names,
    state: tuple[ArrayLike, ArrayLike, ArrayLike],
    transitions: tuple[ArrayLike, ArrayLike, ArrayLike],
    edge: tuple[Sequence[str | bytes], tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]]
    | None = None,
    start: ArrayLike | None = None,
    end: ArrayLike | None = None,
    **parameters: Any,
) -> ChainCRF:
    """A fitted `ChainCRF` with these weights.

    Parameters
    ----------
    classes : labels, all different
        They keep this order inside the model, which decides between labellings of equal score:
        the first label wins, as in the tool that the weights come from.
    attributes : names, all different
        As bytes where they are not UTF-8, as a template of Wapiti may cut them.
    state : (attribute ids, label ids, weights)
        One entry per attribute–label pair that has a weight.
    transitions : (from, to, weights)
        One entry per label pair that has a weight; the others score 0.
    edge : (names, (attribute ids, from, to, weights)), optional
        Attributes of transitions, which the parameter `feature_template` or
        `transition_features` reads.
    start, end : weights of every label at the first and the last position, optional
    **parameters
        Of `ChainCRF`; `ends` follows from `start` and `end`.

    Examples
    --------
    >>> crf = assembled(["N", "V"], ["w=run"], ([0], [1], [2.0]), ([0], [1], [0.5]))
    >>> crf.predict([[["w=the"], ["w=run"]]])
    [['N', 'V']]
    """
    model = ChainCRF(**parameters, ends=start is not None or end is not None)
    labels = _labels(classes)
    n = len(labels)
    rows = {"node": _rows("state", len(attributes), n, *state)}
    inputs = {"node": _input(model, attributes, "unigrams")}
    if edge is not None:
        names, (attribute, source, target, values) = edge
        inputs["edge"] = _input(model, names, "bigrams")
        pairs = _label_pairs("edge", source, target, n)
        rows["edge"] = _rows("edge", len(names), n * n, attribute, pairs, values)
    intercepts = {"transitions": _transitions(*transitions, n)}
    if model.ends:
        for name, weights in (("start", start), ("end", end)):
            intercepts[name] = (np.arange(n), _per_label(name, weights, n))
    return fitted_chain(model, labels, inputs, rows, intercepts)


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


def _labels(classes: Sequence[str]) -> SequenceLabels:
    if not 1 <= len(classes) <= MAX_LABELS:
        raise ValueError(f"a model must have 1 to {MAX_LABELS} labels, got {len(classes)}")
    labels = SequenceLabels()
    labels.learn([list(classes)])
    if len(labels) != len(classes):
        twice = next(label for i, label in enumerate(classes) if label in classes[:i])
        raise ValueError(f"labels must differ, got {twice!r} twice")
    return labels


def _input(model: ChainCRF, names: Names, part: str) -> Input:
    joined, lengths = _bytes_of(names)
    vocabulary = _kernels.Vocabulary.from_arrays(
        np.frombuffer(joined, dtype=np.uint8), offsets_of(lengths)
    )
    template = model.columns_template()
    if template is not None:
        return TemplateInput(template, part, vocabulary)
    return AttributeInput(vocabulary)


def _bytes_of(names: Names) -> tuple[bytes, list[int]]:
    """Names one after another in UTF-8, and the length of each."""
    try:  # most are of ASCII, and as long as their bytes
        return "".join(names).encode("ascii"), list(map(len, names))  # type: ignore[arg-type]
    except (TypeError, UnicodeEncodeError):
        encoded = [
            name if isinstance(name, bytes) else name.encode("utf-8", "surrogatepass")
            for name in names
        ]
        return b"".join(encoded), list(map(len, encoded))


def _rows(
    name: str, n_attributes: int, n_outputs: int, attribute: object, output: object, weights: object
) -> tuple[AttributeFeatures, Floats]:
    """The layout of attribute–output weights, and the weights in its order."""
    attribute, output = np.asarray(attribute, np.int64), np.asarray(output, np.int64)
    values = _weights(name, weights, len(attribute))
    _check_ids(f"{name} attributes", attribute, n_attributes, len(values))
    _check_ids(f"{name} labels", output, n_outputs, len(values))
    keys = attribute * n_outputs + output
    if (np.diff(keys) <= 0).any():
        order = np.argsort(keys, kind="stable")
        keys, values = keys[order], values[order]
        _check_distinct(name, keys)
    unknown = np.ones(n_attributes, dtype=np.int64)  # how often each attribute occurs
    features = AttributeFeatures.of_pairs(keys, n_outputs, unknown)
    laid = features.keys()
    return features, values[np.searchsorted(keys, laid.column * n_outputs + laid.output)]


def _transitions(source: object, target: object, weights: object, n: int) -> tuple[Ints, Floats]:
    pairs = _label_pairs("transitions", source, target, n)
    values = _weights("transitions", weights, len(pairs))
    order = np.argsort(pairs, kind="stable")
    _check_distinct("transitions", pairs[order])
    return pairs[order], values[order]


def _label_pairs(name: str, source: object, target: object, n: int) -> Ints:
    source, target = np.asarray(source, np.int64), np.asarray(target, np.int64)
    for ids in (source, target):
        _check_ids(f"{name} labels", ids, n, len(source))
    return source * n + target


def _per_label(name: str, weights: object, n: int) -> Floats:
    return np.zeros(n) if weights is None else _weights(name, weights, n)


def _weights(name: str, weights: object, n: int) -> Floats:
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (n,):
        raise ValueError(f"{name} must have {n} weights, got shape {values.shape}")
    bad = np.flatnonzero(~(np.abs(values) <= MAX_WEIGHT))
    if len(bad):
        raise ValueError(
            f"{name} weights must be numbers up to ±{MAX_WEIGHT:g}, "
            f"got {values[bad[0]]} at {bad[0]}"
        )
    return values


def _check_ids(name: str, ids: Ints, limit: int, n: int) -> None:
    if ids.shape != (n,):
        raise ValueError(f"{name} must be one per weight ({n}), got shape {ids.shape}")
    bad = np.flatnonzero((ids < 0) | (ids >= limit))
    if len(bad):
        raise ValueError(f"{name} must be 0 to {limit - 1}, got {ids[bad[0]]} at {bad[0]}")


def _check_distinct(name: str, ordered: Ints) -> None:
    twice = np.flatnonzero(np.diff(ordered) == 0)
    if len(twice):
        raise ValueError(f"{name} must hold each pair once, got {len(twice)} more than once")


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
