"""Chain models in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from chordal.estimators import ChainCRF
from chordal.estimators._labels import SequenceLabels
from chordal.features import ChainFeatures
from chordal.model_file._kind import Arrays, Facts, Kind
from chordal.model_file._parameters import parameter_facts, parameters_of
from chordal.model_file._pieces import (
    check_finite,
    fit_facts,
    inference_of,
    rows_of,
    rows_state,
    set_fit,
    weights_of,
)


@final
class ChainKind(Kind):
    """Chains of labels, with observations of tokens and of transitions."""

    estimator = ChainCRF
    functions = ("transition_features",)

    def to_state(self, model: ChainCRF) -> tuple[Facts, Arrays]:
        model._check_fitted()
        model._check_parameters()  # they may have been set after fit, and `from_state` checks them
        features = model.features_
        node, node_arrays = rows_state("node", model._inputs[0], features.node)
        edge, edge_arrays = rows_state("edge", model._inputs[1], features.edge)
        facts = {
            **parameter_facts(self, model),
            **fit_facts(model),
            "labels": model._labels.to_facts(),
            "bias": bool(features.bias),
            "ends": bool(features.ends),
            "node": node,
            "edge": edge,
        }
        arrays = {
            "weights": check_finite(model.weights_),
            "transitions": features.transitions.astype(np.int64, copy=False),
        }
        return facts, {**arrays, **node_arrays, **edge_arrays}

    def from_state(
        self,
        facts: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        functions: Mapping[str, Any],
    ) -> ChainCRF:
        model = ChainCRF(**parameters_of(self, facts, functions))
        model._check_parameters()
        labels = SequenceLabels.from_facts(facts["labels"])
        n = len(labels)
        _check_parts(model, facts["node"], facts["edge"])
        node_input, node = rows_of("node", facts["node"], arrays, n)
        edge_input, edge = rows_of("edge", facts["edge"], arrays, n * n)
        if node_input is None or node is None:
            raise ValueError("a chain must have observations of its tokens")
        transitions = _transitions(arrays["transitions"], n)
        bias, ends = bool(facts["bias"]), bool(facts["ends"])
        features = ChainFeatures(n, node, edge, transitions, bias, ends)
        model.weights_ = weights_of(arrays, features.n_weights)
        model._inputs, model._labels = (node_input, edge_input), labels
        model.features_, model.classes_ = features, labels.classes
        model.inference_ = inference_of(facts["inference"])
        set_fit(model, facts)
        return model


def _transitions(given: NDArray[Any], n: int) -> NDArray[np.int64]:
    """The pairs of n labels that have weights."""
    if given.dtype != np.int64 or given.ndim != 1:
        raise ValueError("transitions must be a list of integers")
    if len(given) and (
        given.min() < 0  # each of them: differences of huge numbers overflow
        or given.max() >= n * n
        or (np.diff(given) <= 0).any()
    ):
        raise ValueError(f"transitions must rise from 0 to {n * n - 1} at most")
    return given


def _check_parts(model: ChainCRF, node: Mapping[str, Any], edge: Mapping[str, Any] | None) -> None:
    """Refuse inputs that would read other rows than the model's."""
    by_template = model.template is not None
    if by_template != (node["kind"] == "template"):
        raise ValueError("the parameter template and the kind of node must agree")
    if by_template and node["part"] != "states":
        raise ValueError(f"the part of node must be 'states', got {node['part']!r}")
    if model.transition_features is not None:
        if edge is not None and edge["kind"] == "template":
            raise ValueError("observations of transitions must be those of transition_features")
        return
    if edge is not None and (edge["kind"], edge.get("part")) != ("template", "pairs"):
        raise ValueError("observations of transitions must be those of a template's lines B")
    if edge is not None and not by_template:
        raise ValueError("observations of transitions need a template")
