"""The table of equations names functions that can be imported and tests that exist."""

import ast
import functools
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/mathematics/equations.md"
ROW = re.compile(
    r"^\| (.+) \| `(chordal[\w.]+)` \| `(tests/[\w/.]+)::(\w+)` \| \[.+\]\(\w+\.md\) \|$"
)
ROWS = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
ENTRIES = [row for row in ROWS if not row.startswith(("| equation", "| ---"))]


@functools.cache
def definitions(path):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def found(path):
    """The object of a dotted path: as much of it as is a module, then attributes."""
    parts = path.split(".")
    for n in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError as error:
            if not error.name or not error.name.startswith("chordal"):
                raise
            continue
        return functools.reduce(getattr, parts[n:], thing)
    raise AssertionError(path)


def test_every_text_has_its_table():
    text = PAGE.read_text(encoding="utf-8")
    assert len(re.findall("^## ", text, re.MULTILINE)) == 5
    assert len(ENTRIES) > 100


@pytest.mark.parametrize("row", ENTRIES)
def test_a_row(row):
    match = ROW.match(row)
    assert match, "a row has an equation, a function, a test and a page"
    _, function, path, name = match.groups()
    if function.startswith("chordal.torch"):
        pytest.importorskip("torch")
    assert found(function) is not None
    assert name in definitions(path), f"{path} has no test {name}"
