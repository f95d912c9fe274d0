"""Segmentation: pixels that are decided together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, ClassVar, final

import numpy as np
from scipy.ndimage import gaussian_filter

from chordal import CRFClassifier
from chordal.datasets import load_weizmann_horses
from chordal.experiments._base import Array, Experiment, Outcome, Setup
from chordal.experiments._images import agreement, contrast_grid, gains, gallery
from chordal.inference import INFERENCE
from chordal.potentials import Potentials

MOST = 6.0  # of the distance to a colour, in standard deviations
#: What is tried: strengths of the grid, and how fast they fade with the difference of colours.
TRIED = [(1.0, 2.0, 4.0, 8.0), (0.5, 2.0, 8.0)]


@final
class Segmentation(Experiment):
    """Horses: a classifier of pixels, then a grid on top of it."""

    title: ClassVar[str] = "Segmentation (horses)"
    about: ClassVar[str] = (
        "Which pixels show the horse? A classifier sees colours, their surroundings and the place "
        "of each pixel. The grid takes its log-odds and adds how much neighbours agree, less so "
        "where colours differ; the best labelling is found by a minimum cut. Its two strengths "
        "are chosen on the training images."
    )
    data: ClassVar[str] = "Weizmann's 328 horses, at most 64 pixels wide and high"
    split: ClassVar[str] = (
        "80 images to learn from, 160 others to test; for the grid, the odds of training images "
        "are those of a classifier that saw the other half of them"
    )
    model: ClassVar[str] = (
        "CRFClassifier; grid of 8 neighbours, Potts pairs with contrast, best labelling by "
        "maximum flow"
    )
    source: ClassVar[str] = "the lectures' example of segmentation; no published figure"

    def run(self, setup: Setup) -> Outcome:
        """Everything, from the data to the figures."""
        horses = load_weizmann_horses()
        n, n_test = (10, 10) if setup.quick else (80, 160)
        order = np.random.default_rng(self.seed).permutation(len(horses.images))
        train, test = order[:n], order[164 : 164 + n_test]
        setup.say("features of pixels")
        features = _scaled({i: _features(horses.images[i]) for i in [*train, *test]}, train)
        images, labels = horses.images, horses.labels
        setup.say("classifier of pixels")
        alone = _fitted(features, labels, train)
        odds = {i: _odds(alone, features[i]) for i in test}
        for seen, others in ((train[::2], train[1::2]), (train[1::2], train[::2])):
            model = _fitted(features, labels, seen)
            odds |= {i: _odds(model, features[i]) for i in others}

        def right(tried: tuple[float, ...]) -> float:
            found = [_cut(images[i], odds[i], *tried) for i in train]
            reached = agreement([labels[i] for i in train], found, 2)
            return reached.right + reached.iou

        setup.say("strengths of the grid")
        best = max(product(*TRIED), key=right)
        truth = [labels[i] for i in test]
        unary = [(odds[i] > 0.0).astype(int) for i in test]
        found = [_cut(images[i], odds[i], *best) for i in test]
        outcome = Outcome()
        before, after = agreement(truth, unary, 2), agreement(truth, found, 2)
        why = "strength {:g}, contrast {:g}".format(*best)
        outcome.rows += gains(before, after, ("pixels alone", "grid"), why)
        gallery(
            outcome,
            ("alone", "grid"),
            lambda k: [images[test[k]], truth[k], unary[k], found[k]],
            [
                (agreement([t], [u], 2).iou, agreement([t], [f], 2).iou)
                for t, u, f in zip(truth, unary, found, strict=True)
            ],
            "Figures are mean IoU.",
        )
        return outcome


def _cut(image: Array, odds: Array, strength: float, contrast: float) -> Array:
    """The best labelling of a grid."""
    grid, pairs = contrast_grid(image, contrast)
    scores = np.stack([np.zeros(odds.size), odds.ravel()], axis=1)
    potentials = Potentials(grid, scores, strength * pairs[:, None, None] * np.eye(2))
    return INFERENCE.resolve("max_flow").map(potentials).labels.reshape(odds.shape)


def _features(image: Array) -> Array:
    """Colours, smoothed ones, contrast around, colours of border and middle, and the place."""
    rgb = image / 255.0
    height, width = rgb.shape[:2]
    y, x = np.mgrid[0:height, 0:width]
    y, x = (y + 0.5) / height - 0.5, (x + 0.5) / width - 0.5
    grey, colour = rgb.mean(axis=2), rgb.max(axis=2) - rgb.min(axis=2)
    columns = [*np.moveaxis(rgb, 2, 0), rgb.max(axis=2), colour]
    for width_of in (1.5, 4.0):
        columns += [gaussian_filter(c, width_of) for c in np.moveaxis(rgb, 2, 0)]
        mean = gaussian_filter(grey, width_of)
        columns.append(np.sqrt(np.maximum(gaussian_filter(grey**2, width_of) - mean**2, 0.0)))
    edge = np.concatenate(
        [part.reshape(-1, 3) for part in (rgb[:2], rgb[-2:], rgb[:, :2], rgb[:, -2:])]
    )
    middle = rgb[height // 3 : 2 * height // 3, width // 3 : 2 * width // 3].reshape(-1, 3)
    outside, inside = _distance(rgb, edge), _distance(rgb, middle)
    near = [np.exp(-outside), np.exp(-inside)]
    columns += [outside, inside, outside * inside, *near]
    columns += [x, y, x**2, y**2, x * y, x**2 * y, y**2 * x, y**3, x**4, y**4, x**2 * y**2]
    columns += [c * p for c in (grey, colour, *near) for p in (x**2, y, y**2)]
    return np.stack(columns, axis=2)


def _distance(rgb: Array, sample: Array) -> Array:
    """How far colours are from those of a sample, in its standard deviations."""
    away = rgb - sample.mean(axis=0)
    inverse = np.linalg.inv(np.cov(sample.T) + 1e-3 * np.eye(3))
    return np.minimum(np.sqrt(np.einsum("hwi,ij,hwj->hw", away, inverse, away)), MOST) / 3.0


def _scaled(features: dict[int, Any], train: Array) -> dict[int, Any]:
    rows = _flat([features[i] for i in train])
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    return {i: (x - mean) / spread for i, x in features.items()}


def _fitted(features: dict[int, Any], labels: Sequence[Any], images: Array) -> CRFClassifier:
    rows = _flat([features[i] for i in images])
    truth = np.concatenate([labels[i].ravel() for i in images])
    return CRFClassifier(l2=10.0, max_iter=60, tol=1e-3).fit(rows, truth)


def _odds(model: CRFClassifier, x: Array) -> Array:
    """Log-odds of every pixel [height, width]."""
    return model.decision_function(x.reshape(-1, x.shape[2])).reshape(x.shape[:2])


def _flat(images: Sequence[Any]) -> Array:
    return np.concatenate([x.reshape(-1, x.shape[2]) for x in images])
