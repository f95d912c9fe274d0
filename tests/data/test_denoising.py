"""Denoising as in UGM's demonstrations and in Kumar and Hebert (2003)."""

import importlib
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
pytestmark = [pytest.mark.data, pytest.mark.slow]


def test_errors_fall_by_more_than_half(require, monkeypatch, tmp_path):
    """X: 0.158 by threshold, about 0.03 by the CRF."""
    require("images/ugm_X.npz")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    errors = importlib.import_module("denoising").main(tmp_path)
    assert list(errors) == ["X, Gaussian", "shapes, Gaussian", "shapes, bimodal"]
    for by_method in errors.values():
        assert by_method["grid CRF"] < 0.5 * by_method["threshold"]
        assert by_method["grid CRF"] < 0.5 * by_method["logistic"]
    assert (tmp_path / "denoising.png").read_bytes().startswith(b"\x89PNG")
