"""What is public in the library, found by walking it, each object once by its shortest path.

A module is public if no part of its path begins with an underscore; a name is, if the module's
`__all__` lists it or, without one, if the module defines it. Commands have a reference
of their own.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType

import chordal


def modules() -> Iterator[ModuleType]:
    """All public modules that can be imported here."""
    yield chordal
    for found in pkgutil.walk_packages(chordal.__path__, "chordal.", onerror=lambda _: None):
        parts = found.name.split(".")
        if any(part.startswith("_") for part in parts) or (parts[1:2] == ["cli"] and parts[2:]):
            continue
        try:
            yield importlib.import_module(found.name)
        except ImportError as error:
            if "chordal[" not in str(error) and "pip install" not in str(error):
                raise


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.startswith("__")]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isroutine(value))
        and value.__module__ == module.__name__
    ]


def objects() -> dict[str, object]:
    """Public objects by path."""
    found: dict[int | str, tuple[str, object]] = {}
    for module in modules():
        for name in names_of(module):
            value, path = getattr(module, name), f"{module.__name__}.{name}"
            if inspect.ismodule(value):
                continue
            named = inspect.isclass(value) or inspect.isroutine(value)
            # A number or an alias of a type may be one object with two meanings.
            key: int | str = id(value) if named else path
            known = found.get(key)
            if known is None or _rank(path) < _rank(known[0]):
                found[key] = (path, value)
    return dict(sorted(found.values(), key=lambda item: item[0].lower()))


def _rank(path: str) -> tuple[int, str]:
    return path.count("."), path


def home(path: str) -> str:
    """The page that lists an object: `chordal` itself, or a package or module right under it."""
    parts = path.split(".")
    return ".".join(parts[:2]) if len(parts) > 2 else parts[0]


def absent() -> list[str]:
    """Public packages that cannot be imported here, since what they need is not installed."""
    imported = {module.__name__ for module in modules()}
    return [
        f"chordal.{found.name}"
        for found in pkgutil.iter_modules(chordal.__path__)
        if not found.name.startswith("_") and f"chordal.{found.name}" not in imported
    ]
