"""Odd arguments of every picture: each error names the argument, in the library's words."""

import re

import numpy as np
import pytest
from matplotlib import pyplot as plt

from chordal import ChainCRF, CRFClassifier, MultiLabelCRF, regularization_path
from chordal.plots import (
    ConfusionDisplay,
    ConvergenceDisplay,
    DecisionSurfaceDisplay,
    FactorGraphDisplay,
    GridMarginalsDisplay,
    LatticeDisplay,
    LearningCurveDisplay,
    RegularizationPathDisplay,
    ReliabilityDisplay,
    SegmentationDisplay,
    TopFeaturesDisplay,
    TransitionsDisplay,
    as_png,
    class_colours,
    subplots,
)
from chordal.potentials import Potentials
from chordal.structures import Chain

X, Y = [[["a"], ["b"]]], [["x", "y"]]
CHAIN = ChainCRF(max_iter=2).fit(X, Y)
ROWS, SIDES = np.array([[0.0, 1.0], [1.0, 0.0]]), ["x", "y"]
PLANE = CRFClassifier(max_iter=2).fit(ROWS, SIDES)
MANY = MultiLabelCRF(max_iter=2).fit(ROWS, np.eye(2, dtype=int))
PATH = regularization_path(ChainCRF(max_iter=2), X, Y, l2s=[1.0], validation_data=(X, Y))
POTENTIALS = Potentials(Chain([2], 2), np.zeros(4), np.zeros(4))
GRID = tuple(np.meshgrid([0.0, 1.0], [0.0, 1.0]))
HALF = np.full((2, 2, 2), 0.5)
LABELS = ["a", "b"]

PICTURES = {
    "confusion": (ConfusionDisplay, {"counts": np.eye(2, dtype=int), "labels": LABELS}),
    "confusion of labels": (
        ConfusionDisplay.from_predictions,
        {"y_true": Y, "y_pred": Y, "level": "token", "percent": False, "ax": None},
    ),
    "confusion of entities": (
        ConfusionDisplay.from_predictions,
        {"y_true": [["B-A"]], "y_pred": [["B-A"]], "labels": ["A"], "level": "entity"},
    ),
    "confusion, drawn": (
        ConfusionDisplay(np.eye(2, dtype=int), LABELS).plot,
        {"percent": False, "level": "token", "colorbar": True},
    ),
    "convergence": (ConvergenceDisplay, {"reports": {"": CHAIN.fit_report_}}),
    "convergence of an estimator": (
        ConvergenceDisplay.from_estimator,
        {"estimator": CHAIN, "what": "objective", "x": "iteration", "ax": None},
    ),
    "surface": (
        DecisionSurfaceDisplay,
        {"grid": GRID, "probabilities": HALF, "smooth": True, "classes": SIDES}
        | {"X": ROWS, "y": SIDES, "wrong": [True, False], "names": ("p", "q")},
    ),
    "surface of an estimator": (
        DecisionSurfaceDisplay.from_estimator,
        {"estimator": PLANE, "X": ROWS, "y": SIDES, "label": "x"}
        | {"probabilities": True, "resolution": 3, "ax": None},
    ),
    "factor graph": (
        FactorGraphDisplay,
        {"scopes": [(0, 1)], "tables": [0], "names": LABELS, "places": ROWS},
    ),
    "factor graph of potentials": (
        FactorGraphDisplay.from_potentials,
        {"potentials": POTENTIALS, "example": 0, "names": LABELS, "places": ROWS},
    ),
    "image": (
        GridMarginalsDisplay,
        {"marginals": HALF, "labels": LABELS, "predicted": np.eye(2, dtype=int)}
        | {"gold": np.eye(2, dtype=int)},
    ),
    "image, drawn": (GridMarginalsDisplay(HALF, LABELS).plot, {"columns": 2, "ax": None}),
    "lattice": (
        LatticeDisplay,
        {"marginals": HALF[0], "labels": LABELS, "paths": [([0, 1], 0.5)]}
        | {"gold": [0, 1], "tokens": ["s", "t"]},
    ),
    "lattice, drawn": (LatticeDisplay(HALF[0], LABELS).plot, {"colorbar": True, "ax": None}),
    "learning curve": (
        LearningCurveDisplay,
        {"train_sizes": [1, 2], "train_scores": HALF[0], "test_scores": HALF[0]},
    ),
    "path": (
        RegularizationPathDisplay,
        {"parameter": "l2", "values": [1.0, 2.0], "scores": HALF[0], "n_nonzero": [1, 2]},
    ),
    "path of a search": (RegularizationPathDisplay.from_path, {"path": PATH}),
    "reliability": (
        ReliabilityDisplay,
        {"counts": [0, 2], "confidence": [np.nan, 0.5], "accuracy": [np.nan, 0.5]},
    ),
    "reliability of predictions": (
        ReliabilityDisplay.from_predictions,
        {"y_true": [LABELS], "marginals": [HALF[0]], "classes": LABELS, "label": "a"},
    ),
    "segments": (SegmentationDisplay, {"strips": {"gold": LABELS}, "labels": LABELS}),
    "segments, drawn": (SegmentationDisplay({"": LABELS}).plot, {"legend": True, "ax": None}),
    "features": (TopFeaturesDisplay, {"features": {"x": [("f", 1.0)]}}),
    "features of an estimator": (
        TopFeaturesDisplay.from_estimator,
        {"estimator": PLANE, "top": 2, "labels": SIDES, "feature_names": LABELS},
    ),
    "transitions": (TransitionsDisplay, {"weights": ROWS, "labels": LABELS, "columns": LABELS}),
    "colours": (class_colours, {"n": 2}),
    "figure": (subplots, {"n_rows": 1, "n_columns": 1, "size": (2.0, 2.0)}),
}
ODD = ["text", 1.5, np.zeros(0), np.full((3, 3), np.nan), [[1, 2], [3]], {1, 2}, {"k": [1]}, [None]]
RAW = re.compile(
    r"object is not|has no attribute|unpack|ambiguous|broadcast|boolean index|float\(\)|len\(\)"
)


def complaint(draw, given):
    """What the error says; None if there is none."""
    try:
        draw(**given)
    except (TypeError, ValueError) as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("picture", "argument"), [(name, own) for name, (_, given) in PICTURES.items() for own in given]
)
def test_odd_arguments(picture, argument):
    draw, given = PICTURES[picture]
    assert complaint(draw, given) is None
    said = complaint(draw, {**given, argument: object()})
    assert re.search(rf"\b{argument}\b|^labels ", said)
    texts = [said, *(complaint(draw, {**given, argument: odd}) for odd in ODD)]
    assert not [text for text in texts if text is not None and RAW.search(text)]
    assert texts.count(None) <= 4


@pytest.mark.parametrize("estimator", [None, 3, "x", ChainCRF(), CRFClassifier()], ids=str)
@pytest.mark.parametrize(
    ("display", "given"),
    [
        (ConfusionDisplay, {"X": X, "y": Y}),
        (ConvergenceDisplay, {}),
        (DecisionSurfaceDisplay, {"X": ROWS, "y": SIDES}),
        (FactorGraphDisplay, {"x": X[0]}),
        (GridMarginalsDisplay, {"x": X[0]}),
        (LatticeDisplay, {"x": X[0]}),
        (RegularizationPathDisplay, {}),
        (ReliabilityDisplay, {"X": X, "y": Y}),
        (SegmentationDisplay, {"x": X[0], "y": Y[0]}),
        (TopFeaturesDisplay, {}),
        (TransitionsDisplay, {}),
    ],
)
def test_what_is_no_fitted_estimator(display, given, estimator):
    words = "not fitted yet" if hasattr(estimator, "fit") else "must be a fitted estimator, got"
    with pytest.raises((TypeError, ValueError), match=words):
        display.from_estimator(estimator, **given)


def test_estimators_that_cannot_be_drawn_so():
    with pytest.raises(TypeError, match="CRFClassifier has no best_params_, which this picture"):
        RegularizationPathDisplay.from_estimator(PLANE)
    with pytest.raises(ValueError, match=r"what the estimator predicts must be \[2\], got shape"):
        DecisionSurfaceDisplay.from_estimator(MANY, ROWS, [0, 1])


@pytest.mark.parametrize("wrong", [-0.5, 2.0, np.nan, np.inf])
def test_what_is_no_probability(wrong):
    for draw in (
        lambda: LatticeDisplay([[0.5, wrong]], LABELS),
        lambda: LatticeDisplay([[0.5, 0.5]], LABELS, [([0], wrong)]),
        lambda: GridMarginalsDisplay([[[0.5, wrong]]], LABELS),
        lambda: ReliabilityDisplay.from_predictions([["a"]], [[[0.5, wrong]]], LABELS),
        lambda: ReliabilityDisplay([1], [wrong], [0.5]),
    ):
        with pytest.raises(ValueError, match=r"must be (probabilities from 0|finite numbers)"):
            draw()


def test_figures_that_are_none():
    for figure in (None, "figure.png", plt.subplots()[1]):
        with pytest.raises(TypeError, match="figure must be a matplotlib Figure, got"):
            as_png(figure)
    with pytest.raises(ValueError, match="dpi must be a number above 0"):
        as_png(plt.figure(), dpi=-1)
    with pytest.raises(TypeError, match="ax must be matplotlib axes or None, got ndarray; give"):
        LatticeDisplay([[0.5, 0.5]], LABELS).plot(ax=plt.subplots(1, 2)[1])
