"""Labels along a sequence as strips of colour: the truth above what models say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_flag
from chordal.plots._checks import label_list
from chordal.plots._display import Display, classes_of
from chordal.plots._style import (
    INK,
    LABEL,
    class_colours,
    inches_of,
    legend_columns,
    short,
    width_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NAMES = 24  # labels that a legend can hold
GOLD = "gold"
WIDTH = 7.2  # inches


@dataclass(eq=False)
class SegmentationDisplay(Display):
    """Strips of labels along one sequence, the true ones on top.

    A dark line under a strip marks where it differs from the first one.

    Parameters
    ----------
    strips : dict {name: labels}
        All of one length; the first is the truth.
    labels : list, optional
        All labels, in the order of their colours; by default those that occur, sorted.

    Attributes
    ----------
    codes : array [n_strips, n_positions]
        Numbers of the labels: places in `labels`.

    Examples
    --------
    >>> display = SegmentationDisplay.from_predictions(list("aaabbb"), list("aabbbb"))
    >>> display.codes.tolist()
    [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1]]
    """

    strips: Mapping[str, Sequence[Any]]
    labels: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.strips, Mapping):
            raise TypeError(f"strips must be a dict of name to labels, got {self.strips!r:.60}")
        given = {name: _labels(own, name) for name, own in self.strips.items()}
        lengths = {name: len(own) for name, own in given.items()}
        if not lengths or not max(lengths.values()):
            raise ValueError("strips is empty: there is nothing to draw")
        if len(set(lengths.values())) > 1:
            raise ValueError(f"strips must have one length, got {lengths}")
        seen = {label for own in given.values() for label in own}
        if self.labels is None:
            try:
                self.labels = sorted(seen)
            except TypeError:
                self.labels = sorted(seen, key=str)
        self.labels = label_list(self.labels, "labels")
        place: dict[str, Any] = {label: k for k, label in enumerate(self.labels)}
        if missing := seen - place.keys():
            raise ValueError(f"labels lacks {min(missing, key=str)!r}, which a strip has")
        self.codes: NDArray[np.int64] = np.array(
            [[place[label] for label in own] for own in given.values()]
        )

    @classmethod
    def from_estimator(
        cls, estimator: Any, x: Any, y: Sequence[Any], *, ax: Axes | None = None
    ) -> SegmentationDisplay:
        """Draw what a fitted estimator predicts for one sequence under its true labels y."""
        classes = classes_of(estimator, "predict")
        known = set(classes)
        extra = sorted({label for label in _labels(y, "y") if label not in known}, key=str)
        strips = {GOLD: y, "predicted": estimator.predict([x])[0]}
        return cls(strips, [*classes, *extra]).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Sequence[Any],
        y_pred: Sequence[Any] | Mapping[str, Sequence[Any]],
        *,
        labels: Sequence[Any] | None = None,
        ax: Axes | None = None,
    ) -> SegmentationDisplay:
        """Draw the labels of one sequence.

        Parameters
        ----------
        y_true : labels
        y_pred : labels, or dict {name of a model: labels}
        labels : list, optional
            All labels, in the order of their colours.
        ax : matplotlib axes, optional
        """
        found = dict(y_pred) if isinstance(y_pred, Mapping) else {"predicted": y_pred}
        return cls({GOLD: y_true, **found}, labels).plot(ax=ax)

    def plot(
        self, *, legend: bool = True, xlabel: str = "position", ax: Axes | None = None
    ) -> SegmentationDisplay:
        """Draw it.

        Parameters
        ----------
        legend : bool
            Whether to name the colours of the labels that occur (up to 24 of them).
        xlabel : str
            What runs along the sequence, with its unit.
        ax : matplotlib axes, optional
        """
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        check_flag("legend", legend)
        assert self.labels is not None
        n_strips, n = self.codes.shape
        seen = np.unique(self.codes)
        names = [short(self.labels[k], LABEL) for k in seen]
        named = legend and len(seen) <= MOST_NAMES
        across = WIDTH - 0.3 - width_of(self.strips) if ax is None else inches_of(ax)[0]
        columns = legend_columns(names, across)
        above = 0.1 + 0.17 * -(-len(seen) // columns) if named else 0.0
        ax = self._begin(ax, (WIDTH, 0.75 + 0.34 * n_strips + above))
        colours = class_colours(len(self.labels))
        limits: dict[str, Any] = {
            "cmap": ListedColormap(colours),
            "vmin": -0.5,
            "vmax": len(self.labels) - 0.5,
        }
        for k, row in enumerate(self.codes):
            box = (0.5, n + 0.5, k + 0.34, k - 0.4)
            ax.imshow(row[None], extent=box, aspect="auto", interpolation="nearest", **limits)
            wrong = np.flatnonzero(row != self.codes[0])
            ax.hlines(np.full(len(wrong), k + 0.41), wrong + 0.5, wrong + 1.5, color=INK, lw=2.2)
        ax.set(xlim=(0.5, n + 0.5), ylim=(n_strips - 0.5, -0.5), xlabel=xlabel)
        ax.set_yticks(range(n_strips), [short(name, LABEL) for name in self.strips])
        ax.tick_params(axis="y", length=0)
        ax.spines[:].set_visible(False)
        if named:
            patches = [
                Patch(color=colours[k], label=name) for k, name in zip(seen, names, strict=True)
            ]
            ax.legend(
                handles=patches,
                frameon=False,
                fontsize=8,
                ncols=columns,
                loc="lower left",
                bbox_to_anchor=(0.0, 1.0),
                borderaxespad=0.1,
                handlelength=1.0,
            )
        return self


def _labels(given: object, name: str) -> list[Any]:
    """The labels of one sequence or image, position by position."""
    try:
        labels: list[Any] = np.asarray(given).ravel().tolist()
        hash(tuple(labels))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be the labels of one sequence, got {given!r:.60}") from None
    return labels
