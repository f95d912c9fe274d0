"""Lines of JSON as values, with errors that say where."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar

from chordal._errors import FormatError
from chordal.formats._files import Place, name_of
from chordal.formats._lines import read_lines

T = TypeVar("T")


def read_values(source: Place, convert: Callable[[object], T]) -> Iterator[T]:
    """What `convert` makes of the value of each line; blank lines are skipped.

    `convert` raises ValueError for a value that it cannot take.
    """
    name = name_of(source)
    for number, line in read_lines(source):
        if not line.strip(" \t"):
            continue
        try:
            yield convert(_parsed(line))
        except json.JSONDecodeError as error:
            column = len(line[: error.pos].encode(errors="replace")) + 1
            what = f"not JSON: {error.msg}"
            raise FormatError(name, what, line=number, column=column) from None
        except (ValueError, RecursionError) as error:
            deep = isinstance(error, RecursionError)
            what = "JSON that is nested too deeply" if deep else str(error)
            raise FormatError(name, what, line=number) from None


def _parsed(line: str) -> object:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"numbers must be finite, got {constant}")

    return json.loads(line, parse_constant=refuse)


def word_of(value: object) -> str:
    """JSON's word for a type."""
    words = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}
    return "null" if value is None else words.get(type(value), "a number")
