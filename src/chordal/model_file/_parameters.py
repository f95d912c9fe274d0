"""The parameters of an estimator as JSON has them, and back."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from chordal import estimators
from chordal._errors import UnsupportedError
from chordal._validate import check_choice
from chordal.estimators import BaseCRF
from chordal.inference import Inference
from chordal.model_file._items import REGISTRIES, item_facts, item_of
from chordal.text import FeatureTemplate

Facts = dict[str, Any]
S = TypeVar("S", bound="Storable")


class Storable(Protocol):
    """A fitted model that says what it is made of: a `BaseCRF` or a `NeuralCRF`."""

    functions: ClassVar[tuple[str, ...]]
    inference_: Inference

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What was learned, as facts that JSON can hold and arrays."""

    def from_state(self: S, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> S:
        """Take over what `to_state` gave, checked."""


class FunctionsError(ValueError):
    """Functions that belong to a model were not given, or they do not fit it."""


def parameter_facts(model: Storable) -> Facts:
    """The parameters, and the names of those that hold functions, which have to be given again."""
    values = model.get_params(deep=False)
    functions = [k for k in model.functions if _holds_code(values[k])]
    parameters = {k: _plain(k, v) for k, v in values.items() if k not in functions}
    for what in REGISTRIES.keys() & parameters.keys():
        item_of(what, parameters[what])  # it may have been set after fit
    return {"parameters": parameters, **({"functions": functions} if functions else {})}


def _holds_code(value: object) -> bool:
    """Whether a parameter that may be a function is one, or a CRF that has some."""
    if isinstance(value, BaseCRF):
        return any(_holds_code(getattr(value, name)) for name in value.functions)
    return not isinstance(value, (str, type(None)))


def parameters_of(
    kind: type[Storable], facts: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The parameters to make the estimator with."""
    parameters = dict(facts["parameters"])
    _check_functions(kind, facts.get("functions", []), given)
    if isinstance(parameters.get("feature_template"), dict):
        parameters["feature_template"] = FeatureTemplate(**parameters["feature_template"])
    weights = parameters.get("class_weight")
    if isinstance(weights, dict):
        parameters["class_weight"] = dict(zip(weights["labels"], weights["weights"], strict=True))
    if isinstance(parameters.get("freeze"), list):  # JSON knows no tuples
        parameters["freeze"] = tuple(parameters["freeze"])
    for what in REGISTRIES.keys() & inspect.signature(kind).parameters.keys():
        parameters[what] = item_of(what, parameters[what])
    if isinstance(parameters.get("crf"), dict):
        parameters["crf"] = _crf_of(parameters["crf"])
    return {**parameters, **given}


def _crf_of(facts: Mapping[str, Any]) -> BaseCRF:
    """The parameters of a CRF within another estimator; it has no functions."""
    found = {cls.__name__: cls for cls in crf_classes()}
    check_choice("the class of crf", facts["class"], found)
    kind = found[facts["class"]]
    return kind(**parameters_of(kind, facts, {}))


def crf_classes() -> list[type[BaseCRF]]:
    """The estimators that are made of clique templates."""
    public = (getattr(estimators, name) for name in estimators.__all__)
    own = (cls for cls in public if isinstance(cls, type) and issubclass(cls, BaseCRF))
    return [cls for cls in own if cls is not BaseCRF]


def _check_functions(kind: type[Storable], needed: object, given: Mapping[str, Any]) -> None:
    """Refuse to go on without the functions that the model had, or with others."""
    if not isinstance(needed, list) or not all(name in kind.functions for name in needed):
        raise ValueError(f"its functions must be some of {kind.functions}, got {needed!r}")
    for name in needed:
        if given.get(name) is None:
            raise FunctionsError(
                f"the model has {name}, and a file contains no code: pass it to load, as in "
                f"load(path, {name}=…)"
            )
    for name in given.keys() - set(needed):
        raise FunctionsError(f"{name} was given, but the {kind.__name__} does not have it")


def _plain(name: str, value: Any) -> object:
    """A parameter as JSON has it."""
    if isinstance(value, FeatureTemplate):
        return {"text": value.text, "dialect": value.dialect}
    if isinstance(value, BaseCRF):
        return {"class": type(value).__name__, **parameter_facts(value)}
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
    if name == "contrast_columns":
        return [int(column) for column in value]
    if name in ("node_types", "edge_types"):
        return [own if isinstance(own, str) else list(own) for own in value]
    if name == "column_tables":
        return {str(kind): [int(column) for column in own] for kind, own in value.items()}
    if name in REGISTRIES:
        return item_facts(name, value)
    if name in ("random_state", "augment"):  # of training alone
        return None
    raise UnsupportedError(f"parameter {name}={value!r} cannot be written to a model file")
