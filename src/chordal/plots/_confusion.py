"""What is taken for what: labels of positions, or types of entities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import PowerNorm
from numpy.typing import NDArray

from chordal._validate import check_choice, check_flag
from chordal.metrics import chunks, confusion_matrix
from chordal.plots._cells import MOST_NUMBERS, colour_bar, draw_table, table_size
from chordal.plots._checks import label_list, places
from chordal.plots._display import Display, as_sequences, classes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEVELS = ("token", "entity")
NONE = "(none)"  # no entity with these limits


@dataclass(eq=False)
class ConfusionDisplay(Display):
    """How often each label was predicted where each was true; colours are shares of a row.

    Colours deepen with the square root of the share, so that rare mistakes are seen.

    At the level of entities, an entity counts by its exact limits. The row "(none)" holds entities
    that are only predicted, the column "(none)" those that were missed or had other limits.

    Parameters
    ----------
    counts : array [n_labels, n_labels]
        Row: the true label. Column: the predicted one.
    labels : list

    Examples
    --------
    >>> display = ConfusionDisplay.from_predictions([["D", "N", "V"]], [["D", "N", "N"]])
    >>> display.counts.tolist()
    [[1, 0, 0], [0, 1, 0], [0, 1, 0]]
    >>> true, found = [["B-PER", "O", "B-LOC"]], [["B-LOC", "O", "B-LOC"]]
    >>> display = ConfusionDisplay.from_predictions(true, found, level="entity")
    >>> display.labels, display.counts.tolist()
    (['LOC', 'PER', '(none)'], [[1, 0, 0], [1, 0, 0], [0, 0, 0]])
    """

    counts: NDArray[np.int64]
    labels: Sequence[Any]

    def __post_init__(self) -> None:
        self.labels = label_list(self.labels, "labels")
        self.counts = places(self.counts, "counts", len(self.labels), len(self.labels))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Sequence[Any], **options: Any
    ) -> ConfusionDisplay:
        """Draw what a fitted estimator predicts for X against y; options of `from_predictions`."""
        classes_of(estimator, "predict")
        return cls.from_predictions(y, estimator.predict(X), **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: Sequence[Any],
        y_pred: Sequence[Any],
        *,
        labels: Sequence[Any] | None = None,
        level: str = "token",
        scheme: str = "conlleval",
        percent: bool = False,
        ax: Axes | None = None,
    ) -> ConfusionDisplay:
        """Count and draw.

        Parameters
        ----------
        y_true, y_pred : labels, sequences of labels, or label images
        labels : list, optional
            Which labels or types, and in which order; by default all.
        level : {"token", "entity"}
            Compare positions, or the entities that tags such as "B-PER" mark.
        scheme : {"conlleval", "bio", "iobes", "bilou"}
            How tags are read: see `chordal.metrics.chunks`.
        percent : bool
            Cells carry percent of their row instead of counts.
        ax : matplotlib axes, optional
        """
        check_choice("level", level, LEVELS)
        true, found = as_sequences(y_true), as_sequences(y_pred)
        if not any(map(len, true)):
            raise ValueError("y_true is empty: there is nothing to count")
        if level == "token":
            counted = confusion_matrix(true, found, labels=labels)
            return cls(counted.counts, counted.labels).plot(percent=percent, ax=ax)
        counts, types = _entities(true, found, labels, scheme)
        return cls(counts, types).plot(percent=percent, level=level, ax=ax)

    def plot(
        self,
        *,
        percent: bool = False,
        level: str = "token",
        colorbar: bool | None = None,
        ax: Axes | None = None,
    ) -> ConfusionDisplay:
        """Draw it.

        Parameters
        ----------
        percent, level : see `from_predictions`
        colorbar : bool, optional
            Whether a bar explains the colours. By default there is one where cells carry no
            numbers (more than 14 labels) and `ax` is not given.
        ax : matplotlib axes, optional
        """
        check_flag("percent", percent)
        check_choice("level", level, LEVELS)
        if colorbar is not None:
            check_flag("colorbar", colorbar)
        shares = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        if percent:
            numbers = [[_percent(share) for share in row] for row in shares]
        else:
            numbers = [[f"{n:,}" if n else "" for n in row] for row in self.counts.tolist()]
        unexplained = ax is None and len(self.labels) > MOST_NUMBERS
        ax = self._begin(ax, table_size(self.labels, self.labels), square=True)
        norm = PowerNorm(0.5, vmin=0.0, vmax=1.0)
        image = draw_table(ax, shares, self.labels, self.labels, numbers, cmap="Blues", norm=norm)
        what = "entity" if level == "entity" else "label"
        ax.set(xlabel=f"predicted {what}", ylabel=f"true {what}")
        if colorbar or (colorbar is None and unexplained):
            colour_bar(ax, image, "share of the true label", shrink=0.85)
        return self


def _entities(
    true: Sequence[Any], found: Sequence[Any], labels: Sequence[Any] | None, scheme: str
) -> tuple[NDArray[np.int64], list[Any]]:
    """Counts of types at equal limits, and the types."""
    if list(map(len, true)) != list(map(len, found)):
        raise ValueError("y_true and y_pred must have the same number and lengths of sequences")
    pairs: Counter[tuple[str, str]] = Counter()
    for own, said in zip(true, found, strict=True):
        gold, told = (
            {(chunk.start, chunk.end): chunk.type for chunk in chunks(list(tags), scheme)}
            for tags in (own, said)
        )
        for limits in gold.keys() | told.keys():
            pairs[gold.get(limits, NONE), told.get(limits, NONE)] += 1
    if not pairs:
        raise ValueError("there is no entity in y_true and y_pred")
    seen = sorted({name for pair in pairs for name in pair} - {NONE})
    names = [*(seen if labels is None else label_list(labels, "labels")), NONE]
    return np.array([[pairs[a, b] for b in names] for a in names], dtype=np.int64), names


def _percent(share: float) -> str:
    """A share in percent; nothing for none, and "0" where it rounds to it."""
    return f"{100.0 * share:.0f}" if share > 0.0 else ""
