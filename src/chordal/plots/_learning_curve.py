"""What more data would bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal._optional import needed
from chordal._validate import array_of
from chordal.metrics import METRICS, make_sequence_scorer
from chordal.plots._checks import places, real
from chordal.plots._display import Display
from chordal.plots._style import COLOURS, FAINT, bare, line_with_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]


@dataclass(eq=False)
class LearningCurveDisplay(Display):
    """Scores on training and on held-out data, by the number of training examples.

    The bands are one standard deviation over the folds.

    Parameters
    ----------
    train_sizes : array [n_sizes], numbers of examples
    train_scores, test_scores : arrays [n_sizes, n_folds]

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> from chordal.datasets import load_digit_dates
    >>> dates = load_digit_dates(60, 10)
    >>> display = LearningCurveDisplay.from_estimator(
    ...     ChainCRF(), dates.X_train, dates.y_train, train_sizes=[0.25, 1.0], cv=3
    ... )
    >>> display.train_sizes.tolist(), display.test_scores.shape
    ([10, 40], (2, 3))
    """

    train_sizes: NDArray[np.int64]
    train_scores: Floats
    test_scores: Floats

    def __post_init__(self) -> None:
        self.train_sizes = places(self.train_sizes, "train_sizes", "n_sizes")
        n = len(self.train_sizes)
        if not n:
            raise ValueError("train_sizes is empty: there is no curve to draw")
        self.train_scores = real(self.train_scores, "train_scores", n, "n_folds", finite=False)
        self.test_scores = real(self.test_scores, "test_scores", n, "n_folds", finite=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        X: object,
        y: object,
        *,
        train_sizes: ArrayLike = (0.1, 0.2, 0.4, 0.7, 1.0),
        cv: object = None,
        scoring: str | Callable[..., float] | None = None,
        random_state: int | None = 0,
        ax: Axes | None = None,
    ) -> LearningCurveDisplay:
        """Fit an estimator to more and more of the data, by cross-validation, and draw.

        Parameters
        ----------
        estimator : an estimator; copies of it are fitted
        X, y : labelled data
        train_sizes : list of numbers
            Shares of the training part of each fold, or numbers of examples.
        cv : int or splitter of scikit-learn, optional
            By default five folds.
        scoring : str or callable, optional
            A metric of `chordal.metrics` by name ("chunk_f1", …), or a scorer of scikit-learn; by
            default the estimator's own score.
        random_state : int or None
            The seed of the order in which examples are added.
        ax : matplotlib axes, optional
        """
        with needed("sklearn", "LearningCurveDisplay"):
            from sklearn.model_selection import learning_curve

        train_sizes = array_of(train_sizes)
        real(train_sizes, "train_sizes", "n_sizes")
        if not train_sizes.size:
            raise ValueError("train_sizes is empty: there is no curve to draw")
        own = isinstance(scoring, str) and scoring in METRICS
        sizes, train, test, *_ = learning_curve(
            estimator,
            X,
            y,
            train_sizes=train_sizes,
            cv=cv,
            scoring=make_sequence_scorer(str(scoring)) if own else scoring,
            shuffle=True,
            random_state=random_state,
        )
        label = "score" if scoring is None or callable(scoring) else str(scoring).replace("_", " ")
        return cls(sizes, train, test).plot(ylabel=label, ax=ax)

    def plot(self, *, ylabel: str = "score", ax: Axes | None = None) -> LearningCurveDisplay:
        """Draw it; `ylabel` says what the score is."""
        ax = self._begin(ax, (5.2, 3.4))
        sets: Sequence[tuple[str, Floats]] = (
            ("training data", self.train_scores),
            ("held-out data", self.test_scores),
        )
        for colour, (name, scores) in zip((COLOURS[1], COLOURS[0]), sets, strict=True):
            line_with_band(ax, self.train_sizes, scores, colour, name)
        ax.set(xlabel="training examples", ylabel=ylabel)
        ax.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.6)
        bare(ax)
        ax.legend(frameon=False)
        return self
