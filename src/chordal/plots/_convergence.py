"""How a fit came down to its objective."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from chordal._validate import check_choice
from chordal.estimators import FitReport
from chordal.plots._display import Display, check_has
from chordal.plots._style import (
    FAINT,
    bare,
    class_colours,
    inches_of,
    legend_columns,
    remark,
    short,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
WIDTH = 5.2  # inches
AXES = {"iteration": "iteration", "time": "time (s)"}


@dataclass(eq=False)
class ConvergenceDisplay(Display):
    """The objective, the gap or the validation score, by iterations or by time.

    Parameters
    ----------
    reports : dict {name: FitReport}
        `fit_report_` of fitted models. Several should be of the same objective on the same data:
        distances are taken to the best value of all.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from chordal import CRFClassifier
    >>> crf = CRFClassifier().fit(*load_iris(return_X_y=True))
    >>> display = ConvergenceDisplay.from_estimator(crf)
    >>> display = ConvergenceDisplay.from_reports({"lbfgs": crf.fit_report_}, x="time")
    """

    reports: Mapping[str, FitReport]

    def __post_init__(self) -> None:
        given = self.reports.values() if isinstance(self.reports, Mapping) else [self.reports]
        for report in given:
            if not isinstance(report, FitReport):
                got = reprlib.repr(report)
                raise TypeError(f"reports must be a FitReport or a dict of them, got {got}")
        if not self.reports:
            raise ValueError("reports is empty: give at least one")

    @classmethod
    def from_estimator(cls, estimator: Any, **options: Any) -> ConvergenceDisplay:
        """Draw the fit of an estimator, or of several in a dict by name; options of `plot`."""
        named = dict(estimator) if isinstance(estimator, Mapping) else {"": estimator}
        for own in named.values():
            check_has(own, "fit_report_")
        return cls({name: own.fit_report_ for name, own in named.items()}).plot(**options)

    @classmethod
    def from_reports(
        cls, reports: FitReport | Mapping[str, FitReport], **options: Any
    ) -> ConvergenceDisplay:
        """Draw a report, or several in a dict by name; options of `plot`."""
        return cls(dict(reports) if isinstance(reports, Mapping) else {"": reports}).plot(**options)

    def plot(
        self, *, what: str = "objective", x: str = "iteration", ax: Axes | None = None
    ) -> ConvergenceDisplay:
        """Draw it.

        Parameters
        ----------
        what : str
            "objective": its distance to the best value, on a logarithmic scale. "validation": the
            score on the validation data. Or a name in the reports' `details`, such as "gap" of
            solvers that bound the optimum, on a logarithmic scale.
        x : {"iteration", "time"}
            What runs along the axis; time is in seconds.
        ax : matplotlib axes, optional
        """
        check_choice("x", x, AXES)
        if not isinstance(what, str):
            raise TypeError(f"what must be a str, got {reprlib.repr(what)}")
        points = [_points(name, own, what, x) for name, own in self.reports.items()]
        names = [short(name) for name in self.reports]
        columns = legend_columns(names, WIDTH - 0.8 if ax is None else inches_of(ax)[0])
        rows = -(-len(names) // columns) if any(names) else 0
        ax = self._begin(ax, (WIDTH, 3.4 + 0.17 * rows))
        colours = class_colours(len(names))
        best = min(min(report.history, default=np.inf) for report in self.reports.values())
        for k, (name, (across, up)) in enumerate(zip(names, points, strict=True)):
            if what != "validation":
                up = up - best if what == "objective" else up.copy()
                up[~(up > 0.0)] = np.nan  # the best itself has no logarithm
            style: dict[str, Any] = {
                "color": colours[k],
                "marker": "o" if len(up) <= 40 else "",
            }
            ax.plot(across, up, ms=3.0, lw=1.4, label=name, **style)
        if x == "iteration":
            ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
        label = {"objective": "objective − best", "validation": "validation score"}
        ax.set(xlabel=AXES[x], ylabel=label.get(what, what))
        if not any(np.isfinite(line.get_ydata()).any() for line in ax.lines):
            remark(ax, "no iteration is above the best value")
            ax.set(xticks=[], yticks=[])
        elif what != "validation":
            ax.set_yscale("log")
        ax.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.6)
        bare(ax)
        if rows:
            place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}
            ax.legend(frameon=False, fontsize=8, borderaxespad=0.2, ncols=columns, **place)
        return self


def _points(name: str, report: FitReport, what: str, x: str) -> tuple[Floats, Floats]:
    """Where the points of a report are: iterations or seconds, and values."""
    of = f" of {name!r}" if name else ""
    if what == "validation":
        if not report.validation:
            raise ValueError(
                f"the report{of} has no validation scores: fit with validation_data=(X, y)"
            )
        at, values = np.array(report.validation, dtype=np.float64).T
    else:
        if what != "objective" and what not in report.details:
            known = ", ".join(map(repr, ["objective", "validation", *report.details]))
            raise ValueError(f"the report{of} has no {what!r}; there are: {known}")
        values = np.array(report.history if what == "objective" else report.details[what])
        at = np.arange(1, len(values) + 1, dtype=np.float64)
    if x == "iteration":
        return at, values
    if len(report.times) < at.max(initial=0):
        raise ValueError(f"the report{of} has no times of its iterations: use x='iteration'")
    return np.array(report.times)[at.astype(int) - 1], values
