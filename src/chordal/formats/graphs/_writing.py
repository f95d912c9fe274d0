"""Graphs to JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from chordal.formats._files import Place, open_target
from chordal.formats.graphs._reading import Graph


def write_graphs(graphs: Iterable[Graph], target: Place) -> int:
    r"""Write graphs to a path, a binary stream or "-"; returns how many.

    A file is written completely or not at all. See `read_graphs` for the format.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> write_graphs([Graph([["red"], ["blue"]], [(0, 1)], labels=["a", "b"])], file)
    1
    >>> file.getvalue().decode()
    '{"nodes": [["red"], ["blue"]], "edges": [[0, 1]], "labels": ["a", "b"]}\n'
    """
    n = 0
    with open_target(target) as file:
        for n, graph in enumerate(graphs, 1):
            value = {name: _plain(own) for name, own in graph._asdict().items() if own is not None}
            try:
                text = json.dumps(value, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise ValueError(f"cannot write graph {n}: {error}") from None
            file.write(text.encode() + b"\n")
    return n


def _plain(value: Any) -> Any:
    """What JSON can hold: pairs of types are joined by "-"."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {_key(key): _plain(own) for key, own in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [_plain(own) for own in value]
    return value


def _key(key: object) -> str:
    return "-".join(map(str, key)) if isinstance(key, tuple) else str(key)
