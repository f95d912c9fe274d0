"""A fitted chain model as facts and arrays, and back: what a model file holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._registry import Registry
from chordal._status import Status
from chordal._validate import check_choice
from chordal.estimators._chain_model import MAX_WEIGHT
from chordal.estimators._labels import SequenceLabels
from chordal.estimators._objective_facts import objective_facts, objective_of
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
from chordal.solvers import SOLVERS

Facts = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

_INPUTS: dict[str, tuple[type[Input], type[RowFeatures]]] = {
    "attributes": (AttributeInput, AttributeFeatures),
    "template": (TemplateInput, AttributeFeatures),
    "sparse": (SparseInput, AttributeFeatures),
    "dense": (DenseInput, DenseFeatures),
}
_REGISTRIES: dict[str, Registry[Any]] = {
    "solver": SOLVERS,
    "inference": INFERENCE,
}


def to_state(model: ChainCRF) -> tuple[Facts, Arrays]:
    """What `from_state` needs to make the same fitted model."""
    model._check_fitted()
    model._check_parameters()  # they may have been set after fit, and `from_state` checks them
    if model.transition_features is not None:
        raise UnsupportedError(
            "a model with the function transition_features cannot be saved, since a file holds no "
            "code; lines B of a template observe transitions as well"
        )
    if not np.isfinite(model.weights_).all():
        raise UnsupportedError(
            "a model with weights of -inf, which forbid, cannot be saved; smooth probabilities of "
            "zero (alpha above 0), or forbid by allowed_transitions when predicting"
        )
    features = model.features_
    parameters = {k: _plain(k, v) for k, v in model.get_params(deep=False).items()}
    _check_names(parameters)
    facts: Facts = {
        "parameters": parameters,
        "labels": model._labels.to_facts(),
        "inference": _name_of("inference", model.inference_),
        "bias": bool(features.bias),
        "ends": bool(features.ends),
        "objective": float(model.objective_),
        "n_iter": int(model.n_iter_),
        "report": None,
    }
    if hasattr(model, "fit_report_"):
        report = asdict(model.fit_report_)
        facts["report"] = {**report, "status": model.fit_report_.status.name}
    transitions = features.transitions.astype(np.int64, copy=False)
    arrays: Arrays = {"weights": model.weights_, "transitions": transitions}
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
    weights = parameters.get("class_weight")
    if isinstance(weights, dict):
        parameters["class_weight"] = dict(zip(weights["labels"], weights["weights"], strict=True))
    if isinstance(parameters.get("freeze"), list):  # JSON knows no tuples
        parameters["freeze"] = tuple(parameters["freeze"])
    parameters["objective"] = objective_of(parameters["objective"])
    model = ChainCRF(**parameters)
    model._check_parameters()
    _check_names(parameters)
    labels = SequenceLabels.from_facts(facts["labels"])
    n = len(labels)
    _check_parts(model, facts["node"], facts["edge"])
    node_input, node = _restored("node", facts, arrays, n)
    edge_input, edge = None, None
    if facts["edge"] is not None:
        edge_input, edge = _restored("edge", facts, arrays, n * n)
    transitions = arrays["transitions"]
    if transitions.dtype != np.int64 or transitions.ndim != 1:
        raise ValueError("transitions must be a list of integers")
    if len(transitions) and (
        transitions.min() < 0  # each of them: differences of huge numbers overflow
        or transitions.max() >= n * n
        or (np.diff(transitions) <= 0).any()
    ):
        raise ValueError(f"transitions must rise from 0 to {n * n - 1} at most")
    features = ChainFeatures(n, node, edge, transitions, bool(facts["bias"]), bool(facts["ends"]))
    if arrays["weights"].dtype.kind != "f":
        raise ValueError(f"the weights must be floats, got {arrays['weights'].dtype}")
    weights = arrays["weights"].astype(np.float64, copy=False)
    if weights.shape != (features.n_weights,):
        raise ValueError(f"there must be {features.n_weights} weights, got {weights.size}")
    if not (np.abs(weights) <= MAX_WEIGHT).all():
        raise ValueError(f"the weights must be numbers up to ±{MAX_WEIGHT:g}")
    model._inputs, model._labels, model.classes_ = (node_input, edge_input), labels, labels.classes
    model.features_, model.weights_ = features, weights
    model.inference_ = INFERENCE.resolve(facts["inference"])
    model.objective_, model.n_iter_ = float(facts["objective"]), int(facts["n_iter"])
    if facts["report"] is not None:
        model.fit_report_ = _report(facts["report"])
    return model


def _check_parts(model: ChainCRF, node: Mapping[str, Any], edge: Mapping[str, Any] | None) -> None:
    """Refuse inputs that would read other rows than the model's."""
    by_template = model.template is not None
    if by_template != (node["kind"] == "template"):
        raise ValueError("the parameter template and the kind of node must agree")
    if by_template and node["part"] != "states":
        raise ValueError(f"the part of node must be 'states', got {node['part']!r}")
    if edge is not None and (edge["kind"], edge.get("part")) != ("template", "pairs"):
        raise ValueError("observations of transitions must be those of a template's lines B")
    if edge is not None and not by_template:
        raise ValueError("observations of transitions need a template")


def _report(facts: Mapping[str, Any]) -> FitReport:
    """JSON knows lists but no tuples, and a file may hold anything."""
    return FitReport(
        status=Status[facts["status"]],
        solver=str(facts["solver"]),
        inference=str(facts["inference"]),
        objective=float(facts["objective"]),
        gradient_norm=float(facts["gradient_norm"]),
        n_iter=int(facts["n_iter"]),
        n_evaluations=int(facts["n_evaluations"]),
        n_weights=int(facts["n_weights"]),
        n_nonzero=int(facts["n_nonzero"]),
        elapsed=float(facts["elapsed"]),
        history=[float(value) for value in facts["history"]],
        validation=[(int(k), float(score)) for k, score in facts["validation"]],
        gap=float(facts.get("gap", nan)),  # files of older versions have none
        n_products=int(facts.get("n_products", 0)),
        details={str(k): [float(x) for x in v] for k, v in facts.get("details", {}).items()},
    )


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
    if name == "class_weight":
        return {"labels": list(value), "weights": [float(v) for v in value.values()]}
    if name == "l2":
        return {str(group): float(number) for group, number in value.items()}
    if name == "freeze":
        return list(value)
    if name == "objective":
        return objective_facts(value)
    if name in _REGISTRIES:
        return _name_of(name, value)
    if name == "random_state":
        return None
    raise UnsupportedError(f"parameter {name}={value!r} cannot be written to a model file")


def _check_names(parameters: Mapping[str, Any]) -> None:
    for name, registry in _REGISTRIES.items():
        more = ["auto"] if name == "inference" else []
        check_choice(name, parameters[name], [*more, *registry.names()])


def _name_of(what: str, value: Any) -> str:
    """The name of a solver or inference method that comes with the library."""
    registry = _REGISTRIES[what]
    name = getattr(value, "name", None)
    if name not in registry.names() or registry.get(name) is not type(value):
        raise UnsupportedError(
            f"a model whose {what} is your own ({type(value).__name__}) cannot be saved, since a "
            f"file holds no code; there are: {', '.join(registry.names())}"
        )
    return str(name)
