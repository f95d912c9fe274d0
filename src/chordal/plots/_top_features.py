"""The features that speak most for and against each label."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_number, listed
from chordal.plots._checks import label_list, real
from chordal.plots._display import Display, classes_of, name_of
from chordal.plots._style import COLOURS, FAINT, bare, remark, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOR, AGAINST = COLOURS[0], COLOURS[1]
EVERY = 10**9  # weights: all of them
LONGEST = 28  # characters of a name


@dataclass(eq=False)
class TopFeaturesDisplay(Display):
    """Bars of the largest weights of each label: blue speaks for it, orange against it.

    Parameters
    ----------
    features : dict {label: list of (feature, weight)}
        From the one that speaks most for the label to the one most against it.

    Attributes
    ----------
    axes_ : list of matplotlib axes, one for each label

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=a"], ["w=dog"]]]
    >>> crf = ChainCRF().fit(X, [["D", "N", "V"], ["D", "N"]])
    >>> display = TopFeaturesDisplay.from_estimator(crf, top=2)
    >>> [name for name, weight in display.features["V"]]
    ['w=sleeps']
    """

    features: Mapping[Any, Sequence[tuple[str, float]]]

    def __post_init__(self) -> None:
        if not isinstance(self.features, Mapping):
            raise TypeError(
                "features must be a dict of label to list of (feature, weight), got "
                f"{reprlib.repr(self.features)}"
            )
        if not self.features:
            raise ValueError("features is empty: give at least one label")
        for label, pairs in self.features.items():
            for k, pair in enumerate(listed(pairs, f"features[{label!r}]")):
                what = f"features[{label!r}][{k}]"
                if len(listed(pair, what)) != 2:
                    raise ValueError(f"{what} must be a pair of (feature, weight), got {pair!r}")
                real(pair[1], f"the weight of {what}")

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        *,
        top: int = 10,
        labels: Sequence[Any] | None = None,
        feature_names: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> TopFeaturesDisplay:
        """Draw the weights of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator with named attributes or with `coef_`
        top : int
            How many features of each label, by the size of their weights.
        labels : list, optional
            Which labels, and in which order; by default all.
        feature_names : list of str, optional
            Names of the columns of arrays; by default those that `fit` saw, or "x0", "x1", …
        ax : matplotlib axes, optional
        """
        classes = classes_of(estimator)
        check_number("top", top, minimum=1, integer=True)
        chosen = classes if labels is None else label_list(labels, "labels")
        for label in chosen:
            if label not in classes:
                raise ValueError(f"{name_of(estimator)} has no label {label!r}; it has {classes}")
        ranked = _ranked(estimator, classes, feature_names)
        found = {label: _largest(ranked[label], top) for label in chosen if label in ranked}
        return cls(found).plot(ax=ax)

    def plot(self, *, columns: int = 3, ax: Axes | None = None) -> TopFeaturesDisplay:
        """Draw it, with at most `columns` labels side by side; `ax` is divided among them."""
        most = max(map(len, self.features.values()))
        self.axes_: list[Axes] = self._panels(
            ax, len(self.features), columns, (3.2, 0.9 + 0.2 * max(most, 2))
        )
        every = [weight for own in self.features.values() for _, weight in own]
        low, high = 1.08 * min([0.0, *every]), 1.08 * max([0.0, *every])
        limits = (low, high) if high > low else (-1.0, 1.0)
        for own, (label, pairs) in zip(self.axes_, self.features.items(), strict=True):
            names, weights = [short(name, LONGEST) for name, _ in pairs], [w for _, w in pairs]
            places = np.arange(len(pairs))
            own.barh(places, weights, 0.7, color=[FOR if w > 0 else AGAINST for w in weights])
            own.set_yticks(places, names, fontsize=8)
            own.set(xlim=limits, xlabel="weight")
            own.set_ylim(max(most, 1) - 0.5, -0.5)  # the first on top
            if not pairs:
                remark(own, "all weights are zero")
            own.set_title(short(label, LONGEST), fontsize=10)
            own.axvline(0.0, color=FAINT, lw=0.8)
            bare(own)
            own.tick_params(axis="y", length=0)
        return self


def _largest(pairs: Sequence[tuple[str, float]], top: int) -> list[tuple[str, float]]:
    """The largest weights in size, of those that are not zero, in falling order."""
    kept = sorted((pair for pair in pairs if pair[1] != 0.0), key=lambda pair: -abs(pair[1]))
    return sorted(kept[:top], key=lambda pair: -pair[1])


def _ranked(
    estimator: object, classes: Sequence[Any], names: Sequence[str] | None
) -> dict[Any, list[tuple[str, float]]]:
    """All features of each label with their weights."""
    if hasattr(estimator, "top_features") and names is None:
        return {
            label: [(name, weight) for name, _, weight in estimator.top_features(EVERY, label)]
            for label in classes
        }
    if not hasattr(estimator, "coef_"):
        raise ValueError(f"{name_of(estimator)} has no weights of features: it has no coef_")
    weights: NDArray[Any] = np.asarray(estimator.coef_)
    if weights.ndim != 2 or len(weights) not in (1, len(classes)):
        raise ValueError(f"coef_ of {name_of(estimator)} must have a row for each label")
    if names is None:
        names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        names = [f"x{k}" for k in range(weights.shape[1])]
    names = listed(names, "feature_names")
    if len(names) != weights.shape[1]:
        raise ValueError(
            f"feature_names must have one name per feature ({weights.shape[1]}), got {len(names)}"
        )
    labels = classes if len(weights) == len(classes) else classes[1:]  # of two, one row for both
    return {
        label: [(str(name), float(w)) for name, w in zip(names, row, strict=True)]
        for label, row in zip(labels, weights, strict=True)
    }
