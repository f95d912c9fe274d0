"""The pages of the site and their code blocks, for the tests of this folder."""

import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
MADE = ("docs/_build/", "docs/reference/api/", "docs/reference/commands/")
#: Documents outside of docs/ that are pages of the site.
OUTSIDE = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "benchmarks/README.md")
DOCUMENTS = [
    name
    for path in [*(ROOT / name for name in OUTSIDE), *sorted((ROOT / "docs").rglob("*.md"))]
    if not (name := path.relative_to(ROOT).as_posix()).startswith(MADE)
]
HEAD = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A code block: its language, the words after the language, and the code."""

    language: str
    words: tuple[str, ...]
    source: str

    @property
    def of_another_tool(self):
        return "before" in self.words


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name):
    for info, source in FENCE.findall(text_of(name)):
        language, *words = info.split() or [""]
        yield Block(language, tuple(words), source)


def says(name):
    """What a page says of itself at its top."""
    head = HEAD.match(text_of(name))
    return head[1] if head else ""


def skip_without(packages):
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")


def needs(name):
    """The packages that a page's own code imports besides chordal's dependencies."""
    return re.findall(r"\w+", says(name).partition("needs:")[2].partition("\n")[0])


def is_executed(name):
    """Whether the page is run when the site is built."""
    return "executed: true" in says(name)


def environment(*folders):
    """Settings for programs of pages: this Python's packages and programs come first."""
    path = [*folders, Path(sys.executable).parent, os.environ["PATH"]]
    return {
        **os.environ,
        "PATH": os.pathsep.join(map(str, path)),
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "NO_COLOR": "1",
    }
