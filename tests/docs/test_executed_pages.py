"""What the site makes of a page that asks to be executed."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("sphinx")
pytest.importorskip("yaml")
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def extension(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_extensions"))
    yield importlib.import_module("executed_pages")
    sys.modules.pop("executed_pages")


def read(extension, text, name="guide/page"):
    env = SimpleNamespace(doc2path=lambda n: str(DOCS / f"{n}.md"), note_dependency=print)
    source = [text]
    extension.read(SimpleNamespace(env=env, srcdir=str(DOCS)), name, source)
    return source[0]


def test_python_becomes_a_cell_and_shell_is_run(extension):
    page = (
        "---\nexecuted: true\n---\n# T\n\n```python\n1\n```\n\n```sh\nls\n```\n\n```text\nno\n```\n"
    )
    made = read(extension, page)
    assert made.startswith("---\nfile_format: mystnb\n")
    assert "```{code-cell} python\n1\n```" in made
    assert "```sh\nls\n```" in made
    assert "'bash'" in made.replace('"', "'")
    assert "```text\nno\n```" in made


def test_other_pages_stay_as_they_are(extension):
    page = "---\nneeds: [numpy]\n---\n# T\n\n```python\n1\n```\n"
    assert read(extension, page) == page


def test_without_a_package_the_page_says_so_and_is_not_run(extension):
    page = "---\nexecuted: true\nneeds: [numpy, no_such_package]\n---\n# T\n\n```python\n1\n```\n"
    made = read(extension, page)
    assert "Built without no_such_package: nothing here was run." in made
    assert "code-cell" not in made


def test_links_to_documents_outside_stay_within_the_site(extension):
    made = read(
        extension, "[a](../../benchmarks/README.md#x) [b](https://example.org) [c](choose.md)"
    )
    assert made == "[a](/project/benchmarks.md#x) [b](https://example.org) [c](choose.md)"
    copied = read(extension, "", "project/changes")
    assert copied.startswith("# Changes")
    assert "](docs/" not in copied


def test_two_blocks_side_by_side(extension):
    made = read(extension, "```sh before\nold\n```\n\n```python\nnew\n```\n")
    assert made.count("grid-item") == 2
    assert "```sh\nold\n```" in made
    assert "```python\nnew\n```" in made


def test_blocks_with_words_between_stay_below_each_other(extension):
    page = "```python before\nold\n```\n\nThen:\n\n```python\na\n```\n\n```python\nb\n```\n"
    assert read(extension, page) == page
