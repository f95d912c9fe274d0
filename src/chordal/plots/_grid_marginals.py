"""The probabilities of labels over an image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import ListedColormap
from numpy.typing import NDArray

from chordal.plots._cells import colour_bar
from chordal.plots._checks import label_list, places, probabilities
from chordal.plots._display import Display, classes_of, name_of, numbers_of
from chordal.plots._style import FAINT, LABEL, class_colours, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False)
class GridMarginalsDisplay(Display):
    """An image for each label, dark where it is probable; before them the labels themselves.

    The frame of each image has the colour of its label.

    Parameters
    ----------
    marginals : array [height, width, n_labels]
        P(label | x) of each pixel.
    labels : list
    predicted : array [height, width] of places in `labels`, optional
    gold : array [height, width] of places in `labels`, optional
        The true labels; −1 where they are not known.

    Attributes
    ----------
    axes_ : list of matplotlib axes
        Of the true labels and the predicted ones, where these are given, then of each label.

    Examples
    --------
    >>> from chordal import GridCRF
    >>> rng = np.random.default_rng(0)
    >>> y = [np.repeat([[0, 0, 1, 1]], 3, axis=0) for _ in range(5)]
    >>> X = [image[..., None] + rng.normal(size=(3, 4, 1)) for image in y]
    >>> display = GridMarginalsDisplay.from_estimator(GridCRF(l2=0.1).fit(X, y), X[0], y[0])
    >>> display.marginals.shape, [ax.get_title() for ax in display.axes_]
    ((3, 4, 2), ['gold', 'predicted', 'P(0)', 'P(1)'])
    """

    marginals: NDArray[np.float64]
    labels: Sequence[Any]
    predicted: NDArray[np.int64] | None = None
    gold: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        self.labels = label_list(self.labels, "labels")
        n = len(self.labels)
        self.marginals = probabilities(self.marginals, "marginals", "height", "width", n)
        if not self.marginals.size:
            raise ValueError(f"marginals must not be empty, got shape {self.marginals.shape}")
        for what in ("predicted", "gold"):
            if (own := getattr(self, what)) is not None:
                sides = self.marginals.shape[:2]
                setattr(self, what, places(own, what, *sides, low=-1, high=n - 1))

    @classmethod
    def from_estimator(
        cls, estimator: Any, x: Any, y: Any = None, *, ax: Axes | None = None
    ) -> GridMarginalsDisplay:
        """Ask a fitted model of images about one of them, and draw.

        Parameters
        ----------
        estimator : fitted GridCRF, or another whose marginals are [height, width, n_classes]
        x : one image
        y : its true labels, optional
        ax : matplotlib axes, optional
        """
        classes = classes_of(estimator, "predict_marginals")
        marginals = np.asarray(estimator.predict_marginals([x])[0])
        if marginals.ndim != 3:
            raise ValueError(
                f"{name_of(estimator)} has marginals of shape {marginals.shape} here, not of an "
                "image [height, width, n_classes]"
            )
        shape = marginals.shape[:2]
        predicted = numbers_of(estimator.predict([x])[0], classes, "the prediction")
        gold = None if y is None else numbers_of(y, classes, "y")
        if gold is not None and np.shape(y) != shape:
            raise ValueError(f"y must have the shape {shape}, got {np.shape(y)}")
        return cls(
            marginals,
            classes,
            predicted.reshape(shape),
            None if gold is None else gold.reshape(shape),
        ).plot(ax=ax)

    def plot(self, *, columns: int = 5, ax: Axes | None = None) -> GridMarginalsDisplay:
        """Draw it, with at most `columns` images side by side; `ax` is divided among them."""
        height, width = self.marginals.shape[:2]
        labellings = {"gold": self.gold, "predicted": self.predicted}
        drawn = {name: own for name, own in labellings.items() if own is not None}
        n = len(drawn) + len(self.labels)
        tall = 0.35 + 2.1 * min(2.0, max(0.3, height / width))
        panels: list[Axes] = self._panels(ax, n, columns, (2.2, tall))
        colours = ListedColormap(class_colours(len(self.labels)))
        for own, (name, image) in zip(panels, drawn.items(), strict=False):
            known = np.ma.array(image, mask=image < 0)
            style: dict[str, Any] = {"cmap": colours, "vmin": -0.5, "vmax": len(self.labels) - 0.5}
            own.imshow(known, interpolation="nearest", **style)
            own.set_title(name, fontsize=9)
        for k, label in enumerate(self.labels):
            own = panels[len(drawn) + k]
            shown = own.imshow(
                self.marginals[..., k], cmap="Blues", vmin=0.0, vmax=1.0, interpolation="nearest"
            )
            own.set_title(f"P({short(label, LABEL)})", fontsize=9)
        for k, own in enumerate(panels, -len(drawn)):
            own.set(xticks=[], yticks=[])
            for spine in own.spines.values():  # of the colour that the label has in labellings
                spine.set(color=FAINT if k < 0 else colours(k), lw=1.0 if k < 0 else 2.0)
                spine.set_visible(True)
        colour_bar(self.ax_, shown, "marginal probability", among=panels, shrink=0.85)
        self.axes_ = panels
        return self
