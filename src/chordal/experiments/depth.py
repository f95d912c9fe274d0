"""Depth from two views: a grid whose labels have an order."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np

from chordal import plots
from chordal.datasets import StereoScene, make_stereo_scene
from chordal.experiments._base import Experiment, Outcome, Row, Setup
from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import Grid

N_DISPARITIES = 8
STRENGTHS = (2.0, 4.0, 8.0, 16.0, 32.0)
SMOOTHNESS = (0.1, 0.3, 0.6)


@final
class Depth(Experiment):
    """Stereo: each pixel by itself, and all of them together."""

    title: ClassVar[str] = "Depth from two views"
    about: ClassVar[str] = (
        "How far a pixel is shifted between two views tells how near it is. A pixel alone matches "
        "in many places; the grid prefers neighbours at similar depths, but lets depth jump: the "
        "price of a difference grows up to two steps, and no further."
    )
    data: ClassVar[str] = "invented scenes of textured things before a wall, with noise"
    split: ClassVar[str] = "two scenes to choose two strengths, four others to test"
    model: ClassVar[str] = (
        "grid of 8 ordered labels; truncated absolute differences of grey and of labels; the best "
        "labelling by α-expansion, with TRW-S's bound"
    )
    source: ClassVar[str] = "the lectures' example of depth; no published figure"

    def run(self, setup: Setup) -> Outcome:
        size = (24, 32) if setup.quick else (60, 80)
        scenes = [
            make_stereo_scene(*size, N_DISPARITIES, random_state=self.seed + k)
            for k in range(3 if setup.quick else 6)
        ]
        train, test = scenes[:2], scenes[2:]
        setup.say("choosing the strengths")
        pairs = [(a, b) for a in STRENGTHS for b in SMOOTHNESS]
        best = min(pairs, key=lambda p: sum(_error(s, _labelled(s, *p)[0]) for s in train))
        setup.say("test scenes")
        outcome = Outcome()
        alone = [_labelled(scene, best[0], 0.0)[0] for scene in test]
        found = [_labelled(scene, *best) for scene in test]
        errors = np.array(
            [[_error(s, a), _error(s, f[0])] for s, a, f in zip(test, alone, found, strict=True)]
        )
        gaps = [gap for _, gap in found]
        outcome.rows += [
            Row("mean absolute error, every pixel by itself", errors[:, 0].mean()),
            Row(
                "mean absolute error, grid",
                errors[:, 1].mean(),
                must=0.5 * errors[:, 0].mean(),
                lower=True,
                why=f"asked: half of it; strengths {best[0]:g} and {best[1]:g}",
            ),
            Row(
                "α-expansion's score below TRW-S's bound, relatively",
                float(np.mean(gaps)),
                must=0.01,
                lower=True,
                digits=4,
            ),
        ]
        self._picture(outcome, test, alone, [labels for labels, _ in found])
        return outcome

    def _picture(self, outcome: Outcome, scenes: Any, alone: Any, found: Any) -> None:
        n = min(3, len(scenes))
        figure, axes = plots.subplots(n, 4, size=(10.0, 2.1 * n))
        for row, scene, unary, grid in zip(np.atleast_2d(axes), scenes, alone, found, strict=False):
            row[0].imshow(scene.left, cmap="Greys_r")
            for ax, image in zip(row[1:], (scene.disparity, unary, grid), strict=True):
                ax.imshow(image, cmap="viridis", vmin=0, vmax=N_DISPARITIES - 1)
            for ax, title in zip(row, ("left view", "truth", "pixels alone", "grid"), strict=True):
                ax.set_title(title)
                ax.set_axis_off()
        outcome.draw("Scenes", "Yellow is near, violet far.", figure)


def _labelled(scene: StereoScene, strength: float, smoothness: float) -> tuple[Any, float]:
    """Disparities, and how far their score is below what none exceeds."""
    height, width = scene.left.shape
    cost = np.full((height, width, N_DISPARITIES), 0.5)
    for d in range(N_DISPARITIES):
        shifted = np.abs(scene.left[:, d:] - scene.right[:, : width - d])
        cost[:, d:, d] = np.minimum(shifted, 0.5)
    if smoothness == 0.0:
        return cost.argmin(axis=2), 0.0
    steps = np.abs(np.subtract.outer(np.arange(N_DISPARITIES), np.arange(N_DISPARITIES)))
    table = -smoothness * strength * np.minimum(steps, 2) / 2.0
    potentials = Potentials(Grid([(height, width)], N_DISPARITIES), -strength * cost, table)
    found = INFERENCE.resolve("alpha_expansion").map(potentials)
    bound = INFERENCE.resolve("trw_s").map(potentials).bound
    gap = 0.0 if bound is None else float((bound - found.score)[0] / abs(bound[0]))
    return found.labels.reshape(height, width), gap


def _error(scene: StereoScene, labels: Any) -> float:
    return float(np.abs(labels - scene.disparity).mean())
