"""Images: grids and graphs beside classifiers of single pixels and superpixels."""

import pytest

from chordal.experiments import Setup, grabcut, superpixels
from chordal.experiments.grabcut import GrabCut
from chordal.experiments.segmentation import Segmentation
from chordal.experiments.superpixels import Superpixels

pytest.importorskip("matplotlib")
pytestmark = [pytest.mark.data, pytest.mark.slow]


def rows_of(experiment):
    return {row.what: row.ours for row in experiment.run(Setup()).rows}


def test_horses(require):
    require("images/weizmann_horses_64.npz")
    rows = rows_of(Segmentation())
    for what, gain in (("pixels right", 0.003), ("mean IoU", 0.005)):
        assert rows[f"{what}, grid"] > rows[f"{what}, pixels alone"] + gain


def test_msrc(require, monkeypatch):
    """With fewer strengths to choose from than the experiment has."""
    require("images/msrc_v2_superpixels.npz")
    monkeypatch.setattr(superpixels, "TRIED", [(0.2, 0.8), (0.0, 1.0), (0.1, 0.6)])
    rows = rows_of(Superpixels())
    for features, right, iou in (("own features", 0.06, 0.10), ("surroundings", 0.01, 0.02)):
        for what, gain in (("pixels right", right), ("mean IoU", iou)):
            assert rows[f"{what}, {features}: graph"] > rows[f"{what}, {features}: alone"] + gain


def test_grabcut(require, monkeypatch):
    require("images/grabcut_96.npz")
    monkeypatch.setattr(grabcut, "STRENGTHS", (2.5, 5.0))
    rows = rows_of(GrabCut())
    for what, gain in (("pixels right", 0.02), ("mean IoU", 0.04)):
        assert rows[f"{what}, grid"] > rows[f"{what}, colours alone"] + gain
    what = "error rate inside the rectangle"
    assert rows[f"{what}, grid"] < 0.7 * rows[f"{what}, colours alone"]
