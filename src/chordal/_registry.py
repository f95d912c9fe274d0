"""Registries: each file of a package's folder is a choice, named by its file."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """The final classes of a package: one to a module, found by the module's name.

    Modules whose name starts with an underscore are not listed, nor are subpackages. A module is
    imported only when it is requested.

    Parameters
    ----------
    package : str
        Dotted name of the package, such as ``"chordal.solvers"``.
    base : type
        The base class of every listed class.
    what : str
        The name of these classes in messages, such as ``"solver"``.

    Examples
    --------
    >>> import json
    >>> coders = Registry("json", json.JSONEncoder, "coder")
    >>> "encoder" in coders.names()
    True
    >>> coders.get("encoder").__name__
    'JSONEncoder'
    >>> coders.resolve("encoder", sort_keys=True).encode({"b": 1, "a": 2})
    '{"a": 2, "b": 1}'
    """

    def __init__(self, package: str, base: type[T], what: str) -> None:
        self.package = package
        self.base = base
        self.what = what
        self._found: dict[str, type[T]] = {}
        self._names: list[str] | None = None

    def names(self) -> list[str]:
        """Sorted names of the modules in the package's folder; none of them is imported."""
        if self._names is None:
            spec = importlib.util.find_spec(self.package)
            if spec is None or spec.submodule_search_locations is None:
                raise ModuleNotFoundError(f"no package named {self.package!r}", name=self.package)
            self._names = _modules(spec.submodule_search_locations)
        return list(self._names)

    def get(self, name: str) -> type[T]:
        """Import the module ``name`` and return its one final class."""
        if name in self._found:
            return self._found[name]
        names = self.names()
        if name not in names:
            import difflib

            close = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {close[0]!r}? There are: " if close else "there are: "
            raise ValueError(f"unknown {self.what} {name!r}; {hint}{_listed(names)}")
        module = importlib.import_module(f"{self.package}.{name}")
        final = [
            value
            for key, value in vars(module).items()
            if inspect.isclass(value)
            and (value.__module__, value.__name__) == (module.__name__, key)  # no import, no alias
            and issubclass(value, self.base)
            and not inspect.isabstract(value)
        ]
        if len(final) != 1:
            found = ", ".join(cls.__name__ for cls in final) or "none"
            raise TypeError(
                f"{module.__name__} must define exactly one class that derives from "
                f"{self.base.__name__} and is not abstract, found {found}"
            )
        self._found[name] = final[0]
        return final[0]

    def module_of(self, class_name: str) -> str | None:
        """The module named after a class, such as graph_crf for GraphCRF; else None.

        Nothing is imported.
        """
        wanted = class_name.lower()
        return next((name for name in self.names() if name.replace("_", "") == wanted), None)

    def classes(self) -> list[type[T]]:
        """All classes, in the order of their names; imports every module."""
        return [self.get(name) for name in self.names()]

    def add_folder(self, folder: str | Path) -> None:
        """Add the modules of a folder to the registry: each can be chosen by its name.

        This adds a project's own methods, solvers or objectives. Error messages, the command line
        and `auto` include them.
        """
        taken = sorted({*_modules([str(folder)])} & {*self.names()})
        if taken:
            raise ValueError(f"{folder} and {self.package} both have {_listed(taken)}: rename")
        importlib.invalidate_caches()
        importlib.import_module(self.package).__path__.append(str(folder))
        self._names = None

    @contextmanager
    def extended(self, folder: str | Path) -> Iterator[None]:
        """As `add_folder`, for a `with` block only."""
        self.add_folder(folder)
        try:
            yield
        finally:
            package = importlib.import_module(self.package)
            package.__path__.remove(str(folder))
            self._names = None
            for name in _modules([str(folder)]):
                self._found.pop(name, None)
                sys.modules.pop(f"{self.package}.{name}", None)
                vars(package).pop(name, None)

    def resolve(self, name_or_object: str | T, **kwargs: object) -> T:
        """Make an instance from a name and ``kwargs``; pass an instance of the base through."""
        if isinstance(name_or_object, str):
            return self.get(name_or_object)(**kwargs)
        if isinstance(name_or_object, self.base):
            return name_or_object
        raise TypeError(
            f"{self.what} must be a name (one of {_listed(self.names())}) or an instance of "
            f"{self.base.__name__}, got {name_or_object!r}"
        )

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __repr__(self) -> str:
        return f"Registry({self.package!r}, {self.base.__name__}, {self.what!r})"


def _modules(folders: Iterable[str]) -> list[str]:
    modules = pkgutil.iter_modules(folders)
    return sorted({m.name for m in modules if not m.name.startswith("_") and not m.ispkg})


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))
