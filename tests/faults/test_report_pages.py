"""Pages that are written run no scripts, whatever text is in them."""

from pathlib import Path

import pytest

import chordal

PLACES = [
    Path(chordal.__file__).parent / "experiments" / "page.html",
    Path(__file__).parents[2] / "examples" / "_digit_dates.html",
]


@pytest.mark.parametrize("page", PLACES, ids=lambda path: path.name)
def test_no_scripts(page):
    text = page.read_text()
    policy = text.split('<meta http-equiv="Content-Security-Policy" content="')[1].split('"')[0]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert "script-src" not in rules
    assert "<script" not in text
    assert text.index("http-equiv") < text.index("<style")
