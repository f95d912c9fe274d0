"""What the strength of regularization does to scores and to the number of weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_choice
from chordal.plots._checks import places, real
from chordal.plots._display import Display, check_has
from chordal.plots._style import COLOURS, FAINT, bare, line_with_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


class Path(Protocol):
    """What `chordal.regularization_path` returns."""

    @property
    def parameter(self) -> str:
        """l1 or l2."""

    @property
    def values(self) -> Floats:
        """Strengths."""

    @property
    def weights(self) -> Sequence[Floats]:
        """Of the model of each strength."""

    @property
    def scores(self) -> Floats | None:
        """[n_values, n_splits]."""


@dataclass(eq=False)
class RegularizationPathDisplay(Display):
    """Scores by the strength of regularization, and how many weights are not zero.

    The band is one standard deviation over the folds, the dotted line the best strength.

    Parameters
    ----------
    parameter : {"l2", "l1"}
    values : array [n_values]
    scores : array [n_values, n_splits], optional
    n_nonzero : array [n_values], optional
        Weights that are not zero.

    Examples
    --------
    >>> from chordal import ChainCRF, regularization_path
    >>> from chordal.datasets import load_digit_dates
    >>> dates = load_digit_dates(60, 100)
    >>> path = regularization_path(
    ...     ChainCRF(), dates.X_train, dates.y_train, l1s=[0.1, 1, 10],
    ...     validation_data=(dates.X_test, dates.y_test),
    ... )
    >>> display = RegularizationPathDisplay.from_path(path)
    >>> display.best == path.best_value
    True
    """

    parameter: str
    values: Floats
    scores: Floats | None = None
    n_nonzero: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        check_choice("parameter", self.parameter, ["l2", "l1"])
        self.values = real(self.values, "values", "n_values")
        if not len(self.values):
            raise ValueError("values is empty: there is no path to draw")
        if self.values.min() < 0.0:
            raise ValueError(f"values must be at least 0, got {self.values.min():g}")
        if self.scores is not None:
            self.scores = real(self.scores, "scores", len(self.values), "n_splits")
        if self.n_nonzero is not None:
            self.n_nonzero = places(self.n_nonzero, "n_nonzero", len(self.values))
        if self.scores is None and self.n_nonzero is None:
            raise ValueError("there is nothing to draw: give scores or n_nonzero")

    @property
    def best(self) -> float | None:
        """The strength with the best mean score, the strongest of equals; None without scores."""
        if self.scores is None:
            return None
        means = self.scores.mean(axis=1)
        return float(self.values[means == means.max()].max())

    @classmethod
    def from_path(cls, path: Path, *, ax: Axes | None = None) -> RegularizationPathDisplay:
        """Draw what `chordal.regularization_path` returned."""
        if not all(hasattr(path, name) for name in ("parameter", "values", "weights", "scores")):
            raise TypeError(
                "path must be what chordal.regularization_path returns, got a "
                f"{type(path).__name__}"
            )
        nonzero = np.array([np.count_nonzero(own) for own in path.weights])
        return cls(path.parameter, path.values, path.scores, nonzero).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> RegularizationPathDisplay:
        """Draw the choice of a fitted `ChainCRFCV` or `CRFClassifierCV`."""
        check_has(estimator, "best_params_", "values_", "scores_")
        return cls(next(iter(estimator.best_params_)), estimator.values_, estimator.scores_).plot(
            ax=ax
        )

    def plot(self, *, ylabel: str = "score", ax: Axes | None = None) -> RegularizationPathDisplay:
        """Draw it; `ylabel` says what the score is."""
        ax = self._begin(ax, (5.2, 3.4))
        order = np.argsort(self.values, kind="stable")
        values = self.values[order]
        if self.scores is not None:
            line_with_band(ax, values, self.scores[order], COLOURS[0], ylabel)
            ax.axvline(self.best, color=FAINT, lw=1.0, ls=":")  # type: ignore[arg-type]
            ax.set_ylabel(ylabel, color=COLOURS[0])
        if self.n_nonzero is not None:
            own = ax if self.scores is None else ax.twinx()
            style: dict[str, Any] = {
                "color": COLOURS[1],
                "marker": "s",
                "ms": 3.5,
                "lw": 1.4,
                "ls": "--",
            }
            own.plot(values, self.n_nonzero[order], **style)
            own.set_ylabel("weights that are not zero", color=COLOURS[1])
            own.set_ylim(bottom=0)
            own.spines["top"].set_visible(False)
        if (values > 0).all():
            ax.set_xscale("log")
        else:
            least = values[values > 0].min(initial=values.max() or 1.0)
            ax.set_xscale("symlog", linthresh=least)
            ax.set_xlim(left=-0.3 * least)  # no strength is negative
        if len(values) == 1 and values[0] > 0:
            ax.set_xlim(values[0] / 10, values[0] * 10)
        ax.set_xlabel(f"{self.parameter} (strength of regularization)")
        bare(ax)
        return self
