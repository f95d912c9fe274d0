"""Optional packages: imported when needed, with an error that names the extra to install.

The core (chains, graphs and grids, model files, the command line) needs only NumPy.
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
    """Whether an optional package is installed; it is not imported.

    >>> installed("no_such_package")
    False
    """
    return importlib.util.find_spec(package) is not None


def missing(package: str, what: str, extra: str | None = None) -> ImportError:
    """The error that says what to install for a feature."""
    name, own = EXTRAS[package]
    return ImportError(
        f'{what} needs {name}, which is not installed: pip install "chordal[{extra or own}]"',
        name=package,
    )


class needed:
    """Context for imports of an optional package: if it is missing, the error says what to install.

    Parameters
    ----------
    package : str
        The import name.
    what : str
        The feature that needs the package; the message begins with it.
    extra : str, optional
        The extra to recommend; by default the package's name.

    Examples
    --------
    >>> with needed("scipy", "inference 'milp'"):
    ...     raise ModuleNotFoundError("No module named 'scipy'", name="scipy")
    Traceback (most recent call last):
    ImportError: inference 'milp' needs SciPy, ...: pip install "chordal[scikit-learn]"
    """

    def __init__(self, package: str, what: str, extra: str | None = None) -> None:
        self.package, self.what = package, what
        self.extra = extra

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
            raise missing(self.package, self.what, self.extra) from None
