"""No sentence of the documentation is too long to be read once."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "long_sentences.py"


def run(*arguments):
    command = [sys.executable, str(TOOL), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


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
