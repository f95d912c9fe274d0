"""A fitted chain from the weights of another tool, whatever its file holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal import _kernels
from chordal.estimators import MAX_WEIGHT, ChainCRF, fitted_chain, pair_features
from chordal.features import AttributeFeatures, AttributeInput, Input, TemplateInput
from chordal.labels import SequenceLabels
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


def _labels(classes: Sequence[str]) -> SequenceLabels:
    if not 1 <= len(classes) <= MAX_LABELS:
        raise ValueError(f"a model must have 1 to {MAX_LABELS} labels, got {len(classes)}")
    labels = SequenceLabels.of([list(classes)])
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
    _check_distinct(name, attribute * n_outputs + output)
    counts = np.ones(n_attributes, dtype=np.int64)  # how often each occurs is not known
    features, order = pair_features(attribute, output, counts, n_outputs)
    return features, values[order]


def _transitions(source: object, target: object, weights: object, n: int) -> tuple[Ints, Floats]:
    pairs = _label_pairs("transitions", source, target, n)
    values = _weights("transitions", weights, len(pairs))
    _check_distinct("transitions", pairs)
    order = np.argsort(pairs, kind="stable")
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


def _check_distinct(name: str, keys: Ints) -> None:
    if (np.diff(keys) > 0).all():
        return
    twice = len(keys) - len(np.unique(keys))
    if twice:
        raise ValueError(f"{name} must hold each pair once, got {twice} more than once")
