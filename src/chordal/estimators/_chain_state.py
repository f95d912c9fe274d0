"""A fitted chain model as facts and arrays, and back: what a model file holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal.estimators._labels import SequenceLabels
from chordal.estimators._training import FitReport
from chordal.estimators.chain_crf import ChainCRF
from chordal.features import (
    AttributeFeatures,
    AttributeInput,
    ChainFeatures,
    DenseFeatures,
    DenseInput,
    Input,
    RowFeatures,
    SparseInput,
    Template,
    TemplateInput,
)
from chordal.inference import INFERENCE

Facts = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

_INPUTS: dict[str, tuple[type[Input], type[RowFeatures]]] = {
    "attributes": (AttributeInput, AttributeFeatures),
    "template": (TemplateInput, AttributeFeatures),
    "sparse": (SparseInput, AttributeFeatures),
    "dense": (DenseInput, DenseFeatures),
}


def to_state(model: ChainCRF) -> tuple[Facts, Arrays]:
    """What `from_state` needs to make the same fitted model."""
    model._check_fitted()
    if model.transition_features is not None:
        raise UnsupportedError(
            "a model with the function transition_features cannot be saved, since a file holds no "
            "code; lines B of a template observe transitions as well"
        )
    features = model.features_
    facts: Facts = {
        "parameters": {k: _plain(k, v) for k, v in model.get_params(deep=False).items()},
        "labels": model._labels.to_facts(),
        "inference": model.inference_.name,
        "bias": features.bias,
        "ends": features.ends,
        "objective": float(model.objective_),
        "n_iter": int(model.n_iter_),
        "report": None,
    }
    if hasattr(model, "fit_report_"):
        report = asdict(model.fit_report_)
        facts["report"] = {**report, "status": model.fit_report_.status.name}
    arrays: Arrays = {"weights": model.weights_, "transitions": features.transitions}
    for part, source, rows in zip(
        ("node", "edge"), model._inputs, (features.node, features.edge), strict=True
    ):
        facts[part] = None
        if source is None or rows is None:
            continue
        kind = next(k for k, (cls, _) in _INPUTS.items() if isinstance(source, cls))
        facts[part] = {"kind": kind, **source.facts()}
        for name, array in {**source.arrays(), **rows.arrays()}.items():
            arrays[f"{part}.{name}"] = array
    return facts, arrays


def from_state(facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> ChainCRF:
    """The model; raises ValueError, KeyError or TypeError if the parts do not fit together."""
    parameters = dict(facts["parameters"])
    if isinstance(parameters.get("template"), dict):
        parameters["template"] = Template(**parameters["template"])
    model = ChainCRF(**parameters)
    model._check_parameters()
    labels = SequenceLabels.from_facts(facts["labels"])
    n = len(labels)
    node_input, node = _restored("node", facts, arrays, n)
    edge_input, edge = None, None
    if facts["edge"] is not None:
        edge_input, edge = _restored("edge", facts, arrays, n * n)
    transitions = arrays["transitions"]
    if transitions.dtype != np.int64 or transitions.ndim != 1:
        raise ValueError("transitions must be a list of integers")
    if len(transitions) and (
        transitions[0] < 0 or transitions[-1] >= n * n or (np.diff(transitions) <= 0).any()
    ):
        raise ValueError(f"transitions must rise from 0 to {n * n - 1} at most")
    features = ChainFeatures(n, node, edge, transitions, bool(facts["bias"]), bool(facts["ends"]))
    weights = arrays["weights"].astype(np.float64, copy=False)
    if weights.shape != (features.n_weights,):
        raise ValueError(f"there must be {features.n_weights} weights, got {weights.size}")
    if not np.isfinite(weights).all():
        raise ValueError("the weights must be finite")
    model._inputs, model._labels, model.classes_ = (node_input, edge_input), labels, labels.classes
    model.features_, model.weights_ = features, weights
    model.inference_ = INFERENCE.resolve(facts["inference"])
    model.objective_, model.n_iter_ = float(facts["objective"]), int(facts["n_iter"])
    report = facts["report"]
    if report is not None:
        model.fit_report_ = FitReport(**{**report, "status": Status[report["status"]]})
    return model


def _restored(
    part: str, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_outputs: int
) -> tuple[Input, RowFeatures]:
    own = {k.removeprefix(f"{part}."): v for k, v in arrays.items() if k.startswith(f"{part}.")}
    make_input, make_features = _INPUTS[facts[part]["kind"]]
    source = make_input.from_arrays(facts[part], own)
    return source, make_features.from_arrays(source.n_columns, n_outputs, own)


def _plain(name: str, value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, Template):
        return {"text": value.text, "dialect": value.dialect}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "name"):  # a solver, objective or inference method
        return str(value.name)
    if name == "random_state":
        return None
    raise UnsupportedError(f"parameter {name}={value!r} cannot be written to a model file")
