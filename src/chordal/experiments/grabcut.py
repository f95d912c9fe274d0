"""GrabCut: an object is cut out of its rectangle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from chordal.datasets import load_grabcut
from chordal.experiments._base import Array, Experiment, Outcome, Row, Setup, Table
from chordal.experiments._images import agreement, contrast_grid, gains, gallery
from chordal.inference import INFERENCE
from chordal.potentials import Potentials

OBJECT, UNKNOWN = 1, 2
MARGIN = 2  # pixels between the object and its rectangle
STRENGTHS = (1.0, 2.5, 5.0, 10.0)
ROUNDS, COMPONENTS = 10, 5
NOISE = 20.0  # variance that every component has at least


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
        "maximum flow; 10 rounds"
    )
    source: ClassVar[str] = (
        "the method of Rother, Kolmogorov and Blake (2004), whose strength of 50 is for images "
        "five times as wide and high"
    )

    def run(self, setup: Setup) -> Outcome:
        """Everything, from the data to the figures."""
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
        before, after = (agreement(truth, own, 2, ignore_label=UNKNOWN) for own in (alone, found))
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
                (
                    agreement([t], [a], 2, ignore_label=UNKNOWN).iou,
                    agreement([t], [f], 2, ignore_label=UNKNOWN).iou,
                )
                for t, a, f in zip(truth, alone, found, strict=True)
            ],
            "Figures are mean IoU.",
        )
        return outcome


def grab(image: Array, inside: Array, strength: float) -> Array:
    """Which pixels show the object: those outside of the rectangle do not.

    Strength 0 labels every pixel independently.
    """
    rgb, labels = image.reshape(-1, 3).astype(float), inside.ravel()
    grid, alike = contrast_grid(image)
    tables = strength * alike[:, None, None] * np.eye(2)
    mixtures = [_Mixture(_groups(rgb[labels == k])) for k in (False, True)]
    for _ in range(ROUNDS):
        scores = np.stack([mixture.log_density(rgb) for mixture in mixtures], axis=1)
        scores[~inside.ravel(), 1] = -np.inf
        best = INFERENCE.resolve("max_flow").map(Potentials(grid, scores, tables)).labels == 1
        if not best.any() or np.array_equal(best, labels):
            break
        labels = best
        mixtures = [old.refitted(rgb[labels == k]) for k, old in enumerate(mixtures)]
    return best.reshape(inside.shape)


class _Mixture:
    """A mixture of Gaussians, one for each group of colours."""

    def __init__(self, groups: Sequence[Any]) -> None:
        self.mean = np.array([own.mean(axis=0) for own in groups])
        noise = NOISE * np.eye(3)
        spread = np.array([np.cov(own.T, bias=True) + noise for own in groups])
        self.root = np.linalg.cholesky(np.linalg.inv(spread))
        share = np.array([len(own) for own in groups]) / sum(len(own) for own in groups)
        self.weight = np.log(share) - 0.5 * np.linalg.slogdet(spread)[1]

    def by_component(self, rgb: Array) -> Array:
        """log of weight times density, up to a number that all mixtures share."""
        away = [(rgb - m) @ root for m, root in zip(self.mean, self.root, strict=True)]
        return self.weight - 0.5 * np.stack([(z**2).sum(axis=1) for z in away], axis=1)

    def log_density(self, rgb: Array) -> Array:
        return np.logaddexp.reduce(self.by_component(rgb), axis=1)

    def refitted(self, rgb: Array) -> _Mixture:
        """Every colour goes to the component that has most of it."""
        nearest = self.by_component(rgb).argmax(axis=1)
        return _Mixture([rgb[nearest == k] for k in np.unique(nearest)])


def _groups(rgb: Array) -> list[Any]:
    """Colours in groups: the widest is cut across its longest axis, again and again."""
    groups = [rgb]
    while len(groups) < COMPONENTS:
        axes = [np.linalg.svd(own - own.mean(axis=0), full_matrices=False)[1:] for own in groups]
        widest = int(np.argmax([lengths[0] for lengths, _ in axes]))
        own = groups.pop(widest)
        above = (own - own.mean(axis=0)) @ axes[widest][1][0] > 0.0
        if not above.any():
            return [*groups, own]  # all colours are the same
        groups += [own[above], own[~above]]
    return groups


def _rectangle(labels: Array) -> Array:
    """A little larger than the object."""
    rows, columns = np.nonzero(labels == OBJECT)
    inside = np.zeros(labels.shape, dtype=bool)
    top, left = (max(0, own.min() - MARGIN) for own in (rows, columns))
    inside[top : rows.max() + MARGIN + 1, left : columns.max() + MARGIN + 1] = True
    return inside


def _errors(truth: Sequence[Array], found: Sequence[Array], inside: Sequence[Array]) -> Array:
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
