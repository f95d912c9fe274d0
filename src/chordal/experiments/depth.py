"""Depth from two views: a grid whose labels have an order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, final

import numpy as np

from chordal.datasets import StereoScene, make_stereo_scene
from chordal.experiments._base import Array, Experiment, Outcome, Row, Setup, Table
from chordal.experiments._pictures import confusion, image_rows
from chordal.inference import INFERENCE
from chordal.potentials import Potentials
from chordal.structures import Grid

N_DISPARITIES = 8
PRICES = (0.05, 0.1, 0.2, 0.4, 0.8)  # of a step between neighbours
JUMPS = (1, 2, 4)  # steps beyond which the price grows no more


@final
class Depth(Experiment):
    """Stereo: each pixel alone, and all of them together."""

    title: ClassVar[str] = "Depth from two views"
    about: ClassVar[str] = (
        "How far a pixel is shifted between two views tells how near it is. A pixel alone matches "
        "in many places; the grid prefers neighbours at similar depths, but lets depth jump: the "
        "price of a difference grows up to some steps, and no further."
    )
    data: ClassVar[str] = "invented scenes of textured things before a wall, with noise"
    split: ClassVar[str] = "two scenes to choose the price of a step and its limit, four to test"
    model: ClassVar[str] = (
        "grid of 8 ordered labels; truncated absolute differences of grey and of labels; the best "
        "labelling by α-expansion, with TRW-S's bound"
    )
    source: ClassVar[str] = "the lectures' example of depth; no published figure"

    def run(self, setup: Setup) -> Outcome:
        """Everything, from the data to the figures."""
        size = (24, 32) if setup.quick else (60, 80)
        scenes = [
            make_stereo_scene(*size, N_DISPARITIES, random_state=self.seed + k)
            for k in range(3 if setup.quick else 6)
        ]
        train, test = scenes[:2], scenes[2:]
        setup.say("choosing the price")
        pairs = [(a, b) for a in PRICES for b in JUMPS]
        tried = {p: sum(_error(s, _labelled(s, *p)) for s in train) / len(train) for p in pairs}
        best = min(pairs, key=lambda p: tried[p])
        setup.say("test scenes")
        outcome = Outcome()
        alone = [_costs(scene).argmin(axis=2) for scene in test]
        found = [_labelled(scene, *best) for scene in test]
        errors = np.array(
            [[_error(s, a), _error(s, f)] for s, a, f in zip(test, alone, found, strict=True)]
        )
        gaps = [_gap(s, f, *best) for s, f in zip(test, found, strict=True)]
        outcome.rows += [
            Row("mean absolute error, every pixel by itself", errors[:, 0].mean()),
            Row(
                "mean absolute error, grid",
                errors[:, 1].mean(),
                must=0.5 * errors[:, 0].mean(),
                lower=True,
                why=f"half of it; a step costs {best[0]:g}, up to {best[1]} of them",
            ),
            Row(
                "α-expansion's score below TRW-S's bound, relatively",
                float(np.mean(gaps)),
                must=0.01,
                lower=True,
                digits=4,
            ),
        ]
        self._pictures(outcome, test, alone, found)
        self._prices(outcome, tried)
        return outcome

    def _pictures(
        self,
        outcome: Outcome,
        scenes: Sequence[StereoScene],
        alone: Sequence[Array],
        found: Sequence[Array],
    ) -> None:
        rows = [
            [scene.left, scene.disparity, unary, grid]
            for scene, unary, grid in zip(scenes, alone, found, strict=True)
        ]
        depths = (0.0, N_DISPARITIES - 1.0)
        outcome.pictures.append(
            image_rows(
                "Scenes",
                "Yellow is near, violet far.",
                rows,
                ["left view", "truth", "pixels alone", "grid"],
                cmaps=["Greys_r", "viridis", "viridis", "viridis"],
                limits=[None, depths, depths, depths],
            )
        )
        truth = [scene.disparity.ravel() for scene in scenes]
        for title, labels in (("Pixels alone", alone), ("Grid", found)):
            outcome.pictures.append(
                confusion(
                    f"{title}: what is taken for what",
                    "Disparities, in percent of the true one; near the diagonal is nearly right.",
                    truth,
                    [label.ravel() for label in labels],
                    range(N_DISPARITIES),
                )
            )

    def _prices(self, outcome: Outcome, errors: dict[tuple[float, int], float]) -> None:
        head = ["price of a step", *(f"up to {b}" for b in JUMPS)]
        rows = [[f"{a:g}", *(errors[a, b] for b in JUMPS)] for a in PRICES]
        outcome.tables.append(Table("Mean absolute error on the two training scenes", head, rows))


def _costs(scene: StereoScene) -> Array:
    """How badly each disparity fits each pixel; at most 0.5, also where the other view ends."""
    height, width = scene.left.shape
    cost = np.full((height, width, N_DISPARITIES), 0.5)
    for d in range(N_DISPARITIES):
        shifted = np.abs(scene.left[:, d:] - scene.right[:, : width - d])
        cost[:, d:, d] = np.minimum(shifted, 0.5)
    return cost


def _potentials(scene: StereoScene, price: float, jump: int) -> Potentials:
    steps = np.abs(np.subtract.outer(np.arange(N_DISPARITIES), np.arange(N_DISPARITIES)))
    grid = Grid([scene.left.shape], N_DISPARITIES)
    return Potentials(grid, -_costs(scene), -price * np.minimum(steps, jump))


def _labelled(scene: StereoScene, price: float, jump: int) -> Array:
    found = INFERENCE.resolve("alpha_expansion").map(_potentials(scene, price, jump))
    return found.labels.reshape(scene.left.shape)


def _gap(scene: StereoScene, labels: Array, price: float, jump: int) -> float:
    """How far the score of a labelling is below what none exceeds, as a share of the latter."""
    potentials = _potentials(scene, price, jump)
    bound = INFERENCE.resolve("trw_s").map(potentials).bound
    assert bound is not None
    return float((bound - potentials.score(labels.ravel()))[0] / abs(bound[0]))


def _error(scene: StereoScene, labels: Array) -> float:
    return float(np.abs(labels - scene.disparity).mean())
