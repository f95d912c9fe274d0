"""Other packages' names for the modules that take their place."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

NAMES = ("pycrfsuite", "sklearn_crfsuite")
# Modules of the real packages whose content is elsewhere here.
MOVED = {"pycrfsuite._pycrfsuite": "chordal.compat.pycrfsuite"}


def install() -> None:
    """Let `import pycrfsuite` and `import sklearn_crfsuite` find chordal's modules.

    For code that cannot change its imports, and for pickles that name these modules: call it
    before anything imports them. Submodules follow, ``sklearn_crfsuite.metrics`` for example, and
    each is the very module of `chordal.compat`. Nothing is imported until it is asked for. The
    real packages may be installed or not; this process no longer finds them. A second call
    changes nothing.

    A file ``chordal.pth`` in the folder of site-packages with this line does it for every program
    of an environment::

        import chordal.compat; chordal.compat.install()

    Raises
    ------
    ImportError
        If one of the real packages is already imported: what holds its classes would not
        notice the change.

    Examples
    --------
    >>> import chordal.compat
    >>> chordal.compat.install()  # doctest: +SKIP
    >>> import sklearn_crfsuite  # doctest: +SKIP
    >>> sklearn_crfsuite.CRF.__module__  # doctest: +SKIP
    'chordal.compat.sklearn_crfsuite.estimator'
    """
    for name in NAMES:
        module = sys.modules.get(name)
        if module is not None and module.__name__ != f"chordal.compat.{name}":
            where = getattr(module, "__file__", None) or "an unknown place"
            raise ImportError(
                f"{name} is already imported, from {where}; call chordal.compat.install() before "
                f"the first import of {name}",
                name=name,
            )
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder, Loader):
    """Finds a module of `chordal.compat` by the name of the module that it replaces."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in NAMES or find_spec(_home(fullname)) is None:
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(_home(spec.name))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just given it the spec of its second name.
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def _home(name: str) -> str:
    return MOVED.get(name, f"chordal.compat.{name}")
