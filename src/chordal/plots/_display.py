"""What every display has: the axes it was drawn into, and questions to estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import not_fitted
from chordal._validate import is_list, listed
from chordal.plots._checks import check_count
from chordal.plots._style import axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Display:
    """A picture and its data, in scikit-learn's style.

    `from_estimator` and `from_predictions` collect the data and draw them; `plot` draws them
    again. The axes and the figure of the last drawing are `ax_` and `figure_`.
    """

    ax_: Axes
    figure_: Figure

    def _begin(self, ax: Axes | None, size: tuple[float, float], square: bool = False) -> Axes:
        """The axes to draw into; `size` is that of a new figure, in inches."""
        ax = axes_or_new(ax, size, square)
        figure = ax.figure.figure  # of a subfigure too
        assert figure is not None
        self.ax_, self.figure_ = ax, figure
        return ax

    def _panels(self, ax: Axes | None, n: int, columns: int, size: tuple[float, float]) -> Any:
        """`n` axes in rows of at most `columns`, in the place of `ax`; `size` is that of each."""
        check_count("columns", columns)
        rows = -(-n // columns)
        columns = -(-n // rows)  # rows of about the same length
        ax = self._begin(ax, (size[0] * columns, size[1] * rows))
        spec = ax.get_subplotspec()
        if spec is None:
            raise ValueError(
                "ax must be axes of a grid, such as plt.subplots makes, to be divided into panels"
            )
        ax.set_axis_off()
        grid = spec.subgridspec(rows, columns)
        return [ax.figure.add_subplot(grid[k // columns, k % columns]) for k in range(n)]


def check_has(estimator: object, *names: str) -> None:
    """Raise an error unless this is a fitted estimator with these attributes."""
    for name in names:
        if hasattr(estimator, name):
            continue
        if not hasattr(estimator, "fit"):
            raise TypeError(f"estimator must be a fitted estimator, got {name_of(estimator)}")
        if not hasattr(estimator, "classes_"):
            raise not_fitted(estimator)
        raise TypeError(f"{name_of(estimator)} has no {name}, which this picture needs")


def classes_of(estimator: Any, *names: str) -> list[Any]:
    """The labels of a fitted estimator, which must have these attributes."""
    check_has(estimator, "classes_", *names)
    return np.asarray(estimator.classes_).tolist()


def name_of(estimator: object) -> str:
    """The name of its class, for messages."""
    return type(estimator).__name__


def as_sequences(y: Sequence[Any]) -> list[Any]:
    """Labels as sequences of them: a flat list is one sequence, an image a sequence of pixels."""
    if not is_list(y):
        raise TypeError(f"labels must be a list of them, or of sequences; got {type(y).__name__}")
    given = list(y)
    if given and not is_list(given[0]):
        return [given]
    for i, own in enumerate(given):
        listed(own, f"labels of sequence {i}")
    return [own.ravel() if isinstance(own, np.ndarray) else own for own in given]


def flat_labels(labels: object, what: str) -> list[Any]:
    """One label after another, of an array of any shape."""
    flat: list[Any] = np.asarray(labels, dtype=object).ravel().tolist()
    odd = [label for label in flat if isinstance(label, (list, dict, set, np.ndarray))]
    if odd:
        raise ValueError(f"{what} must have one label per position, got {odd[0]!r:.60} for one")
    return flat


def numbers_of(labels: object, classes: Sequence[Any], what: str) -> NDArray[np.int64]:
    """The places of labels in `classes`; −1 where a label is not observed (None)."""
    place: dict[str, Any] = {label: k for k, label in enumerate(classes)}
    flat = flat_labels(labels, what)
    unknown = [label for label in flat if label is not None and label not in place]
    if unknown:
        raise ValueError(
            f"{what} has the label {unknown[0]!r}, which the model does not know; put None there"
        )
    return np.array([-1 if label is None else place[label] for label in flat], dtype=np.int64)
