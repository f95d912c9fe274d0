"""How a fit came down to its objective."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from chordal.estimators import FitReport
from chordal.plots._style import COLOURS, FAINT, axes_or_new, bare

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def convergence(
    reports: FitReport | Mapping[str, FitReport], *, what: str = "objective", ax: Axes | None = None
) -> Axes:
    """How far each iteration was from the best objective, on a logarithmic scale.

    Parameters
    ----------
    reports : FitReport, or dict of them by name
        `fit_report_` of fitted models. Several should be of the same objective on the same data:
        the best value of all is the one that distances are taken to.
    what : str
        "objective", or a name in the reports' `details`, which is drawn as it is.
    ax : matplotlib axes, optional

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from chordal import CRFClassifier
    >>> ax = convergence(CRFClassifier().fit(*load_iris(return_X_y=True)).fit_report_)
    """
    named = dict(reports) if isinstance(reports, Mapping) else {"": reports}
    for name, report in named.items():
        if not isinstance(report, FitReport):
            raise TypeError(f"reports must be a FitReport or a dict of them, got {report!r}")
        if what != "objective" and what not in report.details:
            known = ", ".join(map(repr, ["objective", *report.details]))
            of = f" of {name!r}" if name else ""
            raise ValueError(f"the report{of} has no {what!r}; there are: {known}")
    if not named:
        raise ValueError("reports is empty: give at least one")
    ax = axes_or_new(ax, (5.2, 3.4))
    best = min(min(report.history, default=np.inf) for report in named.values())
    for k, (name, report) in enumerate(named.items()):
        values = np.array(report.history) - best if what == "objective" else report.details[what]
        values = np.array(values, dtype=np.float64)
        values[~(values > 0.0)] = np.nan  # the best itself has no logarithm
        iterations = np.arange(1, len(values) + 1)
        colour = COLOURS[k % len(COLOURS)]
        marker = "o" if len(values) <= 40 else ""
        ax.plot(iterations, values, color=colour, marker=marker, ms=3.0, lw=1.4, label=name)
    label = "objective − best" if what == "objective" else what
    ax.set(yscale="log", xlabel="iteration", ylabel=label)
    ax.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.6)
    bare(ax)
    if any(named):
        ax.legend(frameon=False)
    return ax
