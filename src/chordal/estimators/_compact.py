"""Smaller models: without weights that say little, in shorter numbers."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_choice, check_number
from chordal.estimators._monitor import CompactReport
from chordal.features import AttributeFeatures, Input, Layout, TemplateLayout, VocabularyInput

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

E = TypeVar("E", bound="BaseCRF")
Ints = NDArray[np.int64]


def compacted(
    model: E, threshold: float, dtype: str, X: Iterable[Any] | None, y: Iterable[Any] | None
) -> E:
    """A smaller copy of a fitted model; see `BaseCRF.compact`."""
    check_number("threshold", threshold)
    check_choice("dtype", dtype, ["float64", "float32", "float16"])
    if X is None and y is not None:
        raise ValueError("y needs X: give the examples whose labels y holds")
    old = model.layout_
    inputs, templates, chosen = [], [], []
    for template, source in zip(old.templates, model.reader_.inputs, strict=True):
        where = old.slices[template.name]
        keep = np.abs(model.weights_[where]) > threshold
        smaller, reduced, own = _reduced(source, template, keep)
        inputs.append(smaller)
        templates.append(reduced)
        chosen.append(where.start + own)
    new, kept = Layout(old.counts, templates), np.concatenate(chosen)
    exact = model.weights_[kept]
    with np.errstate(over="ignore"):
        rounded = exact.astype(dtype).astype(np.float64)
    if not np.isfinite(rounded).all():
        raise ValueError(f"some weights are too large for {dtype}; take a longer dtype")
    small = copy.copy(model)
    small.reader_ = copy.copy(model.reader_)
    small.reader_.inputs = inputs
    small.layout_, small.weights_ = new, rounded
    dropped = np.abs(np.delete(model.weights_, kept))
    small.compact_report_ = CompactReport(
        old.n_weights,
        new.n_weights,
        float(dropped.max(initial=0.0)),
        float(np.abs(exact - rounded).max(initial=0.0)),
        *_effect(model, small, X, y),
    )
    return small


def _reduced(
    source: Input | None, template: TemplateLayout, keep: NDArray[np.bool_]
) -> tuple[Input | None, TemplateLayout, Ints]:
    """Input and layout with the kept weights only, and which weights these are, in order."""
    n, rows = template.n_row_weights, template.rows
    own = np.arange(n)
    if isinstance(source, VocabularyInput) and isinstance(rows, AttributeFeatures):
        source, rows, own = _fewer_attributes(source, rows, np.flatnonzero(keep[:n]))
    # Intercepts of single variables are few: they stay.
    outputs = np.flatnonzero(keep[n:] | (template.order == 1))
    reduced = TemplateLayout(template.name, template.tables, rows, template.kept[outputs])
    return source, reduced, np.concatenate([own, n + outputs])


def _fewer_attributes(
    source: VocabularyInput, rows: AttributeFeatures, kept: Ints
) -> tuple[VocabularyInput, AttributeFeatures, Ints]:
    """The attributes that still have weights."""
    keys, n = rows.keys(), rows.n_outputs
    attributes, column = np.unique(keys.column[kept], return_inverse=True)
    counts = rows.arrays()["counts"][attributes]
    features, order = pair_features(column, keys.output[kept], counts, n)
    return source.with_attributes(attributes), features, kept[order]


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
    features = AttributeFeatures.of_pairs(keys[order], n_outputs, counts)
    laid = features.keys()
    place = np.searchsorted(keys[order], laid.column * np.int64(n_outputs) + laid.output)
    return features, order[place]


def _effect(
    before: BaseCRF, after: BaseCRF, X: Iterable[Any] | None, y: Iterable[Any] | None
) -> tuple[float | None, float | None, float | None]:
    if X is None:
        return None, None, None
    X = X if hasattr(X, "__len__") else list(X)
    old, new = before.predict_codes(X), after.predict_codes(X)
    changed = float((old != new).mean()) if len(old) else 0.0
    if y is None:
        return changed, None, None
    y = y if hasattr(y, "__len__") else list(y)
    return changed, before.score(X, y), after.score(X, y)
