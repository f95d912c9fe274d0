"""Pictures of images and of factor graphs."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from chordal import GridCRF
from chordal.plots import FactorGraphDisplay, GridMarginalsDisplay, class_colours
from chordal.plots._graph_layout import places_of
from chordal.potentials import Potentials
from chordal.structures import FactorGraph

from .conftest import drawn, enumerated, texts


@pytest.fixture(scope="module")
def grid():
    rng = np.random.default_rng(0)
    y = [np.repeat([[0, 0, 1, 1]], 3, axis=0) for _ in range(5)]
    X = [image[..., None] + rng.normal(size=(3, 4, 1)) for image in y]
    return GridCRF(l2=0.1).fit(X, y), X, y


def test_images_are_the_marginals_by_enumeration(grid):
    model, X, y = grid
    display = GridMarginalsDisplay.from_estimator(model, X[0], y[0])
    assert [ax.get_title() for ax in display.axes_] == ["gold", "predicted", "P(0)", "P(1)"]
    labellings, p = enumerated(model.potentials(X[:1]))
    one = np.array([p[labellings[:, v] == 1].sum() for v in range(12)]).reshape(3, 4)
    shown = [ax.images[0] for ax in display.axes_]
    np.testing.assert_allclose(shown[3].get_array(), one, atol=1e-10)
    np.testing.assert_allclose(shown[2].get_array(), 1.0 - one, atol=1e-10)
    assert shown[2].get_clim() == (0.0, 1.0)
    np.testing.assert_array_equal(shown[0].get_array(), y[0])
    np.testing.assert_array_equal(shown[1].get_array(), model.predict(X[:1])[0])
    np.testing.assert_allclose(shown[0].to_rgba(np.array([0, 1]))[:, :3], class_colours(2))
    frame = display.axes_[3].spines["left"].get_edgecolor()
    np.testing.assert_allclose(frame[:3], class_colours(2)[1])
    bar = [ax for ax in display.figure_.axes if ax.get_ylabel() == "marginal probability"]
    assert len(bar) == 1
    drawn(display.ax_)


def test_without_gold_and_into_axes(grid):
    model, X, _ = grid
    _, axes = plt.subplots(2, 1)
    display = GridMarginalsDisplay.from_estimator(model, X[0], ax=axes[1])
    assert display.ax_ is axes[1]
    assert len(display.axes_) == 3
    drawn(display.ax_)


def test_bad_images(grid, crf):
    model, X, y = grid
    with pytest.raises(ValueError, match=r"y must have the shape \(3, 4\), got \(2, 4\)"):
        GridMarginalsDisplay.from_estimator(model, X[0], y[0][:2])
    with pytest.raises(ValueError, match=r"ChainCRF has marginals of shape \(1, 3\) here"):
        GridMarginalsDisplay.from_estimator(crf, [["the"]])
    with pytest.raises(ValueError, match="not be empty"):
        GridMarginalsDisplay(np.zeros((0, 0, 2)), [0, 1])
    with pytest.raises(ValueError, match=r"gold must be \[1, 1\], got shape \(2, 2\)"):
        GridMarginalsDisplay(np.ones((1, 1, 2)), [0, 1], gold=np.zeros((2, 2), int))


def parts(display):
    """Places of squares and of circles, and lines."""
    lines, *points = display.ax_.collections
    return lines.get_segments(), *(own.get_offsets() for own in points)


def test_a_factor_graph():
    scopes = [(0, 1), (1, 2), (2, 0), (1, 3, 4)]
    model = FactorGraph([2, 5], [[(0, 1)], scopes], n_labels=2)
    potentials = Potentials(model, np.zeros(14), np.zeros(12), [0, 0, 0, 0, 1])
    display = FactorGraphDisplay.from_potentials(potentials, example=1, names=list("abcde"))
    assert display.scopes == scopes
    assert display.tables.tolist() == [0, 0, 0, 1]
    lines, squares, circles = parts(display)
    assert len(squares) == 4
    assert len(circles) == 5
    expected = [(squares[f], circles[v]) for f, scope in enumerate(scopes) for v in scope]
    np.testing.assert_allclose(lines, expected)
    colours = display.ax_.collections[1].get_facecolors()[:, :3]
    np.testing.assert_allclose(colours, class_colours(2)[[0, 0, 0, 1]])
    assert texts(display.ax_.texts) == list("abcde")
    assert display.ax_.get_title() == "5 variables, 4 factors, 2 tables of scores"
    drawn(display.ax_)


def test_a_chain_is_a_line_and_an_image_a_grid(crf, grid):
    display = FactorGraphDisplay.from_estimator(crf, [["the"], ["cat"], ["sleeps"]])
    _, squares, circles = parts(display)
    assert texts(display.ax_.texts) == ["0", "1", "2"]
    np.testing.assert_allclose(circles, [[0, 0], [1, 0], [2, 0]])
    np.testing.assert_allclose(squares, [[0.5, 0], [1.5, 0]])
    model, X, _ = grid
    display = FactorGraphDisplay.from_estimator(model, X[0][:2, :2])
    _, squares, circles = parts(display)
    np.testing.assert_allclose(circles, [[0, 0], [1, 0], [0, -1], [1, -1]])
    assert len(squares) == 4
    assert texts(display.ax_.texts) == ["0,0", "0,1", "1,0", "1,1"]
    drawn(display.ax_)


def stress(places, far):
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    above = np.triu_indices(len(places), 1)
    return float((((apart - far) / far)[above] ** 2).sum())


def test_places_follow_paths():
    n = 8  # a ring: neighbours one apart, all others further
    places = places_of(n, [(v, (v + 1) % n) for v in range(n)])
    steps = np.abs(np.arange(n)[:, None] - np.arange(n))
    far = np.minimum(steps, n - steps).astype(float)
    np.fill_diagonal(far, 1.0)
    best = stress(places, far)
    rng = np.random.default_rng(0)
    assert all(best <= stress(places + 0.1 * rng.normal(size=places.shape), far) for _ in range(50))
    radius = np.linalg.norm(places - places.mean(axis=0), axis=1)
    np.testing.assert_allclose(radius, radius.mean(), rtol=1e-3)  # a regular polygon
    np.testing.assert_array_equal(places, places_of(n, [(v, (v + 1) % n) for v in range(n)]))


def test_parts_that_are_not_joined_do_not_overlap():
    places = places_of(6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert apart[np.triu_indices(6, 1)].min() > 0.5


def test_bad_graphs(crf):
    potentials = crf.potentials([[["the"], ["cat"]]])
    with pytest.raises(ValueError, match="there is no example 1: there are 1"):
        FactorGraphDisplay.from_potentials(potentials, example=1)
    with pytest.raises(ValueError, match=r"names must have one entry per variable \(2\)"):
        FactorGraphDisplay.from_potentials(potentials, names=["a"])
    with pytest.raises(ValueError, match="of 1 to 200 variables, got 201"):
        FactorGraphDisplay.from_estimator(crf, [["the"]] * 201)
    with pytest.raises(ValueError, match="of 1 to 200 variables, got 0"):
        FactorGraphDisplay([], np.zeros(0, int), [])
    with pytest.raises(ValueError, match=r"places must be \[1, 2\]"):
        FactorGraphDisplay([], np.zeros(0, int), ["a"], np.zeros((2, 2)))
    with pytest.raises(ValueError, match="scopes must name variables between 0 and 0"):
        FactorGraphDisplay([(0, 1)], np.zeros(1, int), ["a"])


def test_circles_of_long_chains_leave_their_factors_to_be_seen():
    for n in (2, 29, 120):
        scopes = [(v, v + 1) for v in range(n - 1)]
        display = FactorGraphDisplay(scopes, np.zeros(n - 1, int), list(map(str, range(n)))).plot()
        drawn(display.ax_)
        squares, circles = display.ax_.collections[1:]
        across = np.diff(display.ax_.transData.transform(display.places)[:2, 0])[0]
        inches = across / display.figure_.dpi
        taken = sum(float(np.sqrt(own.get_sizes()[0])) for own in (squares, circles)) / 72
        assert taken < inches


def test_the_title_counts_in_words():
    display = FactorGraphDisplay([], np.zeros(0, int), ["a"]).plot()
    assert display.ax_.get_title() == "1 variable, 0 factors, 0 tables of scores"
