"""Packages that not everybody needs: imported where they serve, with an error that names the extra.

The core (chains, graphs and grids, model files, the command line) needs NumPy alone.
"""

from __future__ import annotations

import importlib.util
from types import TracebackType

# How sentences call a package, and the extra of chordal that installs it.
EXTRAS = {
    "PIL": ("Pillow", "plots"),
    "dask": ("Dask", "dask"),
    "distributed": ("Dask's distributed", "dask"),
    "eli5": ("eli5", "explain"),
    "matplotlib": ("matplotlib", "plots"),
    "narwhals": ("narwhals", "frames"),
    "pandas": ("pandas", "explain"),
    "pyarrow": ("pyarrow", "arrow"),
    "scipy": ("SciPy", "scikit-learn"),
    "sklearn": ("scikit-learn", "scikit-learn"),
    "starlette": ("Starlette", "serve"),
    "torch": ("PyTorch", "torch"),
    "uvicorn": ("uvicorn", "serve"),
    "zstandard": ("zstandard", "zstd"),
}


def installed(package: str) -> bool:
    """Whether an optional package is there; it is not imported.

    >>> installed("no_such_package")
    False
    """
    return importlib.util.find_spec(package) is not None


class needed:
    """Imports of an optional package stand in this block: its absence becomes a clear error.

    Parameters
    ----------
    package : str
        The name by which it is imported.
    what : str
        What needs it, in the words of whoever asked: the beginning of the message.
    extra : str, optional
        The extra to recommend, if it is not the package's own.

    Examples
    --------
    >>> with needed("scipy", "inference 'milp'"):
    ...     raise ModuleNotFoundError("No module named 'scipy'", name="scipy")
    Traceback (most recent call last):
    ImportError: inference 'milp' needs SciPy, ...: pip install "chordal[scikit-learn]"
    """

    def __init__(self, package: str, what: str, extra: str | None = None) -> None:
        self.package, self.what = package, what
        self.name, own = EXTRAS[package]
        self.extra = extra or own

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A missing module inside a package that is there is an error of another kind.
        if isinstance(error, ModuleNotFoundError) and error.name == self.package:
            raise ImportError(
                f"{self.what} needs {self.name}, which is not installed: "
                f'pip install "chordal[{self.extra}]"',
                name=self.package,
            ) from None
