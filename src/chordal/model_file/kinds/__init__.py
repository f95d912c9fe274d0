"""The classes whose models files can hold. One file is one of them, named as the class is."""

from __future__ import annotations

from typing import Any

from chordal._errors import UnsupportedError
from chordal._registry import Registry
from chordal.model_file._kind import Kind

KINDS = Registry("chordal.model_file.kinds", Kind, "kind of model")


def kind_of(model: Any) -> Kind:
    """What knows models of this one's class."""
    name = type(model).__module__.rpartition(".")[2]
    if name in KINDS.names():
        kind = KINDS.resolve(name)
        if kind.estimator is type(model):
            return kind
    raise UnsupportedError(
        f"a {type(model).__name__} cannot be saved; a file can hold: {', '.join(_classes())}"
    )


def kind_named(name: Any) -> Kind:
    """What knows the models of a class of this name, as files give it."""
    file = KINDS.module_of(name) if isinstance(name, str) else None
    if file is not None:
        kind = KINDS.resolve(file)
        if kind.estimator.__name__ == name:
            return kind
    raise ValueError(f"its class must be one of {', '.join(_classes())}; got {name!r}")


def _classes() -> list[str]:
    return [KINDS.resolve(name).estimator.__name__ for name in KINDS]


__all__ = ["KINDS", "Kind", "kind_named", "kind_of"]
