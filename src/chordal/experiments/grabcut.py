"""GrabCut: an object is cut out of its rectangle."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, final

import numpy as np

from chordal.datasets import load_grabcut
from chordal.experiments._base import Experiment, Outcome, Row, Setup, Table
from chordal.experiments._images import agreement, contrast_grid, gains, gallery
from chordal.inference import INFERENCE
from chordal.potentials import Potentials

OBJECT, UNKNOWN = 1, 2
MARGIN = 2  # pixels between the object and its rectangle
STRENGTHS = (1.0, 2.5, 5.0, 10.0)
ROUNDS, COMPONENTS = 5, 5


@final
class GrabCut(Experiment):
    """Colours of object and background, learned from a rectangle and a cut, in turns."""

    title: ClassVar[str] = "GrabCut"
    about: ClassVar[str] = (
        "The user draws a rectangle around an object. Two mixtures of Gaussians learn the colours "
        "inside and outside; pixels inside are then labelled by these colours, the mixtures are "
        "learned again from the labels, and so on. With every pixel by itself, speckles teach "
        "the mixtures wrong colours; with the grid, labels change where colours do."
    )
    data: ClassVar[str] = "the 50 GrabCut images, at most 96 pixels wide and high"
    split: ClassVar[str] = (
        "nothing is learned across images but the strength of the grid: for each image, the best "
        "on the 49 others. Rectangles are made from the truth, 2 pixels larger than the object"
    )
    model: ClassVar[str] = (
        "mixtures of 5 Gaussians; grid of 8 neighbours with contrast, the best labelling by "
        "maximum flow; 5 rounds"
    )
    source: ClassVar[str] = (
        "the method of Rother, Kolmogorov and Blake (2004), whose strength of 50 is for images "
        "five times as wide and high"
    )

    def run(self, setup: Setup) -> Outcome:
        data = load_grabcut()
        images, truth = data.images, data.labels
        if setup.quick:
            images, truth = images[::10], truth[::10]
        inside = [_rectangle(labels) for labels in truth]
        cut = {}
        for strength in (0.0, *STRENGTHS[:: 1 + setup.quick]):
            setup.say(f"strength {strength:g}")
            cut[strength] = [
                grab(image, own, strength) for image, own in zip(images, inside, strict=True)
            ]
        alone = cut.pop(0.0)
        errors = {s: _errors(truth, found, inside) for s, found in cut.items()}
        chosen = [_best_of_others(errors, k) for k in range(len(images))]
        found = [cut[strength][k] for k, strength in enumerate(chosen)]
        before, after = (agreement(truth, own, 2, void=UNKNOWN) for own in (alone, found))
        outcome = Outcome()
        outcome.rows += gains(before, after, ("colours alone", "grid"), "")
        error = float(_errors(truth, alone, inside).mean())
        what = "error rate inside the rectangle"
        outcome.rows += [
            Row(f"{what}, colours alone", error),
            Row(
                f"{what}, grid",
                float(_errors(truth, found, inside).mean()),
                must=error,
                lower=True,
            ),
        ]
        outcome.tables.append(
            Table(
                "Strength of the grid",
                ["strength", "error rate inside", "chosen for images"],
                [[f"{s:g}", float(errors[s].mean()), chosen.count(s)] for s in cut],
            )
        )
        gallery(
            outcome,
            ("colours", "grid"),
            lambda k: [images[k], truth[k] == OBJECT, alone[k], found[k]],
            [
                (agreement([t], [a], 2, void=UNKNOWN).iou, agreement([t], [f], 2, void=UNKNOWN).iou)
                for t, a, f in zip(truth, alone, found, strict=True)
            ],
            "Figures are mean IoU.",
        )
        return outcome


def grab(image: Any, inside: Any, strength: float) -> Any:
    """Which pixels show the object: those outside of the rectangle do not.

    Strength 0 labels every pixel by itself.
    """
    rgb, free = image.reshape(-1, 3).astype(float), inside.ravel()
    grid, alike = contrast_grid(image)
    tables = strength * alike[:, None, None] * np.eye(2)
    mixtures = [_mixture(), _mixture()]
    labels = free
    for _ in range(ROUNDS):
        for k, mixture in enumerate(mixtures):
            _go_on(mixture, rgb[labels == k])
        scores = np.stack([mixture.score_samples(rgb) for mixture in mixtures], axis=1)
        scores[~free, 1] = -np.inf
        best = INFERENCE.resolve("max_flow").map(Potentials(grid, scores, tables)).labels == 1
        if best.sum() < COMPONENTS or np.array_equal(best, labels):
            return best.reshape(inside.shape)
        labels = best
    return labels.reshape(inside.shape)


def _mixture() -> Any:
    from sklearn.mixture import GaussianMixture

    return GaussianMixture(COMPONENTS, reg_covar=20.0, max_iter=5, warm_start=True, random_state=0)


def _go_on(mixture: Any, colours: Any) -> None:
    """A few steps from where the mixture is; it need not come to rest."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(colours)


def _rectangle(labels: Any) -> Any:
    """A little larger than the object."""
    rows, columns = np.nonzero(labels == OBJECT)
    inside = np.zeros(labels.shape, dtype=bool)
    top, left = (max(0, own.min() - MARGIN) for own in (rows, columns))
    inside[top : rows.max() + MARGIN + 1, left : columns.max() + MARGIN + 1] = True
    return inside


def _errors(truth: Any, found: Any, inside: Any) -> Any:
    """Of each image, the share of pixels in the rectangle with the wrong label."""
    return np.array(
        [
            ((t == OBJECT) != f)[own & (t != UNKNOWN)].mean()
            for t, f, own in zip(truth, found, inside, strict=True)
        ]
    )


def _best_of_others(errors: dict[float, Any], k: int) -> float:
    """The strength with the smallest error on all images but k."""
    return min(errors, key=lambda strength: errors[strength].sum() - errors[strength][k])
