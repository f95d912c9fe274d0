"""What experiments on images measure, and how GrabCut cuts."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from chordal.experiments import Outcome
from chordal.experiments._images import agreement, gains, gallery
from chordal.experiments.grabcut import _best_of_others, _rectangle, grab
from chordal.experiments.superpixels import _regions
from chordal.plots import class_colours


def test_agreement_as_counted_by_hand():
    truth = [np.array([[0, 0, 1]]), np.array([1, 2, 9])]
    found = [np.array([[0, 1, 1]]), np.array([1, 0, 0])]
    got = agreement(truth, found, n_classes=4, weight=[[[3, 1, 1]], [5, 2, 100]], ignore_label=9)
    assert got.right == pytest.approx(9 / 12)
    np.testing.assert_allclose(got.iou_of_class, [3 / 6, 6 / 7, 0.0, np.nan])
    assert got.iou == pytest.approx((3 / 6 + 6 / 7) / 3)  # nothing is, or was taken for, class 3
    assert got.recall == pytest.approx((3 / 4 + 1 + 0) / 3)


def test_labels_found_together_must_be_better():
    low = agreement([[0, 1, 1, 0]], [[0, 1, 0, 0]], 2)
    high = agreement([[0, 1, 1, 0]], [[0, 1, 1, 0]], 2)
    assert [row.verdict for row in gains(low, high, ("a", "b"), "")] == ["", "met", "", "met"]
    assert [row.verdict for row in gains(low, low, ("a", "b"), "")][1::2] == 2 * ["not met"]


def test_the_gallery_shows_gains_and_the_largest_loss(monkeypatch):
    monkeypatch.setattr(Outcome, "draw", lambda self, title, caption, figure: drawn.append(figure))
    drawn, asked = [], []

    def pictures(k):
        asked.append(k)
        return [np.zeros((2, 2, 3)), *np.zeros((3, 2, 2))]

    scores = [(0.5, 0.4), (0.1, 0.9), (0.5, 0.5), (0.2, 0.4), (0.1, 0.8), (0.3, 0.6)]
    gallery(Outcome(), ("alone", "grid"), pictures, scores, "", lambda k: f"truth {k}")
    assert asked == [1, 4, 5, 3, 0]
    titles = [ax.get_title() for ax in drawn[0].axes]
    assert titles[:4] == ["image", "truth 1", "alone: 0.10", "grid: 0.90"]


def test_grabcut_cuts_a_noisy_disc_out():
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:40, 0:48]
    disc = (y - 18) ** 2 + (x - 25) ** 2 < 144
    image = np.where(disc[:, :, None], (190, 80, 70), (110, 120, 130))
    image = np.clip(image + 45.0 * rng.normal(size=image.shape), 0, 255).astype(np.uint8)
    inside = _rectangle(disc.astype(int))
    assert inside[5:32, 12:39].all()
    assert inside.sum() == 27 * 27
    alone, cut = (grab(image, inside, strength) for strength in (0.0, 8.0))
    assert not (alone | cut)[~inside].any()
    assert (cut == disc).mean() > 0.98
    assert (cut != disc).sum() < 0.5 * (alone != disc).sum()


def test_strengths_are_chosen_on_other_images():
    errors = {1.0: np.array([0.0, 0.9, 0.2]), 5.0: np.array([1.0, 0.1, 0.3])}
    assert [_best_of_others(errors, k) for k in range(3)] == [5.0, 1.0, 1.0]


def test_regions_follow_places_and_colours():
    image = np.zeros((6, 12, 3), dtype=np.uint8)
    image[:, 5:] = 255  # the border is not halfway between the centres
    found = _regions(image, np.array([[0.5, 0.2], [0.5, 0.7]]))
    assert (found == (image[:, :, 0] > 0)).all()


def test_colours_of_classes_differ():
    for n in (3, 7, 21, 30):
        assert len(np.unique(class_colours(n), axis=0)) == n
