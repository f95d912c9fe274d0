"""What the states of several kinds of models share: weights, rows of observations, the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal.estimators import FitReport
from chordal.estimators._chain_model import MAX_WEIGHT
from chordal.features import (
    AttributeFeatures,
    AttributeInput,
    DenseFeatures,
    DenseInput,
    Input,
    RowFeatures,
    SparseInput,
    TemplateInput,
)
from chordal.inference import INFERENCE
from chordal.model_file._items import item_facts, item_of
from chordal.model_file._kind import Arrays, Facts
from chordal.potentials import Floats

_INPUTS: dict[str, tuple[type[Input], type[RowFeatures]]] = {
    "attributes": (AttributeInput, AttributeFeatures),
    "template": (TemplateInput, AttributeFeatures),
    "sparse": (SparseInput, AttributeFeatures),
    "dense": (DenseInput, DenseFeatures),
}


def rows_state(
    part: str, source: Input | None, rows: RowFeatures | None
) -> tuple[Facts | None, Arrays]:
    """How a part of the model reads its observations, and which weights these have."""
    if source is None or rows is None:
        return None, {}
    kind = next(k for k, (cls, _) in _INPUTS.items() if isinstance(source, cls))
    own = {**source.arrays(), **rows.arrays()}
    return {"kind": kind, **source.facts()}, {f"{part}.{k}": array for k, array in own.items()}


def rows_of(
    part: str,
    facts: Mapping[str, Any] | None,
    arrays: Mapping[str, NDArray[Any]],
    n_outputs: int,
) -> tuple[Input | None, RowFeatures | None]:
    """Of what `rows_state` gave."""
    if facts is None:
        return None, None
    own = {k.removeprefix(f"{part}."): v for k, v in arrays.items() if k.startswith(f"{part}.")}
    make_input, make_features = _INPUTS[facts["kind"]]
    source = make_input.from_arrays(facts, own)
    return source, make_features.from_arrays(source.n_columns, n_outputs, own)


def check_finite(weights: Floats) -> Floats:
    """Weights that a file may hold."""
    if not np.isfinite(weights).all():
        raise UnsupportedError(
            "a model with weights of -inf, which forbid, cannot be saved; smooth probabilities of "
            "zero (alpha above 0), or forbid by allowed_transitions when predicting"
        )
    return weights


def weights_of(arrays: Mapping[str, NDArray[Any]], n_weights: int) -> Floats:
    """The weights of a file, which must be so many."""
    weights = arrays["weights"]
    if weights.dtype.kind != "f":
        raise ValueError(f"the weights must be floats, got {weights.dtype}")
    weights = weights.astype(np.float64, copy=False)
    if weights.shape != (n_weights,):
        raise ValueError(f"there must be {n_weights} weights, got {weights.size}")
    if not (np.abs(weights) <= MAX_WEIGHT).all():
        raise ValueError(f"the weights must be numbers up to ±{MAX_WEIGHT:g}")
    return weights


def fit_facts(model: Any) -> Facts:
    """How the fit went; a model that was made in another way has no report."""
    facts: Facts = {
        "objective": float(model.objective_),
        "n_iter": int(model.n_iter_),
        "report": None,
    }
    if hasattr(model, "inference_"):
        facts["inference"] = item_facts("inference", model.inference_)
    if hasattr(model, "fit_report_"):
        report = asdict(model.fit_report_)
        facts["report"] = {**report, "status": model.fit_report_.status.name}
    return facts


def set_fit(model: Any, facts: Mapping[str, Any]) -> None:
    """The attributes of what `fit_facts` gave."""
    model.objective_, model.n_iter_ = float(facts["objective"]), int(facts["n_iter"])
    if facts["report"] is not None:
        model.fit_report_ = _report(facts["report"])


def inference_of(facts: Any) -> Any:
    """The inference method that training used."""
    return INFERENCE.resolve(item_of("inference", facts))


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
        exact=bool(facts.get("exact", True)),
    )
