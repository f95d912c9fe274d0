"""Horses: a grid CRF beside the classifier of single pixels."""

import pytest

from chordal.experiments import Setup
from chordal.experiments.segmentation import Segmentation

pytest.importorskip("matplotlib")
pytestmark = [pytest.mark.data, pytest.mark.slow]


def test_the_grid_beats_single_pixels(require):
    require("images/weizmann_horses_64.npz")
    rows = {row.what: row.ours for row in Segmentation().run(Setup()).rows}
    for what in ("pixels right", "mean IoU"):
        assert rows[f"{what}, grid"] > rows[f"{what}, pixels alone"] + 0.001
