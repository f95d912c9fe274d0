"""What a fitted model is made of, as facts that JSON can hold and arrays of one dimension."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.estimators._monitor import FitReport
from chordal.features import (
    AttributeFeatures,
    AttributeInput,
    Beside,
    CliqueTemplate,
    DenseFeatures,
    DenseInput,
    Input,
    Layout,
    RowFeatures,
    SharedFeatures,
    SharedInput,
    SparseInput,
    TableLayout,
    TemplateInput,
    TemplateLayout,
    VectorInput,
    check_described,
)
from chordal.potentials import Floats

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

Facts = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

#: Of weights that come from elsewhere: scores beyond it have no digits left for probabilities.
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
    """What `set_state` needs to make the same fitted model; refuses what no file can hold."""
    if not np.isfinite(model.weights_).all():
        raise UnsupportedError(
            "a model with weights of -inf, which forbid, cannot be saved; smooth probabilities of "
            "zero (alpha above 0), or forbid by allowed_transitions when predicting"
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
            kind = next(k for k, (cls, _) in _INPUTS.items() if isinstance(source, cls))
            rows = {"kind": kind, **source.facts()}
            found |= {**source.arrays(), **own.rows.arrays()}
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
    """Give a model, which has its parameters, what was learned.

    Whatever the facts hold, the model works afterwards, or ValueError, LookupError or TypeError
    says what does not fit together.
    """
    model._check_parameters()
    labels = model.labels_type.from_facts(facts["labels"])
    described = facts["templates"]
    reader = model._reader_from(facts)
    facts_of = {own["name"]: own for own in described}
    present = [
        template
        for template in reader.templates
        if template.name in facts_of or not isinstance(template.features, Beside)
    ]
    check_described(present, described)
    templates = []
    for k, template in enumerate(reader.templates):
        tables = _tables(template, len(labels), arrays["weights"].size)
        if template not in present:
            templates.append(TemplateLayout(template.name, tables, None, np.zeros(0, np.int64)))
            continue
        mine = {
            key.removeprefix(f"{template.name}."): array
            for key, array in arrays.items()
            if key.startswith(f"{template.name}.")
        }
        reader.inputs[k], rows = _rows(facts_of[template.name]["rows"], mine, tables.n_outputs)
        if (rows is None) != (template.features is None):
            raise ValueError(f"template {template.name!r} must have rows if it has features")
        if isinstance(template.features, Beside) and not (
            isinstance(reader.inputs[k], VectorInput)
            and isinstance(reader.input(template.features.template), AttributeInput)
        ):
            raise ValueError(f"template {template.name!r} must have arrays that stand in dicts")
        kept = _kept(mine["kept"], tables.n_outputs, template.name)
        templates.append(TemplateLayout(template.name, tables, rows, kept))
    model._check_reader(reader)
    layout = Layout(len(labels), templates)
    model.weights_ = _weights(arrays["weights"], layout.n_weights)
    model.reader_, model.labels_, model.layout_ = reader, labels, layout
    model.classes_ = labels.classes
    model.objective_, model.n_iter_ = float(facts["objective"]), int(facts["n_iter"])
    if facts["report"] is not None:
        model.fit_report_ = FitReport.from_facts(facts["report"])


def _rows(
    facts: Mapping[str, Any] | None, arrays: Mapping[str, NDArray[Any]], n_outputs: int
) -> tuple[Input | None, RowFeatures | None]:
    """What reads the rows of a template, and which weights these have."""
    if facts is None:
        return None, None
    make_input, make_features = _INPUTS[facts["kind"]]
    source = make_input.from_arrays(facts, arrays)
    return source, make_features.from_arrays(source.n_columns, n_outputs, arrays)


def _tables(template: CliqueTemplate, n_labels: int, n_weights: int) -> TableLayout:
    """The tables of a template, unless the file has too few weights for them to be right."""
    order, n_labels = template.size, 1 if template.labelwise else n_labels
    least = n_labels**order if template.tables == "full" else 1
    if template.tables == "symmetric":
        least = comb(n_labels + order - 1, order)
    if template.tables == "antisymmetric":
        least = comb(n_labels, 2)
    if template.fit_intercept is True and least > n_weights:
        raise ValueError(
            f"template {template.name!r} needs {n_labels}^{order} scores for {n_labels} labels, "
            f"and the file has {n_weights} weights"
        )
    return TableLayout(n_labels, order, template.tables)


def _kept(given: NDArray[Any], n_outputs: int, name: str) -> NDArray[np.int64]:
    """The outputs of a template that have an intercept."""
    if given.dtype != np.int64 or given.ndim != 1:
        raise ValueError(f"the intercepts of template {name!r} must be a list of integers")
    if len(given) and (
        given.min() < 0  # each of them: differences of huge numbers overflow
        or given.max() >= n_outputs
        or (np.diff(given) <= 0).any()
    ):
        raise ValueError(f"the intercepts of template {name!r} must rise from 0 to {n_outputs - 1}")
    return given


def _weights(weights: NDArray[Any], n_weights: int) -> Floats:
    """The weights of a file, which must be so many."""
    if weights.dtype.kind != "f":
        raise ValueError(f"the weights must be floats, got {weights.dtype}")
    weights = weights.astype(np.float64, copy=False)
    if weights.shape != (n_weights,):
        raise ValueError(f"there must be {n_weights} weights, got {weights.size}")
    if not (np.abs(weights) <= MAX_WEIGHT).all():
        raise ValueError(f"the weights must be numbers up to ±{MAX_WEIGHT:g}")
    return weights
