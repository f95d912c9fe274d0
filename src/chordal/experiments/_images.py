"""What experiments on images share: how well pixels were labelled, and rows of pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chordal import plots
from chordal.experiments._base import Array, Outcome, Row
from chordal.structures import Grid


@dataclass(frozen=True)
class Agreement:
    """How labels agree with the truth.

    Parameters
    ----------
    right : float
        The share of pixels with the right label.
    recall : float
        The same share within each class, averaged over classes.
    iou : float
        Intersection over union of the true and the predicted pixels of a class, averaged.
    iou_of_class : array [n_classes]
        Of each class; NaN where a class is neither present nor predicted.
    """

    right: float
    recall: float
    iou: float
    iou_of_class: Array


def agreement(
    truth: Sequence[Any],
    found: Sequence[Any],
    n_classes: int,
    weight: Sequence[Any] | None = None,
    ignore_label: int | None = None,
) -> Agreement:
    """Of all images together; `weight` has the pixels of each label, `ignore_label` is left out.

    Examples
    --------
    >>> a = agreement([[0, 0, 1, 1, 2]], [[0, 1, 1, 1, 1]], n_classes=2, ignore_label=2)
    >>> a.right, a.recall, a.iou_of_class
    (0.75, 0.75, array([0.5       , 0.66666667]))
    """
    t, f = _flat(truth), _flat(found)
    w = np.ones(len(t)) if weight is None else _flat(weight)
    seen = t != ignore_label if ignore_label is not None else np.ones(len(t), dtype=bool)
    cells = np.bincount(t[seen] * n_classes + f[seen], w[seen], n_classes**2)
    table = cells.reshape(n_classes, n_classes)
    both, true, either = table.diagonal(), table.sum(axis=1), table.sum(axis=0) + table.sum(axis=1)
    with np.errstate(invalid="ignore"):
        iou, recall = both / (either - both), both / true
    return Agreement(
        float(both.sum() / table.sum()), float(np.nanmean(recall)), float(np.nanmean(iou)), iou
    )


def _flat(images: Sequence[Any]) -> Array:
    return np.concatenate([np.asarray(image, dtype=np.int64).ravel() for image in images])


def contrast_grid(image: Array, contrast: float = 0.5) -> tuple[Grid, Any]:
    """A grid of two labels and 8 neighbours, and how alike the two colours of each edge are.

    This is exp(−contrast · ‖difference‖² / its mean), divided by the length of the edge.

    Examples
    --------
    >>> grid, alike = contrast_grid(np.array([[[0, 0, 0], [0, 0, 0], [9, 9, 9]]]))
    >>> alike.round(3)
    array([1.   , 0.368])
    """
    grid = Grid([image.shape[:2]], 2, 8)
    a, b = image.reshape(-1, 3).astype(float)[grid.scopes.reshape(-1, 2).T]
    apart = ((a - b) ** 2).sum(axis=1)
    length = np.linalg.norm(grid.directions, axis=1)[grid.direction_of_clique]
    return grid, np.exp(-contrast * apart / max(apart.mean(), 1e-9)) / length


def gains(alone: Agreement, together: Agreement, names: tuple[str, str], why: str) -> list[Row]:
    """Rows for the labels found one by one and those found together, which must be better."""
    rows = []
    for what, before, after in (
        ("pixels right", alone.right, together.right),
        ("mean IoU", alone.iou, together.iou),
    ):
        rows.append(Row(f"{what}, {names[0]}", before))
        rows.append(Row(f"{what}, {names[1]}", after, must=before + 1e-3, why=why))
        why = ""
    return rows


def gallery(
    outcome: Outcome,
    heads: tuple[str, str],
    pictures: Callable[[int], Sequence[Any]],
    scores: Sequence[tuple[float, float]],
    caption: str,
    told: Callable[[int], str] = lambda k: "truth",
) -> None:
    """Rows of image, truth and two labellings, for the largest gains and the largest loss.

    `pictures` of an image are colours [height, width, 3] or masks [height, width]. `scores` has
    the two scores of every image. They are printed above the labellings, after `heads`. `told`
    gives what is printed above the truth.
    """
    gain = np.array([after - before for before, after in scores])
    order = np.argsort(-gain, kind="stable")
    shown = [int(k) for k in (*order[: min(4, len(order) - 1)], order[-1])]
    figure, axes = plots.subplots(len(shown), 4, size=(8.0, 1.75 * len(shown)))
    for row, k in zip(np.atleast_2d(axes), shown, strict=True):
        before, after = scores[k]
        titles = ["image", told(k), f"{heads[0]}: {before:.2f}", f"{heads[1]}: {after:.2f}"]
        for ax, picture, title in zip(row, pictures(k), titles, strict=True):
            ax.imshow(picture, cmap="Greys", vmin=0, vmax=1)
            ax.set_title(title, fontsize=9)
            ax.set_axis_off()
    title = "Where neighbours help most, and where they do most harm"
    outcome.draw(title, f"{caption} The last row has the largest loss.", figure)
