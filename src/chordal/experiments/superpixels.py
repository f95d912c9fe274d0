"""Superpixels: what a photograph shows, region by region."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, ClassVar, final

import numpy as np

from chordal import CRFClassifier, plots
from chordal.datasets import MSRCSuperpixels, load_msrc_images, load_msrc_superpixels
from chordal.experiments._base import Array, Experiment, Outcome, Row, Setup, Table
from chordal.experiments._images import Agreement, agreement, gains, gallery
from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import Graph

LEFT_OUT = ("void", "horse", "mountain")  # the other 21 classes are those of published figures
VOID = 21
COLOUR, PLACE = slice(0, 3), slice(6, 8)  # columns of features: mean colour; row and column
#: Strengths that are tried: of like labels, of contrast (from none to all), of class pairs.
TRIED = [(0.2, 0.4, 0.8, 1.6), (0.0, 1.0), (0.0, 0.1, 0.3, 0.6)]
LEARN_THEN_CHOOSE = (0.47, 0.57)  # where these parts of the images end
LEAST, MOST = -8.0, 5.0  # of log-probabilities; of features, in standard deviations


@final
class Superpixels(Experiment):
    """MSRC: a classifier of superpixels, then a graph on top of it."""

    title: ClassVar[str] = "Superpixels (MSRC)"
    about: ClassVar[str] = (
        "What does each region of a photograph show? A classifier sees colours and texture of a "
        "superpixel by itself; a better one sees the means of its neighbours and of the image "
        "too. To either, the graph adds how much neighbours like to be of one class, less so "
        "where colours differ, and which classes are seen side by side: cows stand on grass."
    )
    data: ClassVar[str] = "MSRC v2: 591 photographs in 64,035 superpixels, 21 classes"
    split: ClassVar[str] = (
        "by chance within each kind of scene: 47% of the images to learn from, 10% to choose three "
        "strengths, 43% to test; for the test, the classifier learns from the first two"
    )
    model: ClassVar[str] = (
        "CRFClassifier on features and their squares; graph with Potts pairs, contrast, and "
        "log-ratios of neighbouring classes; best labelling by TRW-S"
    )
    source: ClassVar[str] = (
        "TextonBoost (Shotton et al., 2006) has 0.696 of the pixels alone and 0.722 with a grid by "
        "a split of its own; ours are pixels by the main class of their superpixel"
    )

    def run(self, setup: Setup) -> Outcome:
        """Everything, from the data to the figures."""
        msrc = _Msrc(load_msrc_superpixels(), 8 if setup.quick else 1)
        outcome = Outcome()
        for what, around, l2 in (("own features", False, 10.0), ("surroundings", True, 30.0)):
            X = msrc.features(around)
            setup.say(f"{what}: choosing the strengths")
            odds = msrc.odds(X, msrc.train, msrc.choose, l2)
            pairs = msrc.class_pairs(msrc.train)
            tried = product(*(values[:: 1 + setup.quick] for values in TRIED))
            quality = {t: msrc.score(msrc.choose, odds, pairs, t) for t in tried}
            best = max(quality, key=lambda t: quality[t].right + quality[t].iou)
            setup.say(f"{what}: test images")
            odds = msrc.odds(X, [*msrc.train, *msrc.choose], msrc.test, l2)
            pairs = msrc.class_pairs([*msrc.train, *msrc.choose])
            alone = [odds[i].argmax(axis=1) for i in msrc.test]
            found = [msrc.labelled(i, odds[i], pairs, best) for i in msrc.test]
            before, after = msrc.agreement(msrc.test, alone), msrc.agreement(msrc.test, found)
            why = "strengths {:g} (contrast {:g}) and {:g}".format(*best)
            outcome.rows += gains(before, after, (f"{what}: alone", f"{what}: graph"), why)
            outcome.rows.append(Row(f"mean recall, {what}: alone", before.recall))
            outcome.rows.append(Row(f"mean recall, {what}: graph", after.recall))
        outcome.tables.append(
            Table(
                "Intersection over union by class, with surroundings",
                ["class", "alone", "graph"],
                list(zip(msrc.names, before.iou_of_class, after.iou_of_class, strict=True)),
            )
        )
        self._pictures(outcome, msrc, alone, found)
        self._class_tables(outcome, msrc, pairs, found)
        return outcome

    def _pictures(
        self, outcome: Outcome, msrc: _Msrc, alone: Sequence[Array], found: Sequence[Array]
    ) -> None:
        photographs = load_msrc_images().images
        hues = plots.class_colours(VOID)[8 * np.arange(VOID) % VOID]  # neighbours differ
        colours = np.concatenate([hues, np.ones((1, 3))])

        def row(k: int) -> list[Any]:
            i = msrc.test[k]
            place = _regions(photographs[i], msrc.data.X[i][:, PLACE])
            labellings = (msrc.labels[i], alone[k], found[k])
            return [photographs[i], *(colours[own[place]] for own in labellings)]

        scores = [
            (msrc.agreement([i], [a]).iou, msrc.agreement([i], [f]).iou)
            for i, a, f in zip(msrc.test, alone, found, strict=True)
        ]

        def told(k: int) -> str:
            own = msrc.labels[msrc.test[k]]
            return ", ".join(msrc.names[c] for c in np.unique(own[own != VOID]))

        gallery(
            outcome,
            ("alone", "graph"),
            row,
            scores,
            "White is void; superpixels are drawn around their centres; figures are mean IoU.",
            told,
        )

    def _class_tables(
        self, outcome: Outcome, msrc: _Msrc, pairs: Array, found: Sequence[Array]
    ) -> None:
        drawn = plots.TransitionsDisplay(pairs, msrc.names)
        drawn.plot(xlabel="neighbour", ylabel="class", colorbar=False)
        outcome.draw(
            "Who lives beside whom",
            "Log-ratios of how often classes are neighbours to how often they would be by chance.",
            drawn.figure_,
        )
        truth = np.concatenate([msrc.labels[i] for i in msrc.test])
        seen = truth != VOID
        named = [np.array(msrc.names)[c[seen]] for c in (truth, np.concatenate(found))]
        counted = plots.ConfusionDisplay.from_predictions(
            *([own.tolist()] for own in named), labels=msrc.names
        )
        caption = "Superpixels of the test images, with surroundings."
        outcome.draw("Confusion", caption, counted.figure_)


class _Msrc:
    """The graphs, how they are split, and their features."""

    def __init__(self, data: MSRCSuperpixels, every: int) -> None:
        self.data = data
        self.train, self.choose, self.test = (part[::every] for part in _parts(data.names))
        kept = [c for c, name in enumerate(data.class_names) if name not in LEFT_OUT]
        self.names = [data.class_names[c] for c in kept]
        number = np.full(len(data.class_names), VOID)
        number[kept] = np.arange(len(kept))
        self.labels = [number[y] for y in data.y]
        apart = np.concatenate([self._apart(i) for i in self.train])
        self.beta = 0.5 / apart.mean()  # as GrabCut does

    def _apart(self, i: int) -> Array:
        """How far the colours of neighbours are from each other, squared."""
        a, b = self.data.X[i][self.data.edges[i].T][:, :, COLOUR]
        return ((a - b) ** 2).sum(axis=1)

    def features(self, around: bool) -> list[Any]:
        """Scaled features and their squares; with the means of neighbours and of the image."""
        rows = np.concatenate([self.data.X[i] for i in self.train])
        mean, spread = rows.mean(axis=0), rows.std(axis=0)
        spread[spread == 0.0] = 1.0
        scaled = [np.clip((x - mean) / spread, -MOST, MOST) for x in self.data.X]
        if around:
            scaled = [self._around(i, x) for i, x in enumerate(scaled)]
        return [np.concatenate([x, x**2 / 4.0], axis=1) for x in scaled]

    def _around(self, i: int, x: Array) -> Array:
        beside = np.zeros((len(x), len(x)))
        a, b = self.data.edges[i].T
        beside[a, b] = beside[b, a] = self.data.boundary[i]
        beside /= np.maximum(beside.sum(axis=1, keepdims=True), 1.0)
        whole = np.average(x, axis=0, weights=self.data.area[i])
        return np.concatenate([x, beside @ x, np.broadcast_to(whole, x.shape)], axis=1)

    def odds(
        self, X: Sequence[Array], seen: Sequence[int], asked: Sequence[int], l2: float
    ) -> dict[int, Any]:
        """Log-probabilities of classes, by a classifier that saw some images."""
        truth = np.concatenate([self.labels[i] for i in seen])
        known = truth != VOID
        rows = np.concatenate([X[i] for i in seen])[known]
        model = CRFClassifier(l2=l2, max_iter=60, tol=1e-4).fit(rows, truth[known])
        out = {}
        for i in asked:
            out[i] = np.full((len(X[i]), len(self.names)), LEAST)
            out[i][:, model.classes_] = np.maximum(model.predict_log_proba(X[i]), LEAST)
        return out

    def class_pairs(self, seen: Sequence[int]) -> Array:
        """log p(a, b) / p(a) p(b) of different classes at the ends of edges."""
        n = len(self.names)
        counts = np.ones((n + 1, n + 1))
        for i in seen:
            np.add.at(counts, tuple(self.labels[i][self.data.edges[i]].T), 1.0)
        joint = (counts + counts.T)[:n, :n]
        np.fill_diagonal(joint, 0.0)
        joint /= joint.sum()
        share = joint.sum(axis=1)
        ratio = joint / np.outer(share, share)
        np.fill_diagonal(ratio, 1.0)
        return np.clip(np.log(ratio), -3.0, 1.0)

    def labelled(self, i: int, odds: Array, pairs: Array, strengths: Sequence[float]) -> Array:
        """The best labelling of an image."""
        alike, contrast, habit = strengths
        fade = 1.0 - contrast + contrast * np.exp(-self.beta * self._apart(i))
        tables = alike * fade[:, None, None] * np.eye(len(pairs)) + habit * pairs
        graph = Graph([len(odds)], [self.data.edges[i]], len(pairs))
        scores = Potentials(graph, odds, tables, np.arange(len(tables)))
        return INFERENCE.resolve("trw_s").map(scores).labels

    def agreement(self, images: Sequence[int], found: Sequence[Any]) -> Agreement:
        truth, area = [self.labels[i] for i in images], [self.data.area[i] for i in images]
        return agreement(truth, found, len(self.names), area, VOID)

    def score(
        self,
        images: Sequence[int],
        odds: Mapping[int, Array],
        pairs: Array,
        strengths: Sequence[float],
    ) -> Agreement:
        return self.agreement(images, [self.labelled(i, odds[i], pairs, strengths) for i in images])


def _parts(names: Sequence[str]) -> tuple[list[int], list[int], list[int]]:
    """Images to learn from, to choose by and to test, of every scene (a name's first number)."""
    random = np.random.default_rng(Superpixels.seed)
    scene = np.array([name.split("_")[0] for name in names])
    parts: tuple[list[int], list[int], list[int]] = ([], [], [])
    for own in np.unique(scene):
        images = random.permutation(np.flatnonzero(scene == own))
        ends = [round(share * len(images)) for share in LEARN_THEN_CHOOSE]
        for part, some in zip(parts, np.split(images, ends), strict=True):
            part.extend(some.tolist())
    return parts


def _regions(image: Array, centres: Array) -> Array:
    """The superpixel of each pixel, by place and colour, as they were made."""
    height, width = image.shape[:2]
    y, x = np.mgrid[0:height, 0:width] + 0.5
    far = (y[..., None] - centres[:, 0] * height) ** 2 + (x[..., None] - centres[:, 1] * width) ** 2
    rgb, found = image / 255.0, far.argmin(axis=2)
    count = np.maximum(np.bincount(found.ravel(), minlength=len(centres)), 1)
    for _ in range(2):
        sums = [np.bincount(found.ravel(), c.ravel(), len(centres)) for c in np.moveaxis(rgb, 2, 0)]
        mean = np.stack(sums, axis=1) / count[:, None]
        found = (far + 200.0 * ((rgb[:, :, None] - mean) ** 2).sum(axis=3)).argmin(axis=2)
        count = np.maximum(np.bincount(found.ravel(), minlength=len(centres)), 1)
    return found
