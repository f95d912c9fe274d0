"""Weights of pairs of labels: what follows what, or stands beside what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps

from chordal._validate import check_flag, listed, numbers
from chordal.plots._cells import Names, colour_bar, draw_table, table_size
from chordal.plots._display import Display, classes_of, name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


FORBIDDEN = "#c9ced6"  # the colour of pairs of weight −inf


@dataclass(eq=False)
class TransitionsDisplay(Display):
    """A weight for each pair of labels: a table of colours, red below and blue above zero,
    grey where a pair is forbidden.

    Parameters
    ----------
    weights : array [n_labels, n_columns]
        From row to column. A forbidden pair has −inf.
    labels : names of the rows
    columns : names of the columns, optional
        By default those of the rows.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=a"], ["w=dog"]]]
    >>> crf = ChainCRF().fit(X, [["D", "N", "V"], ["D", "N"]])
    >>> display = TransitionsDisplay.from_estimator(crf)
    >>> display.weights.shape
    (3, 3)
    >>> display = TransitionsDisplay([[1.0, -0.5], [0.0, 2.0]], ["D", "N"]).plot()
    """

    weights: Any
    labels: Names
    columns: Names | None = None

    def __post_init__(self) -> None:
        self.weights = numbers(self.weights, "weights")
        self.labels = listed(self.labels, "labels")
        if self.columns is not None:
            self.columns = listed(self.columns, "columns")
        columns = self.labels if self.columns is None else self.columns
        expected = (len(self.labels), len(columns))
        if self.weights.shape != expected or not self.weights.size:
            raise ValueError(
                f"weights must have a row for each label and a column for each name, {expected}, "
                f"and not be empty; got shape {self.weights.shape}"
            )
        if not (self.weights < np.inf).all():
            raise ValueError("weights must be numbers or −inf, got NaN or infinity")

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, template: str | None = None, ax: Axes | None = None
    ) -> TransitionsDisplay:
        """Draw the transitions of a fitted chain, or the pair weights of another model.

        Parameters
        ----------
        estimator : fitted estimator
        template : str, optional
            A template of two variables, such as "edges" of `GridCRF` and `GraphCRF`. Chains need
            none.
        ax : matplotlib axes, optional
        """
        classes = classes_of(estimator)
        if template is None:
            if not hasattr(estimator, "transitions_"):
                raise ValueError(
                    f"{name_of(estimator)} has no transitions; name a template of two variables, "
                    "such as template='edges'"
                )
            return cls(estimator.transitions_, classes).plot(ax=ax)
        classes_of(estimator, "template_weights")
        found = estimator.template_weights(template).get("intercept")
        if found is None or found.ndim != 2 or found.shape != (len(classes), len(classes)):
            raise ValueError(
                f"template {template!r} of {name_of(estimator)} has no weight for each pair of "
                "labels"
            )
        return cls(found, classes).plot(ax=ax, xlabel="second label", ylabel="first label")

    def plot(
        self,
        *,
        ax: Axes | None = None,
        xlabel: str = "to",
        ylabel: str = "from",
        colorbar: bool = True,
    ) -> TransitionsDisplay:
        """Draw it.

        Parameters
        ----------
        ax : matplotlib axes, optional
        xlabel, ylabel : str
        colorbar : bool
            Whether to explain the colours.
        """
        check_flag("colorbar", colorbar)
        finite = np.isfinite(self.weights)
        limit = float(np.abs(self.weights[finite]).max(initial=0.0)) or 1.0
        shown = np.ma.array(self.weights, mask=~finite)
        numbers = [[_rounded(w) for w in row] for row in self.weights]
        columns = self.labels if self.columns is None else self.columns
        ax = self._begin(ax, table_size(self.labels, columns), square=True)
        colours = colormaps["RdBu"].with_extremes(bad=FORBIDDEN)
        image = draw_table(
            ax, shown, self.labels, columns, numbers, cmap=colours, vmin=-limit, vmax=limit
        )
        ax.set(xlabel=xlabel, ylabel=ylabel)
        if colorbar:
            colour_bar(ax, image, "weight", shrink=0.85)
        return self


def _rounded(weight: float) -> str:
    """A weight to one digit; nothing where there is none."""
    if weight == 0.0:
        return ""
    if not np.isfinite(weight):
        return "−∞"
    return f"{round(weight, 1) + 0.0:.1f}".replace("-", "−")  # never "−0.0"
