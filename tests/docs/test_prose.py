"""No sentence of the documents, docstrings and messages is too long to be read once."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "tools"


def run(*arguments):
    command = [sys.executable, str(TOOLS / "long_sentences.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture
def prose(monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("prose")


def test_sentences_are_short():
    done = run()
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("one " * 31 + ".", True),
        ("one " * 30 + ".", False),
        ("one " * 20 + ". " + "two " * 20 + ".", False),
        ("- " + "one " * 20 + "\n- " + "two " * 20, False),
        ("one " * 20 + "\n" + "two " * 20, True),
        ("```\n" + "one " * 40 + "\n```", False),
        ("| " + "one " * 40 + "|", False),
        ("one `" + "code " * 40 + "` two.", False),
    ],
)
def test_what_counts(tmp_path, text, found):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    assert run(page).returncode == found


def test_docstrings_and_messages_are_plain(prose):
    found = {}
    for package, path, texts in prose.sources(set()):
        for first, text in texts:
            problems = [f"{path}:{line}: {said}" for line, said in prose.findings(text, first)]
            found.setdefault(package, []).extend(problems)
    assert len(found) > 40
    problems = [said for own in found.values() for said in own]
    assert not problems, "\n".join(problems)


LONG = "one " * 31 + "."


@pytest.mark.parametrize(
    ("text", "n"),
    [
        (LONG, 1),
        (f"Short.\n\n    {LONG}", 1),
        (f"The formula is:\n\n        {LONG}\n        {LONG}\n\n    {LONG}", 1),
        (f"The formula is:\n    {LONG}", 1),
        (f"Parameters\n    ----------\n    x : int\n        {LONG}", 1),
        (f"Short.\n\n    >>> f()\n    {LONG}", 0),
        ("A list of so many words.", 1),
        ("There is no file. It is no longer there.", 0),
        ("This is no file.", 1),
    ],
)
def test_what_counts_in_docstrings(prose, text, n):
    assert len(list(prose.findings(text, 1))) == n


def test_strings_of_errors_and_help_are_messages(prose):
    source = """
raise ValueError(f"{x} of so many" if x else "to be had")
refuse("met before")
Option(help="goes on")
print("by itself")
"""
    import ast

    found = {text for _, text in prose.texts(ast.parse(source))}
    assert found == {"{} of so many", "to be had", "met before", "goes on"}
