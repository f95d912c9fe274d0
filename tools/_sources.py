"""The sources that the counters read: each module of the library, parsed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "src" / "chordal"


def modules() -> Iterator[tuple[str, Path, ast.Module]]:
    """The package (or top-level module), the path and the syntax tree of each module."""
    for path in sorted(LIBRARY.rglob("*.py")):
        package = path.relative_to(LIBRARY).parts[0].removesuffix(".py")
        yield package, path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


def table(rows: dict[str, list[str]], head: list[str]) -> None:
    """Print a row per package: its name to the left, the rest to the right."""
    cells = [head, *([name, *values] for name, values in rows.items())]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    for name, *values in cells:
        right = (value.rjust(width) for value, width in zip(values, widths[1:], strict=True))
        print(name.ljust(widths[0]), *right, sep="  ")
