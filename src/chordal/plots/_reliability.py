"""Whether probabilities can be trusted: how often what is said with probability p is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chordal._validate import array_of, check_number, listed
from chordal.plots._checks import check_label, label_list, places, probabilities, real
from chordal.plots._display import (
    Display,
    as_sequences,
    classes_of,
    flat_labels,
    name_of,
    numbers_of,
)
from chordal.plots._style import COLOURS, FAINT, bare, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
NORMAL = 1.959963984540054  # 95% of a normal distribution lie within so many deviations


@dataclass(eq=False)
class ReliabilityDisplay(Display):
    """The share that is right among predictions of about the same probability.

    On the diagonal, probabilities are what they say. Points below it are of a model that is too
    sure of itself. Bars are 95% intervals (Wilson) of independent positions; those of a sequence
    are not independent, so the truth is wider. Grey columns are the shares of all positions.

    Parameters
    ----------
    counts : array [n_bins], how many positions have a probability in the bin
    confidence : array [n_bins], their mean probability; NaN where there are none
    accuracy : array [n_bins], the share of them that is right; NaN where there are none

    Attributes
    ----------
    error : float
        The expected calibration error: the mean distance between both, over all positions.

    Examples
    --------
    >>> p = [[[0.9, 0.1], [0.6, 0.4]]]
    >>> display = ReliabilityDisplay.from_predictions([["a", "b"]], p, ["a", "b"], n_bins=2)
    >>> display.counts.tolist(), round(display.error, 3)
    ([0, 2], 0.25)
    """

    counts: NDArray[np.int64]
    confidence: Floats
    accuracy: Floats

    def __post_init__(self) -> None:
        self.counts = places(self.counts, "counts", "n_bins")
        some = self.counts > 0
        if not some.any():
            raise ValueError("counts must be above 0 in some bin: there is nothing to draw")
        for what in ("confidence", "accuracy"):
            shares = real(getattr(self, what), what, len(self.counts), finite=False)
            setattr(self, what, shares)
            probabilities(shares[some], f"{what} where counts are above 0", "n")

    @property
    def error(self) -> float:
        """The expected calibration error."""
        distance = np.nan_to_num(np.abs(self.accuracy - self.confidence))
        return float(distance @ self.counts / self.counts.sum())

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        X: object,
        y: Sequence[Any],
        *,
        label: object = None,
        n_bins: int = 10,
        ax: Axes | None = None,
    ) -> ReliabilityDisplay:
        """Ask a fitted estimator for its marginals, and draw; see `from_predictions`."""
        classes = classes_of(estimator)
        ask = getattr(estimator, "predict_marginals", None) or getattr(
            estimator, "predict_proba", None
        )
        if ask is None:
            raise ValueError(f"{name_of(estimator)} gives no probabilities")
        options: dict[str, Any] = {"label": label, "n_bins": n_bins, "ax": ax}
        return cls.from_predictions(y, ask(X), classes, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: Sequence[Any],
        marginals: Sequence[Any] | Floats,
        classes: Sequence[Any],
        *,
        label: object = None,
        n_bins: int = 10,
        ax: Axes | None = None,
    ) -> ReliabilityDisplay:
        """Count and draw.

        Parameters
        ----------
        y_true : labels, sequences of labels, or label images
            None where a label is not known.
        marginals : list of arrays [..., n_classes]
            P(label | x) of every variable of each example.
        classes : list of labels, in the order of the last axis
        label : optional
            Judge P(label | x) of this one; by default the most probable label at each position.
        n_bins : int
            Bins of equal width between 0 and 1.
        ax : matplotlib axes, optional
        """
        check_number("n_bins", n_bins, minimum=1, integer=True)
        classes = label_list(classes, "classes")
        check_label(label, classes)
        numbers = [_codes(own, classes) for own in as_sequences(y_true)]
        given = enumerate(listed(marginals, "marginals"))
        flat = [_rows(own, f"marginals[{i}]", len(classes)) for i, own in given]
        gold, p = (
            np.concatenate([np.zeros(0, int), *numbers]),
            np.concatenate([np.zeros((0, len(classes))), *flat]),
        )
        if len(gold) != len(p):
            raise ValueError(f"y_true has {len(gold)} labels, but marginals have {len(p)} rows")
        gold, p = gold[gold != -1], p[gold != -1]
        if not len(gold):
            raise ValueError("y_true is empty: there is nothing to compare with")
        chosen = p.argmax(axis=1) if label is None else np.full(len(p), classes.index(label))
        said = p[np.arange(len(p)), chosen]
        return cls(*_binned(said, gold == chosen, n_bins)).plot(label=label, ax=ax)

    def plot(self, *, label: object = None, ax: Axes | None = None) -> ReliabilityDisplay:
        """Draw it; `label` is the one that the probabilities are of, if it is one."""
        ax = self._begin(ax, (4.6, 4.2))
        n = len(self.counts)
        some = self.counts > 0
        low, high = _wilson(self.accuracy[some], self.counts[some])
        middle = (np.arange(n) + 0.5) / n
        share = self.counts / self.counts.sum()
        ax.bar(middle, share, 0.92 / n, color=FAINT, alpha=0.3, label="share of positions")
        ax.plot([0, 1], [0, 1], color=FAINT, lw=1.0, ls="--", label="perfect calibration")
        right, said = self.accuracy[some], self.confidence[some]
        ax.errorbar(
            said,
            right,
            np.maximum([right - low, high - right], 0.0),
            color=COLOURS[0],
            marker="o",
            ms=4,
            lw=1.4,
            capsize=2,
            clip_on=False,  # certain predictions are points on the frame
            label=f"calibration error {self.error:.3f}",
        )
        of = "of the predicted label" if label is None else f"of {short(label)}"
        ax.set(xlim=(0, 1), ylim=(0, 1.02), xlabel=f"probability {of}")
        ax.set_ylabel("share of right labels" if label is None else f"share that is {short(label)}")
        bare(ax)
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": 2}
        ax.legend(frameon=False, fontsize=8, borderaxespad=0.2, **place)
        return self


def _rows(marginals: object, what: str, n_classes: int) -> Floats:
    """The marginals of one example, a row for each variable."""
    array = probabilities(marginals, what, *np.shape(array_of(marginals)))
    if array.ndim == 0 or array.shape[-1] != n_classes:
        raise ValueError(f"{what} must be [..., {n_classes}], got shape {array.shape}")
    return array.reshape(-1, n_classes)


def _codes(labels: object, classes: Sequence[Any]) -> NDArray[np.int64]:
    """Numbers of labels: −1 where there is none, −2 for a label that the model does not know."""
    known = set(classes)
    flat = flat_labels(labels, "y")
    unseen = np.array([label is not None and label not in known for label in flat], dtype=bool)
    kept = [None if new else label for label, new in zip(flat, unseen, strict=True)]
    numbers = numbers_of(kept, classes, "y")
    numbers[unseen] = -2
    return numbers


def _binned(said: Floats, right: Any, n_bins: int) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Counts, mean probabilities and shares that are right, of each bin."""
    place = np.minimum((said * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(place, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        means = [np.bincount(place, own, minlength=n_bins) / counts for own in (said, right)]
    return counts, means[0], means[1]


def _wilson(share: Floats, n: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Limits of the 95% interval of a share."""
    z2 = NORMAL**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL * np.sqrt(share * (1 - share) / n + z2 / (4 * n**2)) / (1 + z2 / n)
    return middle - half, middle + half
