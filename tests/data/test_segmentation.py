"""Horses: a grid CRF beside the classifier of single pixels."""

import importlib
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
pytestmark = [pytest.mark.data, pytest.mark.slow]


def test_the_grid_beats_single_pixels(require, monkeypatch, tmp_path):
    require("images/weizmann_horses_64.npz")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    scores = importlib.import_module("segmentation").main(tmp_path)
    (accuracy, overlap), (crf_accuracy, crf_overlap) = scores["unary"], scores["grid CRF"]
    assert crf_accuracy > accuracy + 0.004
    assert crf_overlap > overlap + 0.008
    assert (tmp_path / "segmentation.png").read_bytes().startswith(b"\x89PNG")
