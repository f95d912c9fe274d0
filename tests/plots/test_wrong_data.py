"""Pictures of what cannot be drawn: errors that say so."""

import numpy as np
import pytest

from chordal import ChainCRF, CRFClassifier
from chordal.plots import (
    ConfusionDisplay,
    DecisionSurfaceDisplay,
    FactorGraphDisplay,
    ReliabilityDisplay,
    SegmentationDisplay,
)

WORDS = ChainCRF(max_iter=2).fit([[{"w": "a"}, {"w": "b"}]], [["x", "y"]])
PLANE = CRFClassifier(max_iter=2).fit(np.eye(2), ["x", "y"])


def test_labels_of_several_sequences():
    for y in ([["x"], ["y", "x"]], [{"x"}], [["x", ["y"]]]):
        with pytest.raises(ValueError, match="must be the labels of one sequence"):
            SegmentationDisplay.from_predictions(y, ["x"])
        with pytest.raises(ValueError, match="y must be the labels of one sequence"):
            SegmentationDisplay.from_estimator(WORDS, [{"w": "a"}], y)


def test_points_that_are_none():
    with pytest.raises(ValueError, match="must be points of the plane"):
        DecisionSurfaceDisplay.from_estimator(PLANE, [[1.0, 2.0], []], ["x", "y"])


@pytest.mark.parametrize("potentials", [None, [], np.zeros(3)])
def test_what_is_no_potentials(potentials):
    with pytest.raises(TypeError, match="must be chordal"):
        FactorGraphDisplay.from_potentials(potentials)


def test_labels_that_are_no_list():
    for y in (None, 3, "xy"):
        with pytest.raises(TypeError, match="labels must be a list of them, or of sequences"):
            ConfusionDisplay.from_predictions(y, y)


def test_lists_where_labels_should_be():
    with pytest.raises(ValueError, match=r"y must have one label per position, got \['y', 'z'\]"):
        ReliabilityDisplay.from_predictions([["x", ["y", "z"]]], np.eye(2), ["x", "y"])
