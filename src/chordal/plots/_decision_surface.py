"""How a classifier divides the plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal._validate import array_of, check_flag, check_number, listed
from chordal.plots._checks import check_label, check_shape, label_list, probabilities, real
from chordal.plots._display import Display, classes_of
from chordal.plots._style import FAINT, INK, LABEL, class_colours, legend_columns, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


class Classifier(Protocol):
    """What a picture asks of a classifier; `predict_proba` may be missing."""

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels."""

    def predict(self, X: Floats) -> NDArray[Any]:
        """The label of each row."""

    def predict_proba(self, X: Floats) -> Floats:
        """The probabilities of the labels, for each row."""


WIDTH = 5.0  # inches
MOST_NAMES = 12  # classes that a legend names
LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(eq=False)
class DecisionSurfaceDisplay(Display):
    """The classes that a classifier sees in the plane, and the points of the data.

    Colours mix by p(y | x); solid lines are the borders between classes, thin ones levels of
    the probability. Points that the classifier gets wrong have a dark edge.

    Parameters
    ----------
    grid : (array, array), both [resolution, resolution]
        Places of the plane.
    probabilities : array [resolution, resolution, n_classes]
        p(y | x) there; 0 and 1 where only labels are known.
    smooth : bool
        Whether these are probabilities of the classifier.
    classes : list
    X, y, wrong : points, their labels, and which of them the classifier gets wrong
    names : (str, str)
        The features, which name the axes.

    Examples
    --------
    >>> from chordal import CRFClassifier
    >>> from chordal.datasets import make_masked_classes
    >>> X, y = make_masked_classes()
    >>> display = DecisionSurfaceDisplay.from_estimator(CRFClassifier().fit(X, y), X, y)
    >>> display.probabilities.shape
    (200, 200, 3)
    """

    grid: tuple[Floats, Floats]
    probabilities: Floats
    smooth: bool
    classes: list[Any]
    X: Floats
    y: NDArray[Any]
    wrong: NDArray[np.bool_]
    names: tuple[str, str] = ("x0", "x1")

    def __post_init__(self) -> None:
        self.classes = label_list(self.classes, "classes")
        sides = ("resolution", "resolution")
        first, second = listed(self.grid, "grid", 2, "feature")
        self.grid = (real(first, "grid[0]", *sides), real(second, "grid[1]", *sides))
        shape = self.grid[0].shape
        check_shape(self.grid[1], "grid[1]", shape)
        self.probabilities = probabilities(
            self.probabilities, "probabilities", *shape, len(self.classes)
        )
        check_flag("smooth", self.smooth)
        self.X = real(self.X, "X", "n_samples", 2)
        for what in ("y", "wrong"):
            given = array_of(getattr(self, what))
            check_shape(given, what, (len(self.X),))
            setattr(self, what, given)
        self.wrong = self.wrong.astype(bool)
        first, second = listed(self.names, "names", 2, "feature")
        self.names = (first, second)

    @classmethod
    def from_estimator(
        cls,
        estimator: Classifier,
        X: ArrayLike,
        y: ArrayLike,
        *,
        label: object = None,
        probabilities: bool = True,
        resolution: int = 200,
        ax: Axes | None = None,
    ) -> DecisionSurfaceDisplay:
        """Ask a fitted classifier about the plane, and draw.

        Parameters
        ----------
        estimator : fitted, of two features
            Any classifier or pipeline.
        X, y : array [n_samples, 2], labels
        label : optional
            Show p(label | x) of this class alone.
        probabilities : bool
            Whether colours show probabilities. If False, or if there is no `predict_proba`, they
            show the classes that `predict` gives.
        resolution : int
            Points of the grid in each direction.
        ax : matplotlib axes, optional
        """
        classes = classes_of(estimator, "predict")
        given = getattr(X, "columns", getattr(estimator, "feature_names_in_", cls.names))
        X, y = array_of(X), array_of(y)
        if X.ndim != 2 or X.shape[1] != 2 or not len(X):
            raise ValueError(f"X must be points of the plane, [n_samples, 2], got shape {X.shape}")
        X = real(X, "X", "n_samples", 2)
        check_shape(y, "y", (len(X),))
        check_flag("probabilities", probabilities)
        check_number("resolution", resolution, minimum=2, integer=True)
        grid = _grid(X, resolution)
        smooth = probabilities and hasattr(estimator, "predict_proba")
        points = np.stack([grid[0].ravel(), grid[1].ravel()], axis=1)
        p = _probabilities(estimator, points, smooth).reshape(*grid[0].shape, len(classes))
        found = np.asarray(estimator.predict(X))
        check_shape(found, "what the estimator predicts", y.shape)
        wrong = found != y
        first, second = map(str, given)
        names = (first, second)
        return cls(grid, p, smooth, classes, X, y, wrong, names).plot(label=label, ax=ax)

    def plot(self, *, label: object = None, ax: Axes | None = None) -> DecisionSurfaceDisplay:
        """Draw it; with `label`, p(label | x) of this class alone.

        A new figure, where `ax` is not given, also names the classes.
        """
        check_label(label, self.classes)
        named = ax is None and len(self.classes) <= MOST_NAMES
        ax = self._begin(ax, (WIDTH, 4.4))
        colours = class_colours(len(self.classes))
        if label is None:
            _mixed(ax, self.grid, self.probabilities, colours, self.smooth)
        else:
            k = self.classes.index(label)
            _alone(ax, self.grid, self.probabilities[..., k], colours[k])
        for k, name in enumerate(self.classes):
            own = self.y == name
            edges = [INK if w else "white" for w in self.wrong[own]]
            places = self.X[own].T
            style: dict[str, Any] = {"color": [colours[k]], "edgecolors": edges, "linewidths": 0.8}
            ax.scatter(places[0], places[1], s=22, label=short(name, LABEL), **style)
        new = self.X[~np.isin(self.y, self.classes)].T
        if new.size:
            ax.scatter(new[0], new[1], s=22, color=INK, marker="x", label="other classes")
        if named:
            above: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
            above["ncols"] = legend_columns(ax.get_legend_handles_labels()[1], WIDTH - 0.8)
            ax.legend(frameon=False, fontsize=8, borderaxespad=0.2, handletextpad=0.1, **above)
        ax.set(xlabel=short(self.names[0]), ylabel=short(self.names[1]))
        ax.set(xlim=self.grid[0][0, [0, -1]], ylim=self.grid[1][[0, -1], 0])
        ax.tick_params(color=FAINT)
        for spine in ax.spines.values():
            spine.set(color=FAINT, visible=True)
        return self


def _grid(X: Floats, resolution: int) -> tuple[Floats, Floats]:
    low, high = X.min(axis=0), X.max(axis=0)
    room = 0.06 * np.where(high > low, high - low, 1.0)
    axes = [np.linspace(a, b, resolution) for a, b in zip(low - room, high + room, strict=True)]
    a, b = np.meshgrid(*axes)
    return a, b


def _probabilities(classifier: Classifier, points: Floats, smooth: bool) -> Floats:
    if smooth:
        return np.asarray(classifier.predict_proba(points))
    found = np.asarray(classifier.predict(points))
    return (found[:, None] == np.asarray(classifier.classes_)).astype(np.float64)


def _mixed(ax: Axes, grid: tuple[Floats, Floats], p: Floats, colours: Floats, smooth: bool) -> None:
    """All classes: their colours in the measure of their probabilities."""
    light = 0.45 * colours + 0.55
    _image(ax, grid, np.clip(p @ light, 0.0, 1.0))
    if smooth:
        highest = p.max(axis=-1)
        levels = [level for level in LEVELS if level > 0.5]
        ax.contour(*grid, highest, levels, colors=INK, linewidths=0.5, alpha=0.35)
    for k in range(p.shape[-1]):
        lead = p[..., k] - np.delete(p, k, axis=-1).max(axis=-1)
        if lead.min() < 0.0 < lead.max():
            ax.contour(*grid, lead, [0.0], colors=INK, linewidths=1.2)


def _alone(ax: Axes, grid: tuple[Floats, Floats], p: Floats, colour: Floats) -> None:
    """One class: white where it is impossible, its colour where it is certain."""
    strength = 0.75 * p[..., None]
    _image(ax, grid, 1.0 - strength + strength * colour)
    levels = [level for level in LEVELS if p.min() < level < p.max()]
    if levels:
        widths = [1.2 if level == 0.5 else 0.5 for level in levels]
        lines = ax.contour(*grid, p, levels, colors=INK, linewidths=widths)
        ax.clabel(lines, fontsize=7, fmt="%g")


def _image(ax: Axes, grid: tuple[Floats, Floats], image: Floats) -> None:
    a, b = grid
    extent = (a[0, 0], a[0, -1], b[0, 0], b[-1, 0])
    ax.imshow(image, extent=extent, origin="lower", aspect="auto", interpolation="bilinear")
