"""Pictures show what they say: read back from what was drawn."""

import subprocess
import sys
from io import BytesIO

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC

from chordal import ChainCRF, CRFClassifier, plots
from chordal.datasets import make_curved_classes, make_masked_classes
from chordal.plots._style import COLOURS, INK


@pytest.fixture(autouse=True)
def close_figures():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def drawn(ax):
    ax.figure.canvas.draw()
    return np.asarray(ax.figure.canvas.buffer_rgba())


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
    ax = plots.decision_surface(model, X, y, resolution=80)
    drawn(ax)
    p = np.sort(model.predict_proba(borders(ax)), axis=1)
    assert len(p) > 50
    # A line of the grid is straight between points; three classes meet at corners.
    np.testing.assert_allclose(p[:, -1] - p[:, -2], 0.0, atol=0.05)


def test_colours_and_points():
    X, y = make_masked_classes(90)
    model = CRFClassifier().fit(X, y)
    ax = plots.decision_surface(model, X, y, resolution=30)
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
    ax = plots.decision_surface(model, X, names, label="b", resolution=30)
    top = [ax.get_xlim()[1], ax.get_ylim()[1]]
    p = model.predict_proba([top])[0, 1]
    expected = 1.0 - 0.75 * p + 0.75 * p * np.array(to_rgb(COLOURS[1]))
    np.testing.assert_allclose(ax.images[0].get_array()[-1, -1], expected, atol=1e-9)
    drawn(ax)


def test_a_classifier_without_probabilities():
    X, y = make_masked_classes(60)
    ax = plots.decision_surface(LinearSVC().fit(X, y), X, y, resolution=40)
    assert len(np.unique(np.asarray(ax.images[0].get_array()).reshape(-1, 3), axis=0)) <= 3
    drawn(ax)


def test_many_classes():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 10
    drawn(plots.decision_surface(CRFClassifier().fit(X, y), X, y, resolution=20))


def test_convergence():
    X, y = load_iris(return_X_y=True)
    fits = {s: CRFClassifier(solver=s, random_state=0).fit(X, y) for s in ("lbfgs", "sgd")}
    reports = {name: fit.fit_report_ for name, fit in fits.items()}
    ax = plots.convergence(reports)
    best = min(min(r.history) for r in reports.values())
    for line, (name, report) in zip(ax.lines, reports.items(), strict=True):
        assert line.get_label() == name
        values = np.array(report.history) - best
        np.testing.assert_array_equal(line.get_ydata()[values > 0], values[values > 0])
        assert np.isnan(line.get_ydata()[values == 0]).all()
    assert ax.get_yscale() == "log"
    drawn(ax)
    drawn(plots.convergence(reports["lbfgs"]))


def test_convergence_of_what_a_solver_reports():
    report = CRFClassifier().fit([[0.0], [1.0]], [0, 1]).fit_report_
    report.details["gap"] = [4.0, 2.0, 1.0]
    ax = plots.convergence(report, what="gap")
    assert ax.lines[0].get_ydata().tolist() == [4.0, 2.0, 1.0]
    assert ax.get_ylabel() == "gap"


@pytest.fixture
def crf():
    X = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"]]]
    return ChainCRF().fit(X, [["D", "N", "V"], ["D", "N"]])


def test_transitions(crf):
    ax = plots.transitions(crf)
    np.testing.assert_array_equal(ax.images[0].get_array(), crf.transitions_)
    low, high = ax.images[0].get_clim()
    assert -low == high == np.abs(crf.transitions_).max()
    assert [t.get_text() for t in ax.get_xticklabels()] == ["D", "N", "V"]
    texts = [t.get_text() for t in ax.texts]
    assert texts[1] == f"{crf.transitions_[0, 1]:.1f}"
    assert texts[0] == ""
    drawn(ax)


def test_confusion():
    ax = plots.confusion([["a", "b"], ["b"]], [["a", "b"], ["a"]])
    np.testing.assert_array_equal(ax.images[0].get_array(), [[1.0, 0.0], [0.5, 0.5]])
    assert [t.get_text() for t in ax.texts] == ["1", "", "1", "1"]
    flat = plots.confusion(np.array([0, 1, 1]), np.array([0, 1, 0]), labels=[1, 0])
    np.testing.assert_array_equal(flat.images[0].get_array(), [[0.5, 0.5], [0.0, 1.0]])
    drawn(ax)


def test_confusion_in_percent():
    ax = plots.confusion(["a"] * 200, ["a"] * 197 + ["b"] * 3, labels=["a", "b"], percent=True)
    assert [t.get_text() for t in ax.texts] == ["98", "2", "", ""]
    assert ax.images[0].norm(0.25) == 0.5  # rare mistakes are seen
    drawn(ax)


def test_pairs_of_two_kinds():
    ax = plots.label_pairs([[1.0, -np.inf, 0.0]], ["row"], ["a", "b", "c"])
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "b", "c"]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["row"]
    assert [t.get_text() for t in ax.texts] == ["1.0", "−∞", ""]
    drawn(ax)


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


def test_axes_are_those_given(crf):
    _, axes = plt.subplots(1, 3)
    X, y = make_masked_classes(30)
    model = CRFClassifier().fit(X, y)
    assert plots.decision_surface(model, X, y, ax=axes[0], resolution=5) is axes[0]
    assert plots.convergence(model.fit_report_, ax=axes[1]) is axes[1]
    assert plots.transitions(crf, ax=axes[2]) is axes[2]


def test_bad_input():
    X, y = make_masked_classes(30)
    model = CRFClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"X must be points of the plane, .* got shape \(30, 3\)"):
        plots.decision_surface(model, np.zeros((30, 3)), y)
    with pytest.raises(ValueError, match="label must be one of the classes"):
        plots.decision_surface(model, X, y, label="blue")
    with pytest.raises(ValueError, match="resolution must be an integer of at least 2"):
        plots.decision_surface(model, X, y, resolution=1)
    with pytest.raises(ValueError, match="has no 'gap'; there are: 'objective'"):
        plots.convergence({"a": model.fit_report_}, what="gap")
    with pytest.raises(TypeError, match="must be a FitReport or a dict of them"):
        plots.convergence(model)
    with pytest.raises(ValueError, match="reports is empty"):
        plots.convergence({})


def test_without_matplotlib_it_is_said_what_to_install():
    code = "import sys; sys.modules['matplotlib'] = None; import chordal.plots"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode != 0
    assert 'pip install "chordal[plots]"' in run.stderr
