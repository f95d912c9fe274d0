"""Objectives, solvers and inference methods with their settings as JSON has them, and back."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from chordal._errors import UnsupportedError
from chordal._registry import Registry
from chordal._validate import check_choice
from chordal.costs import COSTS, Cost
from chordal.inference import INFERENCE
from chordal.objectives import OBJECTIVES
from chordal.solvers import SOLVERS
from chordal.solvers.sgd import StepSchedule

#: The parameters of models that are such items.
REGISTRIES: dict[str, Registry[Any]] = {
    "objective": OBJECTIVES,
    "solver": SOLVERS,
    "inference": INFERENCE,
}


def item_facts(what: str, item: object) -> str | dict[str, Any]:
    """The name of an item; where settings are not the default ones, with those.

    >>> from chordal.costs.hamming import Hamming
    >>> from chordal.objectives.hinge import Hinge
    >>> item_facts("objective", Hinge())
    'hinge'
    >>> item_facts("objective", Hinge(Hamming(normalize=True)))
    {'name': 'hinge', 'cost': {'name': 'hamming', 'normalize': True}}
    """
    if isinstance(item, str):
        return item
    facts = _facts(item, REGISTRIES[what])
    return facts["name"] if len(facts) == 1 else facts


def item_of(what: str, facts: object) -> Any:
    """The item of what `item_facts` gave; a name stays a name."""
    if not isinstance(facts, Mapping):
        check_choice(what, facts, ["auto", *REGISTRIES[what].names()])
        return facts
    settings = dict(facts)
    if isinstance(settings.get("cost"), Mapping):
        settings["cost"] = _made(settings["cost"], COSTS)
    if isinstance(settings.get("schedule"), Mapping):
        settings["schedule"] = StepSchedule(**settings["schedule"])
    return _made(settings, REGISTRIES[what])


def _facts(item: object, registry: Registry[Any]) -> dict[str, Any]:
    name = getattr(item, "name", None)
    if name not in registry.names() or registry.get(name) is not type(item):
        raise UnsupportedError(
            f"a model with your own {registry.what} ({type(item).__name__}) cannot be saved, "
            f"because a file contains no code; use one of: {', '.join(registry.names())}"
        )
    facts: dict[str, Any] = {"name": name}
    for key, parameter in inspect.signature(type(item)).parameters.items():
        value = _plain(getattr(item, key))
        if value not in (parameter.default, {"name": parameter.default}):
            facts[key] = value
    return facts


def _plain(value: object) -> object:
    if isinstance(value, Cost):
        return _facts(value, COSTS)
    if isinstance(value, StepSchedule):
        return asdict(value)
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return None  # its state is not part of a model
    if isinstance(value, Mapping):
        return {"prices": [[_plain(key), float(price)] for key, price in value.items()]}
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value


def _made(facts: Mapping[str, Any], registry: Registry[Any]) -> Any:
    settings = dict(facts)
    name = settings.pop("name")
    check_choice(registry.what, name, registry.names())
    for key, value in settings.items():
        if isinstance(value, Mapping):  # keys of prices are labels, or pairs of them
            settings[key] = {
                tuple(k) if isinstance(k, list) else k: float(price) for k, price in value["prices"]
            }
    return registry.get(name)(**settings)
