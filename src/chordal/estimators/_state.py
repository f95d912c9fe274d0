"""Fitted models as facts (for JSON) and arrays; and smaller copies of models."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._validate import check_choice, check_number
from chordal.estimators._training.monitor import CompactReport, FitReport
from chordal.features import (
    AttributeFeatures,
    AttributeInput,
    Beside,
    CliqueTemplate,
    DenseFeatures,
    DenseInput,
    Input,
    Layout,
    Reader,
    RowFeatures,
    SharedFeatures,
    SharedInput,
    SparseInput,
    TableLayout,
    TemplateInput,
    TemplateLayout,
    VectorInput,
    VocabularyInput,
    check_described,
)
from chordal.potentials import Floats

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

E = TypeVar("E", bound="BaseCRF")
Facts = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
Ints = NDArray[np.int64]

#: Limit of weights from files: beyond it, scores lose the digits that probabilities need.
MAX_WEIGHT = 1e10

_INPUTS: dict[str, tuple[type[Input], type[RowFeatures]]] = {
    "attributes": (AttributeInput, AttributeFeatures),
    "template": (TemplateInput, AttributeFeatures),
    "sparse": (SparseInput, AttributeFeatures),
    "dense": (DenseInput, DenseFeatures),
    "shared": (SharedInput, SharedFeatures),
    "vectors": (VectorInput, DenseFeatures),
}


def to_state(model: BaseCRF) -> tuple[Facts, Arrays]:
    """Facts and arrays that restore the model; raises an error for what files cannot hold."""
    if not np.isfinite(model.weights_).all():
        raise UnsupportedError(
            "a model with weights of -inf (forbidden labels) cannot be saved; smooth zero "
            "probabilities (alpha above 0), or forbid by allowed_transitions when predicting"
        )
    arrays: Arrays = {"weights": model.weights_}
    described: list[Facts] = []
    parts = zip(model.reader_.templates, model.reader_.inputs, model.layout_.templates, strict=True)
    for template, source, own in parts:
        if isinstance(template.features, Beside) and source is None:
            continue  # no arrays were among the attributes
        rows: Facts | None = None
        found: Arrays = {"kept": own.kept.astype(np.int64, copy=False)}
        if source is not None and own.rows is not None:
            rows, known = input_facts(source)
            found |= {**known, **own.rows.arrays()}
        described.append({**template.description(), "rows": rows})
        arrays |= {f"{template.name}.{name}": array for name, array in found.items()}
    report = getattr(model, "fit_report_", None)  # a model that was made in another way has none
    facts: Facts = {
        "labels": model.labels_.to_facts(),
        "templates": described,
        "objective": float(model.objective_),
        "n_iter": int(model.n_iter_),
        "report": None if report is None else report.to_facts(),
        **model._own_facts(),
    }
    return facts, arrays


def set_state(model: BaseCRF, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Restore the fitted state of a model that has its parameters.

    If the facts do not fit together, it raises ValueError, LookupError or TypeError; otherwise the
    model works.
    """
    model._check_parameters()
    labels = model._labels_type().from_facts(facts["labels"])
    described = facts["templates"]
    reader = model._reader_from(facts)
    facts_of = {own["name"]: own for own in described}
    present = [
        template
        for template in reader.templates
        if template.name in facts_of or not isinstance(template.features, Beside)
    ]
    check_described(present, described)
    if labels.types != reader.types:
        raise ValueError(f"the types of labels must be {reader.types}, got {labels.types}")
    templates = []
    for k, template in enumerate(reader.templates):
        shape = reader.shape(template, labels.counts)
        tables = _tables(template, shape, arrays["weights"].size)
        if template not in present:
            templates.append(TemplateLayout(template.name, tables, None, np.zeros(0, np.int64)))
            continue
        mine = {
            key.removeprefix(f"{template.name}."): array
            for key, array in arrays.items()
            if key.startswith(f"{template.name}.")
        }
        reader.inputs[k], rows = _rows(facts_of[template.name]["rows"], mine, tables.n_outputs)
        kept = _kept(mine["kept"], tables.n_outputs, template.name)
        templates.append(TemplateLayout(template.name, tables, rows, kept))
    check_inputs(reader)
    model._check_reader(reader)
    layout = Layout(labels.counts, templates)
    weights = _weights(arrays["weights"], layout.n_weights)
    vars(model).update(  # in one step: see _still.py
        weights_=weights, reader_=reader, labels_=labels, layout_=layout, classes_=labels.classes
    )
    model.objective_, model.n_iter_ = float(facts["objective"]), int(facts["n_iter"])
    if facts["report"] is not None:
        model.fit_report_ = FitReport.from_facts(facts["report"])


def check_inputs(reader: Reader) -> None:
    """Raise an error unless exactly the templates with features have an input."""
    for template, source in zip(reader.templates, reader.inputs, strict=True):
        beside = isinstance(template.features, Beside)
        if (source is None) != (template.features is None) and not (beside and source is None):
            raise ValueError(
                f"template {template.name!r} must have rows if and only if it has features"
            )
        if isinstance(template.features, Beside) and source is not None:
            other = reader.input(template.features.template)
            if not (isinstance(source, VectorInput) and isinstance(other, AttributeInput)):
                raise ValueError(f"template {template.name!r} must read arrays inside dicts")


def input_facts(source: Input) -> tuple[Facts, Arrays]:
    """The facts from which `input_from` restores the input."""
    kind = next(k for k, (cls, _) in _INPUTS.items() if isinstance(source, cls))
    arrays = source.arrays()
    if isinstance(source, SharedInput):
        arrays = {"n_variables": np.array([source.n_variables], dtype=np.int64)}
        if isinstance(source.source, SparseInput):
            arrays["counts"] = np.zeros(0, dtype=np.int64)
    return {"kind": kind, **source.facts()}, arrays


def input_from(facts: Mapping[str, Any] | None, arrays: Mapping[str, NDArray[Any]]) -> Input | None:
    """The input that `input_facts` described, checked; None if the template has no input."""
    return None if facts is None else _INPUTS[facts["kind"]][0].from_arrays(facts, arrays)


def _rows(
    facts: Mapping[str, Any] | None, arrays: Mapping[str, NDArray[Any]], n_outputs: int
) -> tuple[Input | None, RowFeatures | None]:
    """The input and the rows of a template, with the layout of their weights."""
    if facts is None:
        return None, None
    source = input_from(facts, arrays)
    assert source is not None
    features = _INPUTS[facts["kind"]][1].from_arrays(source.n_columns, n_outputs, arrays)
    return source, features


def _tables(template: CliqueTemplate, shape: tuple[int, ...], n_weights: int) -> TableLayout:
    """The tables of a template; an error if the file has too few weights for them."""
    tables = TableLayout(shape, template.tables)
    if template.fit_intercept is True and tables.n_outputs > n_weights:
        raise ValueError(
            f"template {template.name!r} needs tables of {' × '.join(map(str, shape))} scores, "
            f"but the file has {n_weights} weights"
        )
    return tables


def _kept(given: NDArray[Any], n_outputs: int, name: str) -> NDArray[np.int64]:
    """The outputs of a template that have an intercept."""
    if given.dtype != np.int64 or given.ndim != 1:
        raise ValueError(f"the intercepts of template {name!r} must be a list of integers")
    if len(given) and (
        given.min() < 0  # each of them: differences of huge numbers overflow
        or given.max() >= n_outputs
        or (np.diff(given) <= 0).any()
    ):
        raise ValueError(
            f"the intercepts of template {name!r} must increase, from 0 to {n_outputs - 1}"
        )
    return given


def _weights(weights: NDArray[Any], n_weights: int) -> Floats:
    """The weights of a file; their number must match."""
    if weights.dtype.kind != "f":
        raise ValueError(f"the weights must be floats, got {weights.dtype}")
    weights = weights.astype(np.float64, copy=False)
    if weights.shape != (n_weights,):
        raise ValueError(f"there must be {n_weights} weights, got {weights.size}")
    if not (np.abs(weights) <= MAX_WEIGHT).all():
        raise ValueError(f"the weights must be numbers up to ±{MAX_WEIGHT:g}")
    return weights


def compacted(
    model: E, threshold: float, dtype: str, X: Iterable[Any] | None, y: Iterable[Any] | None
) -> E:
    """A smaller copy of a fitted model; see `BaseCRF.compact`."""
    check_number("threshold", threshold)
    check_choice("dtype", dtype, ["float64", "float32", "float16"])
    if X is None and y is not None:
        raise ValueError("y needs X: give the examples to which these labels belong")
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
        raise ValueError(f"some weights are too large for {dtype}; use a wider dtype")
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
    """The layout of these distinct attribute–output pairs, and the order of their weights in it.
    `counts` is the frequency of each attribute.
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
