"""Objectives with their costs and settings as JSON has them, and back."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from chordal._errors import UnsupportedError
from chordal._registry import Registry
from chordal._validate import check_choice
from chordal.costs import COSTS, Cost
from chordal.objectives import OBJECTIVES, Objective


def objective_facts(objective: Objective) -> str | dict[str, Any]:
    """The name of an objective; where settings are not the default ones, with those.

    >>> from chordal.costs.hamming import Hamming
    >>> from chordal.objectives.hinge import Hinge
    >>> objective_facts(Hinge())
    'hinge'
    >>> objective_facts(Hinge(Hamming(normalize=True)))
    {'name': 'hinge', 'cost': {'name': 'hamming', 'normalize': True}}
    """
    facts = _facts(objective, OBJECTIVES)
    return facts["name"] if len(facts) == 1 else facts


def objective_of(facts: str | Mapping[str, Any]) -> str | Objective:
    """The objective of what `objective_facts` gave; a name stays a name."""
    if not isinstance(facts, Mapping):
        check_choice("objective", facts, OBJECTIVES.names())
        return facts
    settings = dict(facts)
    if isinstance(settings.get("cost"), Mapping):
        settings["cost"] = _made(settings["cost"], COSTS)
    return _made(settings, OBJECTIVES)


def _facts(item: Any, registry: Registry[Any]) -> dict[str, Any]:
    name = getattr(item, "name", None)
    if name not in registry.names() or registry.get(name) is not type(item):
        raise UnsupportedError(
            f"a model whose {registry.what} is your own ({type(item).__name__}) cannot be saved, "
            f"since a file holds no code; there are: {', '.join(registry.names())}"
        )
    facts: dict[str, Any] = {"name": name}
    for key, parameter in inspect.signature(type(item)).parameters.items():
        value = _plain(getattr(item, key))
        if value not in (parameter.default, {"name": parameter.default}):
            facts[key] = value
    return facts


def _plain(value: Any) -> Any:
    if isinstance(value, Cost):
        return _facts(value, COSTS)
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
