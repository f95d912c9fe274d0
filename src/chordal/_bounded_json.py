"""JSON of files that may be hostile: what it becomes is bounded before it is read.

A byte of JSON may become fifty in memory: lists within lists, keys, small strings. Its brackets,
commas and colons say how many values there are, without reading it.
"""

from __future__ import annotations

import json
from typing import Any

MAX_BYTES = 8_000_000
MAX_LISTS = 100_000  # lists and objects
MAX_NAMES = 200_000  # names of values in objects
MAX_VALUES = 1_000_000


def parsed(text: bytes | str) -> Any:
    """The value of a JSON text; ValueError if it is none, too long, or holds too much.

    >>> parsed(b'{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> parsed("[" + "[]," * 200_000 + "1]")
    Traceback (most recent call last):
    ValueError: it has more than 100000 lists and objects
    """
    check_size(text)
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def check_size(text: bytes | str) -> None:
    """Raise an error for JSON that `parsed` would refuse for its size."""
    if len(text) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES} bytes")
    for marks, most, what in (
        ("[{", MAX_LISTS, "lists and objects"),
        (":", MAX_NAMES, "names"),
        (",", MAX_VALUES, "values"),
    ):
        if _count(text, marks) > most:
            raise ValueError(f"it has more than {most} {what}")


def _count(text: bytes | str, marks: str) -> int:
    """How often any of these characters occurs, in strings too."""
    if isinstance(text, bytes):
        return sum(text.count(mark.encode()) for mark in marks)
    return sum(map(text.count, marks))
