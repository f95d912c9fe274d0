"""Tables of labels: transitions, and what is taken for what."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from chordal import GridCRF
from chordal.plots import ConfusionDisplay, TransitionsDisplay

from .conftest import drawn, has_ink_at_the_edge, overlap, texts


def test_transitions(crf):
    display = TransitionsDisplay.from_estimator(crf)
    ax = display.ax_
    np.testing.assert_array_equal(ax.images[0].get_array(), crf.transitions_)
    low, high = ax.images[0].get_clim()
    assert -low == high == np.abs(crf.transitions_).max()
    assert texts(ax.get_xticklabels()) == texts(ax.get_yticklabels()) == ["D", "N", "V"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("to", "from")
    assert texts(ax.texts)[1] == f"{crf.transitions_[0, 1]:.1f}"
    assert texts(ax.texts)[0] == ""
    bar = next(own for own in ax.figure.axes if own is not ax)
    assert bar.get_ylabel() == "weight"
    drawn(ax)


def test_pairs_of_two_kinds():
    display = TransitionsDisplay([[1.0, -np.inf, 0.0]], ["row"], ["a", "b", "c"]).plot()
    assert texts(display.ax_.get_xticklabels()) == ["a", "b", "c"]
    assert texts(display.ax_.get_yticklabels()) == ["row"]
    assert texts(display.ax_.texts) == ["1.0", "−∞", ""]
    assert display.ax_.images[0].get_array().mask.tolist() == [[False, True, False]]
    drawn(display.ax_)


def test_edges_of_a_grid():
    X = [np.arange(4.0).reshape(2, 2, 1)] * 3
    grid = GridCRF().fit(X, [np.array([[0, 0], [1, 1]])] * 3)
    display = TransitionsDisplay.from_estimator(grid, template="edges")
    table = grid.template_weights("edges")["intercept"]
    np.testing.assert_array_equal(display.ax_.images[0].get_array(), table)
    assert display.ax_.get_xlabel() == "second label"
    with pytest.raises(ValueError, match="GridCRF has no transitions; name a template"):
        TransitionsDisplay.from_estimator(grid)
    with pytest.raises(ValueError, match="'pixels' of GridCRF has no weight for each pair"):
        TransitionsDisplay.from_estimator(grid, template="pixels")


def test_bad_tables():
    with pytest.raises(ValueError, match=r"\(2, 2\), and not be empty; got shape \(2, 3\)"):
        TransitionsDisplay(np.zeros((2, 3)), ["a", "b"])
    with pytest.raises(ValueError, match="not be empty"):
        TransitionsDisplay(np.zeros((0, 0)), [])


def test_names_that_look_like_formulas_are_shown_as_text():
    display = TransitionsDisplay(np.eye(2), ["$\\frac{$", "a\nb"]).plot()
    drawn(display.ax_)
    assert texts(display.ax_.get_yticklabels()) == ["\\$\\frac{\\$", "a b"]


LONG = ["x" * 60, "a label of several words", "B"]


@pytest.mark.parametrize("display", [TransitionsDisplay, ConfusionDisplay])
def test_long_names_are_cut_and_not_clipped(display):
    made = display(np.eye(3), LONG).plot()
    drawn(made.ax_)
    inside, figure = made.ax_.get_tightbbox(), made.figure_.bbox
    assert figure.x0 <= inside.x0
    assert figure.y0 <= inside.y0
    assert inside.x1 <= figure.x1
    assert inside.y1 <= figure.y1
    assert made.ax_.get_window_extent().height > 0.4 * figure.height
    assert texts(made.ax_.get_yticklabels()) == ["x" * 9 + "…" + "x" * 8, "a label o…al words", "B"]


@pytest.mark.parametrize("n", [1, 2, 3, 8, 15, 20, 60])
def test_nothing_is_cut_or_overlaps(n):
    names = [f"L{k}" for k in range(n)]
    for display in (TransitionsDisplay(np.eye(n), names), ConfusionDisplay(np.eye(n), names)):
        ax = display.plot().ax_
        assert not has_ink_at_the_edge(ax)
        assert not overlap(ax.get_xticklabels())
        assert not overlap(ax.get_yticklabels())


def test_forbidden_pairs_are_grey_and_their_sign_is_legible():
    ax = TransitionsDisplay([[1.0, -np.inf], [-0.04, 0.0]], ["a", "b"]).plot().ax_
    image = ax.images[0]
    assert image.to_rgba(image.get_array())[0, 1, :3].mean() > 0.7
    assert texts(ax.texts) == ["1.0", "−∞", "0.0", ""]  # and never −0.0
    assert ax.texts[1].get_color() == "#1f2328"
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError, match="weights must be numbers or −inf"):
            TransitionsDisplay([[wrong]], ["a"])


def test_numbers_are_left_out_of_axes_that_are_too_small():
    _, axes = plt.subplots(1, 5, figsize=(7, 2))
    assert not TransitionsDisplay(np.eye(6), list("abcdef")).plot(ax=axes[0]).ax_.texts


def test_control_characters_are_written_out():
    display = ConfusionDisplay(np.eye(3), ["a\x1b[31m", "b\ud800", "\u202ecba"]).plot()
    drawn(display.ax_)
    assert texts(display.ax_.get_yticklabels()) == ["a\\x1b[31m", "b\\ud800", "\\u202ecba"]


def test_confusion():
    display = ConfusionDisplay.from_predictions([["a", "b"], ["b"]], [["a", "b"], ["a"]])
    image = display.ax_.images[0]
    np.testing.assert_array_equal(image.get_array(), [[1.0, 0.0], [0.5, 0.5]])
    assert texts(display.ax_.texts) == ["1", "", "1", "1"]
    assert display.ax_.get_xlabel() == "predicted label"
    flat = ConfusionDisplay.from_predictions(
        np.array([0, 1, 1]), np.array([0, 1, 0]), labels=[1, 0]
    )
    np.testing.assert_array_equal(flat.ax_.images[0].get_array(), [[0.5, 0.5], [0.0, 1.0]])
    np.testing.assert_array_equal(flat.counts, [[1, 1], [0, 1]])
    drawn(display.ax_)


def test_confusion_in_percent():
    display = ConfusionDisplay.from_predictions(
        ["a"] * 200, ["a"] * 197 + ["b"] * 3, labels=["a", "b"], percent=True
    )
    assert texts(display.ax_.texts) == ["98", "2", "", ""]
    assert display.ax_.images[0].norm(0.25) == 0.5  # rare mistakes are seen
    drawn(display.ax_)


def test_colours_without_numbers_are_explained():
    names = [f"label {k:02}" for k in range(15)]
    display = ConfusionDisplay.from_predictions(names, names)
    assert texts(display.ax_.texts) == []
    bars = [ax for ax in display.figure_.axes if ax is not display.ax_]
    assert [ax.get_ylabel() for ax in bars] == ["share of the true label"]
    drawn(display.ax_)
    assert len(display.plot(colorbar=False).figure_.axes) == 1
    few = ConfusionDisplay.from_predictions(names[:14], names[:14])
    assert len(few.figure_.axes) == 1


def test_confusion_of_a_model(crf, data):
    X, y = data
    _, ax = plt.subplots()
    display = ConfusionDisplay.from_estimator(crf, X, y, ax=ax)
    found = [label for own in crf.predict(X) for label in own]
    true = [label for own in y for label in own]
    for i, a in enumerate("DNV"):
        for j, b in enumerate("DNV"):
            assert display.counts[i, j] == list(zip(true, found, strict=True)).count((a, b))
    assert display.ax_ is ax


def test_images_are_compared_by_pixels():
    display = ConfusionDisplay.from_predictions(
        [np.array([[0, 1], [1, 1]])], [np.array([[0, 1], [0, 1]])]
    )
    assert display.counts.tolist() == [[1, 0], [1, 2]]


def test_confusion_of_entities():
    true = [["B-PER", "I-PER", "O", "B-LOC", "O"], ["B-LOC", "O", "B-PER"]]
    found = [["B-PER", "I-PER", "O", "B-PER", "B-LOC"], ["O", "B-LOC", "B-PER"]]
    display = ConfusionDisplay.from_predictions(true, found, level="entity")
    assert display.labels == ["LOC", "PER", "(none)"]
    # LOC taken for PER; LOC missed; two PER found; two LOC that are not there.
    assert display.counts.tolist() == [[0, 1, 1], [0, 2, 0], [2, 0, 0]]
    assert texts(display.ax_.get_xticklabels()) == display.labels
    assert display.ax_.get_ylabel() == "true entity"
    drawn(display.ax_)


def test_an_entity_with_other_limits_is_missed_and_made_up():
    display = ConfusionDisplay.from_predictions(
        [["B-PER", "I-PER"]], [["B-PER", "O"]], level="entity"
    )
    assert display.counts.tolist() == [[0, 1], [1, 0]]


def test_bad_confusions():
    with pytest.raises(ValueError, match="y_true is empty"):
        ConfusionDisplay.from_predictions([], [])
    with pytest.raises(ValueError, match="there is no entity"):
        ConfusionDisplay.from_predictions([["O"]], [["O"]], level="entity")
    with pytest.raises(ValueError, match="same number and lengths"):
        ConfusionDisplay.from_predictions([["O", "O"]], [["O"]], level="entity")
    with pytest.raises(ValueError, match="level must be one of 'token', 'entity'"):
        ConfusionDisplay.from_predictions([["O"]], [["O"]], level="chunk")
