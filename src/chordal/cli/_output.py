"""What commands print: JSON for machines, tables for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite, isnan
from typing import Any

from chordal._shown import in_a_line, shown
from chordal.progress import say_line


def print_json(value: object) -> None:
    """One JSON value on standard output; numbers that JSON has not, such as NaN, are null."""
    print(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: Any) -> object:
    if hasattr(value, "tolist"):  # NumPy's
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: _plain(own) for name, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(own) for own in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table: the first column is text, numbers stand to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    listed = [list(row) for row in rows]
    for k, name in enumerate(head):
        numeric = bool(listed) and not any(isinstance(row[k], str) for row in listed)
        table.add_column(
            Text(in_a_line(name)), justify="right" if numeric else "left", overflow="fold"
        )
    for row in listed:
        table.add_row(*(Text(in_a_line(_cell(value))) for value in row))
    # What is read by a program must not be cut to the width of a terminal that is not there.
    width = None if sys.stdout.isatty() else 10_000
    say(in_a_line(title))  # a table's own title is broken at its width
    Console(width=width, highlight=False).print(table)


def print_facts(facts: Mapping[str, Any], indent: str = "") -> None:
    """Names and values, one pair per line."""
    named = {in_a_line(name.replace("_", " ")): value for name, value in facts.items()}
    width = max(map(len, named), default=0)
    for name, value in named.items():
        say(f"{indent}{name:<{width}}  {in_a_line(_cell(value))}")


def say(text: object = "") -> None:
    """Lines on standard output, as a terminal may show them."""
    print(shown(str(text)))


def note(text: str) -> None:
    """A line on standard error."""
    say_line(in_a_line(text))


def _cell(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no"}.get(value, "-") if value is not None else "-"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if isnan(value):
            return "-"
        return f"{value:.4f}" if 1e-3 <= abs(value) < 1e5 or value == 0 else f"{value:.6g}"
    return str(value)
