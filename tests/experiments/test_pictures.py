"""Shared drawings: narrow enough for a phone, and their words say what was drawn."""

from struct import unpack

import numpy as np
import pytest

from chordal import CRFClassifier
from chordal.experiments import Token
from chordal.experiments import _pictures as pictures

PHONE = 720  # pixels; see chordal.experiments._page


@pytest.fixture(scope="module")
def report():
    return CRFClassifier().fit([[0.0], [1.0], [2.0]], [0, 1, 1]).fit_report_


def everything(report):
    rng = np.random.default_rng(0)
    labels = [f"LABEL{k}" for k in range(30)]
    y = [labels[k % 30] for k in range(600)]
    image = rng.random((20, 30, 3))
    return [
        pictures.curves("T", "c", {"a": [1.0, 2.0]}, [1, 10], xlabel="x", ylabel="y", log="xy"),
        pictures.training("T", "c", {"one": report, "two": report}),
        pictures.confusion("T", "c", y, y[::-1]),
        pictures.heat_map("T", "c", rng.normal(size=(30, 30)), labels),
        pictures.heat_map("T", "c", rng.normal(size=(2, 12)), ["a", "b"], labels[:12]),
        pictures.image_rows(
            "T",
            "c",
            [[image, image[..., 0]]] * 2,
            ["input", "grey"],
            cmaps=[None, "Greys"],
            limits=[None, (0.0, 1.0)],
            names=["first", "second"],
        ),
        pictures.bars("T", "c", labels[:20], {"a": np.ones(20), "b": np.ones(20)}, ylabel="y"),
    ]


def test_every_picture_fits_a_phone_and_has_words(report):
    for picture in everything(report):
        width, height = unpack(">II", picture.png[16:24])
        assert 150 < width <= PHONE
        assert 150 < height <= 2 * PHONE
        assert len(picture.png) < 60_000
        assert picture.alt.endswith(".")
        assert (picture.title, picture.caption) == ("T", "c")


def test_the_words_say_what_was_drawn(report):
    curve = pictures.curves(
        "", "", {"HMM": [0.5, np.nan, 0.75]}, [1, 2, 3], xlabel="size", ylabel="right"
    )
    assert curve.alt == "right by size: HMM from 0.5 to 0.75."
    found = pictures.confusion("", "", [["a", "b"], ["b", "b"]], [["a", "a"], ["a", "b"]])
    expected = (
        "Confusion matrix of 2 labels: 50.0% of all labels right; most often b taken for a (2 "
    )
    assert found.alt == f"{expected}times)."
    table = pictures.heat_map("", "", [[0.0, -np.inf], [2.0, -1.0]], ["x", "y"])
    assert table.alt == "Heat map, 2 by 2: largest 2.00 (y to x), smallest -1.00 (y to y)."
    trained = pictures.training("", "", report)
    assert f"ends at {report.objective:.6g} after {len(report.history)}" in trained.alt


def test_confusion_shows_the_most_frequent_labels():
    y = [k for k in range(40) for _ in range(40 - k)]
    assert "of 20 labels: 100.0% of all" in pictures.confusion("", "", y, y).alt


def test_samples_hold_what_is_wrong():
    found = {"A": [[1, 2], [3, 3]], "B": [[1, 1], [3, 4]]}
    samples = pictures.samples("T", "c", ["xy", "zw"], [[1, 2], [3, 4]], found, [1, 0])
    assert samples.sequences == [
        [Token("z", "3", {}), Token("w", "4", {"A": "3"})],
        [Token("x", "1", {}), Token("y", "2", {"B": "1"})],
    ]
