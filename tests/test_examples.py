"""The examples run, and show what they say they show."""

import base64
import importlib
import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def digit_dates(monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.syspath_prepend(EXAMPLES)
    module = importlib.import_module("digit_dates")
    monkeypatch.setattr(module, "STRENGTHS", (1.0,))  # the choice takes most of the time
    return module


@pytest.fixture
def decision_surfaces(monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("decision_surfaces")


def test_decision_surfaces(decision_surfaces, tmp_path, capsys):
    scores = decision_surfaces.main(tmp_path / "report")
    assert list(scores) == [title for title, _, _ in decision_surfaces.PICTURES]
    likelihood, squared = scores.pop("Linear, likelihood"), scores.pop("Linear, squared error")
    assert likelihood > 0.98
    assert squared < 0.85
    assert min(scores.values()) > 0.92  # curved borders
    picture = (tmp_path / "report" / "decision_surfaces.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    printed = capsys.readouterr().out
    assert f"{squared:.3f}" in printed
    assert "decision_surfaces.png" in printed


def test_digit_dates(digit_dates, tmp_path, capsys):
    picture = tmp_path / "overview.png"
    readings = digit_dates.main(tmp_path / "report", n_train=120, n_test=300, picture=picture)

    hamming = {reading.name: reading.hamming for reading in readings}
    zero_one = {reading.name: reading.zero_one for reading in readings}
    assert list(zero_one) == list(digit_dates.MODELS)
    assert hamming["CRF, full"] > hamming["CRF, unary only"]
    assert zero_one["CRF, full"] > max(zero_one[name] for name in list(zero_one)[:-1]) + 0.03

    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    for name in digit_dates.MODELS:
        assert f"{name}<td>1<td>{hamming[name]:.3f}<td>{zero_one[name]:.3f}" in page
    pictures = re.findall(r'"data:image/png;base64,([^"]+)"', page)
    assert len(pictures) == 2 * len(re.findall("<picture>", page)) > 20  # light and dark
    signature = b"\x89PNG\r\n\x1a\n"
    assert all(base64.b64decode(text).startswith(signature) for text in pictures)
    assert picture.read_bytes().startswith(signature)
    assert not re.search(r'(src|href)(set)?="(?!data:)', page)  # the page needs no other file

    printed = capsys.readouterr().out
    assert "Average Hamming" in printed
    assert str(tmp_path / "report" / "index.html") in printed
    assert "\x1b" not in printed  # plain lines where output is no terminal


def test_digit_dates_as_make_demo_runs_it(monkeypatch, tmp_path):
    """With its own sizes and settings, and without a warning: warnings are errors here."""
    monkeypatch.syspath_prepend(EXAMPLES)
    readings = importlib.import_module("digit_dates").main(tmp_path)
    assert round(readings[-1].hamming, 3) == 0.943
    assert round(readings[-1].zero_one, 3) == 0.625
