"""Where data files lie: where the caller says, or in the folder that CHORDAL_DATA names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def found(path: Any, folder: str, names: Sequence[str], source: str) -> Path:
    """The first of these files that is there.

    Parameters
    ----------
    path : str, Path or None
        A file, or a folder that holds one of `names`; None: the folder $CHORDAL_DATA/`folder`.
    source : str
        Where the file comes from, for the message when there is none.
    """
    root = os.environ.get("CHORDAL_DATA")
    if path is not None:
        place = Path(path)
        if place.is_file():
            return place
    elif root:
        place = Path(root) / folder
    else:
        raise FileNotFoundError(
            f"there is no data: put {_either(names)} ({source}) into a folder {folder!r}, and name "
            "the folder that holds it in the environment variable CHORDAL_DATA, or give path"
        )
    for name in names:
        if (place / name).exists():
            return place / name
    raise FileNotFoundError(f"there is no {_either(names)} in {place}: put it there ({source})")


def _either(names: Sequence[str]) -> str:
    return " or ".join(names)
