"""Pictures of one sequence, and of the features of labels."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb

from chordal import ChainCRF, CRFClassifier, GridCRF
from chordal.plots import LatticeDisplay, SegmentationDisplay, TopFeaturesDisplay
from chordal.plots._style import COLOURS, class_colours

from .conftest import drawn, enumerated, is_inside, overlap, texts


def test_shading_is_the_marginals_by_enumeration(crf, data):
    X, y = data
    display = LatticeDisplay.from_estimator(crf, X[0], y[0], k=3)
    labellings, p = enumerated(crf.potentials(X[:1]))
    expected = np.array([[p[labellings[:, t] == k].sum() for k in range(3)] for t in range(3)])
    image = display.ax_.images[0]
    np.testing.assert_allclose(image.get_array(), expected.T, atol=1e-12)
    assert image.get_clim() == (0.0, 1.0)
    drawn(display.ax_)


def test_paths_are_the_best_ones_by_enumeration(crf, data):
    X, y = data
    display = LatticeDisplay.from_estimator(crf, X[0], y[0], k=3)
    labellings, p = enumerated(crf.potentials(X[:1]))
    best = np.argsort(-p)[:3]
    lines = display.ax_.lines
    assert len(lines) == 3
    for k, line in enumerate(lines):
        np.testing.assert_array_equal(np.round(line.get_ydata()), labellings[best[k]])
        assert line.get_xdata().tolist() == [0, 1, 2]
        assert line.get_label().endswith(f"p = {p[best[k]]:.3g}")
    assert lines[0].get_label().startswith("best: ")
    assert lines[0].get_linewidth() > lines[1].get_linewidth()
    gold = display.ax_.collections[0].get_offsets()
    np.testing.assert_array_equal(gold, [[0, 0], [1, 1], [2, 2]])
    assert texts(display.ax_.get_xticklabels()) == ["the", "cat", "sleeps"]
    assert texts(display.ax_.get_yticklabels()) == ["D", "N", "V"]


def test_what_a_lattice_may_leave_out(crf, data):
    X, _ = data
    _, ax = plt.subplots()
    display = LatticeDisplay.from_estimator(crf, X[1], [None, "N"], k=0, ax=ax, tokens="ab")
    assert display.ax_ is ax
    assert len(ax.lines) == 0
    np.testing.assert_array_equal(ax.collections[0].get_offsets(), [[1, 1]])
    assert texts(ax.get_xticklabels()) == ["a", "b"]
    alone = LatticeDisplay(display.marginals, display.labels).plot()
    assert texts(alone.ax_.get_xticklabels()) == ["1", "2"]
    assert alone.ax_.get_legend() is None


def test_numbers_stand_for_tokens_that_are_arrays():
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(5, 2))], [[0, 1, 0, 1, 0]]
    display = LatticeDisplay.from_estimator(ChainCRF().fit(X, y), X[0], y[0])
    assert texts(display.ax_.get_xticklabels()) == ["1", "2", "3", "4", "5"]
    drawn(display.ax_)


def test_true_labels_that_the_model_does_not_know(crf):
    display = LatticeDisplay.from_estimator(crf, [["the"], ["cat"]], ["Z", "N"])
    assert texts(display.ax_.get_yticklabels()) == ["D", "N", "V", "Z"]
    np.testing.assert_array_equal(display.marginals[:, 3], 0.0)
    np.testing.assert_array_equal(display.gold, [3, 1])
    drawn(display.ax_)


def test_bad_lattices(crf):
    with pytest.raises(ValueError, match=r"gold must have one entry per position \(1\), got 2"):
        LatticeDisplay.from_estimator(crf, [["the"]], ["D", "N"])
    with pytest.raises(ValueError, match="the sequence is empty"):
        LatticeDisplay(np.zeros((0, 2)), ["a", "b"])
    with pytest.raises(ValueError, match=r"marginals must be \[n_positions, 2\]"):
        LatticeDisplay(np.zeros((3, 3)), ["a", "b"])
    with pytest.raises(ValueError, match="k must be an integer of at least 0"):
        LatticeDisplay.from_estimator(crf, [["the"]], k=-1)
    grid = GridCRF().fit([np.arange(4.0).reshape(2, 2, 1)], [np.array([[0, 0], [1, 1]])])
    with pytest.raises(
        ValueError, match="a lattice shows chains, and this example of GridCRF is not"
    ):
        LatticeDisplay.from_estimator(grid, np.zeros((2, 2, 1)))


def test_long_labels_leave_room_for_the_lattice():
    labels = ["x" * 60, "B"]
    display = LatticeDisplay(np.array([[0.9, 0.1], [0.2, 0.8]]), labels).plot()
    drawn(display.ax_)
    assert display.ax_.get_window_extent().width > 0.3 * display.figure_.bbox.width
    assert display.ax_.get_tightbbox().x0 >= 0
    assert texts(display.ax_.get_yticklabels()) == ["x" * 9 + "…" + "x" * 8, "B"]


def test_names_of_one_position_and_of_long_labels_are_all_in_the_picture():
    labels = [f"a very long name of a label, {k}" for k in range(8)]
    paths = [(np.array([k]), 0.1) for k in range(3)]
    lattice = LatticeDisplay(np.full((1, 8), 0.125), labels, paths, np.array([1])).plot()
    strips = SegmentationDisplay.from_predictions(labels, labels[::-1])
    for ax in (lattice.ax_, strips.ax_):
        drawn(ax)
        assert is_inside(ax.get_legend(), ax)
        assert ax.get_window_extent().width > 0.3 * ax.figure.bbox.width
    assert len(set(texts(strips.ax_.get_legend().get_texts()))) == 8


def test_lattices_of_many_tokens_or_in_small_axes_do_not_overlap():
    p, tokens = np.full((29, 2), 0.5), [f"w={100 + t}" for t in range(29)]
    ax = LatticeDisplay(p, ["A", "B"], [], None, tokens).plot().ax_
    small = plt.subplots(2, 3, figsize=(10, 6), layout="constrained")[1][0, 0]
    LatticeDisplay(p[:14], ["A", "B"], [(np.zeros(14), 0.5)], None, tokens[:14]).plot(ax=small)
    for own in (ax, small):
        drawn(own)
        assert not overlap(own.get_xticklabels())
    assert not small.texts  # no room for numbers


def test_strips():
    display = SegmentationDisplay.from_predictions(
        list("aabbc"), {"one": list("aabbc"), "other": list("abbbb")}, labels=list("abc")
    )
    ax = display.ax_
    assert texts(ax.get_yticklabels()) == ["gold", "one", "other"]
    rows = [np.asarray(image.get_array())[0].tolist() for image in ax.images]
    assert rows == [[0, 0, 1, 1, 2], [0, 0, 1, 1, 2], [0, 1, 1, 1, 1]]
    for image, centre in zip(ax.images, range(3), strict=True):
        left, right, bottom, top = image.get_extent()
        assert (left, right) == (0.5, 5.5)
        assert top < centre < bottom  # gold on top: the axis points down
        np.testing.assert_allclose(image.to_rgba(np.arange(3))[:, :3], class_colours(3))
    assert ax.yaxis_inverted()
    marks = [[segment[:, 0].tolist() for segment in c.get_segments()] for c in ax.collections]
    assert marks == [[], [], [[1.5, 2.5], [4.5, 5.5]]]
    assert texts(ax.get_legend().get_texts()) == ["a", "b", "c"]
    assert ax.get_xlabel() == "position"
    drawn(ax)


def test_strips_of_a_model(crf, data):
    X, y = data
    display = SegmentationDisplay.from_estimator(crf, X[0], [*y[0][:2], "new"])
    assert display.labels == ["D", "N", "V", "new"]
    assert display.codes[0].tolist() == [0, 1, 3]
    assert [display.labels[k] for k in display.codes[1]] == crf.predict(X[:1])[0]
    assert display.ax_.images[1].get_array()[0].tolist() == display.codes[1].tolist()


def test_many_labels_have_no_legend():
    display = SegmentationDisplay.from_predictions(range(30), range(30))
    assert display.ax_.get_legend() is None
    drawn(display.ax_)


def test_bad_strips():
    with pytest.raises(ValueError, match="strips is empty"):
        SegmentationDisplay.from_predictions([], [])
    with pytest.raises(ValueError, match=r"one length, got {'gold': 2, 'predicted': 1}"):
        SegmentationDisplay.from_predictions(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="labels lacks 'b'"):
        SegmentationDisplay.from_predictions(["a", "b"], ["a", "b"], labels=["a"])


def test_top_features(data):
    crf = ChainCRF(l2=0.5, pairs="all").fit(*data)  # so that some speak against a label
    assert crf.coef_.toarray().min() < 0 < crf.coef_.toarray().max()
    display = TopFeaturesDisplay.from_estimator(crf, top=4)
    assert [ax.get_title() for ax in display.axes_] == ["D", "N", "V"]
    names = [crf.input_.name(k) for k in range(crf.input_.n_columns)]
    for row, ax in zip(crf.coef_.toarray(), display.axes_, strict=True):
        largest = sorted(np.argsort(-np.abs(row), kind="stable")[:4], key=lambda k: -row[k])
        widths = [bar.get_width() for bar in ax.patches]
        np.testing.assert_allclose(widths, row[largest])
        shown = texts(ax.get_yticklabels())
        assert [row[names.index(name)] for name in shown] == pytest.approx(widths)
        for bar in ax.patches:
            expected = COLOURS[0] if bar.get_width() > 0 else COLOURS[1]
            assert bar.get_facecolor()[:3] == to_rgb(expected)
        assert ax.get_xlabel() == "weight"
        assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first on top
    drawn(display.ax_)


def test_top_features_of_columns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    model = CRFClassifier().fit(X, np.array(["n", "p", "q"])[np.argmax(X, axis=1)])
    display = TopFeaturesDisplay.from_estimator(
        model, top=1, labels=["q", "n"], feature_names=["one", "two", "three"]
    )
    assert list(display.features) == ["q", "n"]
    best = np.abs(model.coef_[2]).argmax()
    assert display.features["q"] == [
        (["one", "two", "three"][best], pytest.approx(model.coef_[2, best]))
    ]
    two = CRFClassifier().fit(X, X[:, 0] > 0)
    assert list(TopFeaturesDisplay.from_estimator(two).features) == [True]


def test_panels_stay_in_the_place_of_the_axes(crf):
    figure, axes = plt.subplots(1, 2)
    display = TopFeaturesDisplay.from_estimator(crf, ax=axes[1])
    figure.canvas.draw()
    assert display.ax_ is axes[1]
    assert all(ax.get_position().x0 >= axes[1].get_position().x0 - 1e-9 for ax in display.axes_)


def test_bad_features(crf):
    with pytest.raises(ValueError, match="ChainCRF has no label 'Z'"):
        TopFeaturesDisplay.from_estimator(crf, labels=["Z"])
    with pytest.raises(ValueError, match="top must be an integer of at least 1"):
        TopFeaturesDisplay.from_estimator(crf, top=0)
    with pytest.raises(ValueError, match="features is empty"):
        TopFeaturesDisplay({})
    model = CRFClassifier().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match=r"one name per feature \(1\), got 2"):
        TopFeaturesDisplay.from_estimator(model, feature_names=["a", "b"])


@pytest.mark.filterwarnings("error")
def test_a_label_without_weights_says_so():
    crf = ChainCRF().fit([[["a"]]], [["A"]])
    display = TopFeaturesDisplay.from_estimator(crf)
    drawn(display.axes_[0])
    assert texts(display.axes_[0].texts) == ["all weights are zero"]
