"""How a classifier divides the plane, and what all pictures share."""

import subprocess
import sys
from io import BytesIO

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from sklearn.svm import LinearSVC

from chordal import CRFClassifier, plots
from chordal.datasets import make_curved_classes, make_masked_classes
from chordal.plots._style import COLOURS, INK

from .conftest import drawn, is_inside


def borders(ax):
    """Points of the thick lines."""
    return np.concatenate(
        [
            path.vertices
            for lines in ax.collections
            if len(np.atleast_1d(lines.get_linewidth())) and np.max(lines.get_linewidth()) == 1.2
            for path in lines.get_paths()
            if len(path.vertices)
        ]
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_borders_are_where_two_classes_are_equal(n_classes):
    X, y = make_curved_classes(100, n_classes)
    model = CRFClassifier().fit(X, y)
    ax = plots.DecisionSurfaceDisplay.from_estimator(model, X, y, resolution=80).ax_
    drawn(ax)
    p = np.sort(model.predict_proba(borders(ax)), axis=1)
    assert len(p) > 50
    # A line of the grid is straight between points; three classes meet at corners.
    np.testing.assert_allclose(p[:, -1] - p[:, -2], 0.0, atol=0.05)


def test_colours_and_points():
    X, y = make_masked_classes(90)
    model = CRFClassifier().fit(X, y)
    ax = plots.DecisionSurfaceDisplay.from_estimator(model, X, y, resolution=30).ax_
    image = ax.images[0].get_array()
    corner = [ax.get_xlim()[0], ax.get_ylim()[0]]
    light = 0.45 * np.array([to_rgb(c) for c in COLOURS[:3]]) + 0.55
    np.testing.assert_allclose(image[0, 0], model.predict_proba([corner])[0] @ light, atol=1e-9)
    scatters = [c for c in ax.collections if len(c.get_offsets()) == 30]
    assert len(scatters) == 3
    for k, points in enumerate(scatters):
        np.testing.assert_array_equal(points.get_offsets(), X[y == k])
        dark = (points.get_edgecolors()[:, :3] == to_rgb(INK)).all(axis=1)
        assert (dark == (model.predict(X[y == k]) != k)).all()
    assert drawn(ax).std() > 0


def test_one_class_alone():
    X, y = make_curved_classes(60, 3)
    names = np.array(["a", "b", "c"])[y]
    model = CRFClassifier().fit(X, names)
    ax = plots.DecisionSurfaceDisplay.from_estimator(model, X, names, label="b", resolution=30).ax_
    top = [ax.get_xlim()[1], ax.get_ylim()[1]]
    p = model.predict_proba([top])[0, 1]
    expected = 1.0 - 0.75 * p + 0.75 * p * np.array(to_rgb(COLOURS[1]))
    np.testing.assert_allclose(ax.images[0].get_array()[-1, -1], expected, atol=1e-9)
    drawn(ax)


def test_axes_and_classes_are_named():
    pd = pytest.importorskip("pandas")
    X, y = make_masked_classes(30)
    names = np.array(["a", "b", "c"])[y]
    model = CRFClassifier().fit(X, names)
    ax = plots.DecisionSurfaceDisplay.from_estimator(model, X, names, resolution=10).ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x0", "x1")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "c"]
    frame = pd.DataFrame(X, columns=["width", "height"])
    _, given = plt.subplots()
    plots.DecisionSurfaceDisplay.from_estimator(model, frame, names, resolution=10, ax=given)
    assert (given.get_xlabel(), given.get_ylabel()) == ("width", "height")
    assert given.get_legend() is None


def test_a_classifier_without_probabilities():
    X, y = make_masked_classes(60)
    ax = plots.DecisionSurfaceDisplay.from_estimator(LinearSVC().fit(X, y), X, y, resolution=40).ax_
    assert len(np.unique(np.asarray(ax.images[0].get_array()).reshape(-1, 3), axis=0)) <= 3
    drawn(ax)


def test_many_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 10
    model = CRFClassifier().fit(X, y)
    drawn(plots.DecisionSurfaceDisplay.from_estimator(model, X, y, resolution=20).ax_)


def test_a_palette_makes_small_files_of_the_same_picture():
    sizes = {}
    for colours in (None, 64):
        figure, ax = plots.subplots()
        ax.plot([0, 1], label="a line")
        ax.legend()
        png = plots.as_png(figure, colours=colours)
        sizes[colours] = len(png)
        image = plt.imread(BytesIO(png))[..., :3]
        if colours is None:
            whole = image
    assert sizes[64] < 0.6 * sizes[None]
    assert len(np.unique(image.reshape(-1, 3), axis=0)) <= 64
    np.testing.assert_allclose(image, whole, atol=0.1)


def test_bad_input():
    X, y = make_masked_classes(30)
    model = CRFClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"X must be points of the plane, .* got shape \(30, 3\)"):
        plots.DecisionSurfaceDisplay.from_estimator(model, np.zeros((30, 3)), y)
    with pytest.raises(ValueError, match="label must be one of the classes"):
        plots.DecisionSurfaceDisplay.from_estimator(model, X, y, label="blue")
    with pytest.raises(ValueError, match="resolution must be an integer of at least 2"):
        plots.DecisionSurfaceDisplay.from_estimator(model, X, y, resolution=1)


def test_without_matplotlib_it_is_said_what_to_install():
    code = "import sys; sys.modules['matplotlib'] = None; import chordal.plots"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode != 0
    assert 'pip install "chordal[plots]"' in run.stderr


def test_drawing_again_and_elsewhere():
    X, y = make_masked_classes(30)
    _, ax = plt.subplots()
    model = CRFClassifier().fit(X, y)
    display = plots.DecisionSurfaceDisplay.from_estimator(model, X, y, resolution=5, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    again = display.plot(label=display.classes[0])
    assert again is display
    assert display.ax_ is not ax
    np.testing.assert_array_equal(display.wrong, model.predict(X) != y)


def test_every_display_refuses_what_is_not_fitted():
    from chordal import ChainCRF, ChainCRFCV, GridCRF

    chain = ([[["a"]]], [["A"]])
    calls = [
        lambda: plots.TransitionsDisplay.from_estimator(ChainCRF()),
        lambda: plots.TopFeaturesDisplay.from_estimator(ChainCRF()),
        lambda: plots.LatticeDisplay.from_estimator(ChainCRF(), [["a"]]),
        lambda: plots.ConfusionDisplay.from_estimator(ChainCRF(), *chain),
        lambda: plots.ReliabilityDisplay.from_estimator(ChainCRF(), *chain),
        lambda: plots.SegmentationDisplay.from_estimator(ChainCRF(), [["a"]], ["A"]),
        lambda: plots.ConvergenceDisplay.from_estimator(ChainCRF()),
        lambda: plots.RegularizationPathDisplay.from_estimator(ChainCRFCV()),
        lambda: plots.GridMarginalsDisplay.from_estimator(GridCRF(), np.zeros((2, 2, 1))),
        lambda: plots.FactorGraphDisplay.from_estimator(ChainCRF(), [["a"]]),
        lambda: plots.DecisionSurfaceDisplay.from_estimator(CRFClassifier(), [[0, 1]], [0]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="not fitted"):
            call()


def test_classes_of_long_names_and_unseen_ones_are_shown():
    X, y = make_masked_classes()
    names = np.array([f"a very long name of a class, {k}" for k in range(6)])
    crf = CRFClassifier().fit(X, names[np.arange(len(X)) % 6])
    gold = np.where(y == 0, "new", names[0])
    ax = plots.DecisionSurfaceDisplay.from_estimator(crf, X, gold).ax_
    drawn(ax)
    assert is_inside(ax.get_legend(), ax)
    assert ax.get_legend().get_texts()[-1].get_text() == "other classes"
    assert len(ax.collections[-1].get_offsets()) == (y == 0).sum()
    assert ax.get_window_extent().width > 0.7 * ax.figure.bbox.width
