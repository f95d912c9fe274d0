"""Tables of labels against labels: what follows what, and what is taken for what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import PowerNorm
from numpy.typing import ArrayLike, NDArray

from chordal.metrics import confusion_matrix
from chordal.plots._style import FAINT, INK, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from chordal.estimators import ChainCRF

Names = Sequence[object] | NDArray[Any]

MOST_NUMBERS = 14  # labels up to which cells carry numbers


def transitions(crf: ChainCRF, *, ax: Axes | None = None) -> Axes:
    """The weights of a fitted chain's transitions, from row to column.

    Parameters
    ----------
    crf : fitted ChainCRF
    ax : matplotlib axes, optional

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> X = [[["w=the"], ["w=cat"], ["w=sleeps"]], [["w=a"], ["w=dog"]]]
    >>> ax = transitions(ChainCRF().fit(X, [["D", "N", "V"], ["D", "N"]]))
    """
    ax = label_pairs(crf.transitions_, crf.classes_, ax=ax)
    ax.set(xlabel="to", ylabel="from")
    ax.figure.colorbar(ax.images[-1], ax=ax, label="weight", shrink=0.85).outline.set_visible(False)
    return ax


def label_pairs(
    weights: ArrayLike, labels: Names, columns: Names | None = None, *, ax: Axes | None = None
) -> Axes:
    """A weight for each pair of labels: a table of colours, red below and blue above zero.

    Parameters
    ----------
    weights : array [n_labels, n_columns]
    labels : names of the rows
    columns : names of the columns, optional
        Those of the rows, if nothing is said.
    ax : matplotlib axes, optional

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> ax = label_pairs([[1.0, -0.5], [0.0, 2.0]], ["D", "N"])
    """
    table = np.asarray(weights, dtype=np.float64)
    finite = np.isfinite(table)
    limit = float(np.abs(table[finite]).max(initial=0.0)) or 1.0
    shown = np.ma.array(table, mask=~finite)
    numbers = [[_rounded(w) for w in row] for row in table]
    columns = labels if columns is None else columns
    return _table(ax, shown, labels, columns, numbers, cmap="RdBu", vmin=-limit, vmax=limit)


def confusion(
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    *,
    labels: Sequence[Any] | None = None,
    percent: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """How often each label was predicted where each was true; colours are shares of a row.

    They deepen with the square root of the share, so that rare mistakes are seen.

    Parameters
    ----------
    y_true, y_pred : labels, or sequences of labels
    labels : list, optional
        Which labels, and in which order; by default all.
    percent : bool
        Cells carry percent of their row in place of counts.
    ax : matplotlib axes, optional

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> ax = confusion([["D", "N", "V"]], [["D", "N", "N"]])
    """
    found = confusion_matrix(_sequences(y_true), _sequences(y_pred), labels=labels)
    total = found.counts.sum(axis=1, keepdims=True)
    shares = found.counts / np.maximum(total, 1)
    if percent:
        numbers = [[_percent(share) for share in row] for row in shares]
    else:
        numbers = [[f"{n:,}" if n else "" for n in row] for row in found.counts]
    norm = PowerNorm(0.5, vmin=0.0, vmax=1.0)
    ax = _table(ax, shares, found.labels, found.labels, numbers, cmap="Blues", norm=norm)
    ax.set(xlabel="predicted", ylabel="true")
    return ax


def _rounded(weight: float) -> str:
    """A weight to one digit; nothing where there is none."""
    if weight == 0.0:
        return ""
    return f"{weight:.1f}" if np.isfinite(weight) else "−∞"


def _percent(share: float) -> str:
    """A share in percent; nothing for none, and "0" where it rounds to it."""
    return f"{100.0 * share:.0f}" if share > 0.0 else ""


def _sequences(y: Sequence[Any]) -> Sequence[Any]:
    """Labels as sequences of them: a flat list is one sequence."""
    if len(y) and (isinstance(y[0], str) or not hasattr(y[0], "__len__")):
        return [y]
    return y


def _table(
    ax: Axes | None,
    values: NDArray[Any],
    rows: Names,
    columns: Names,
    numbers: list[list[str]],
    **options: Any,
) -> Axes:
    height, width = len(rows), len(columns)
    side = min(12.0, max(3.2, 1.6 + 0.36 * max(height, width)))
    ax = axes_or_new(ax, (side + 0.6, side))
    image = ax.imshow(values, **options)
    across, down = [str(name) for name in columns], [str(name) for name in rows]
    long = max(map(len, across), default=0) > 3
    ax.set_xticks(range(width), across, rotation=90 if long else 0)
    ax.set_yticks(range(height), down)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set(color=FAINT, visible=True)
    if max(height, width) <= MOST_NUMBERS:
        rgb = image.to_rgba(values)[..., :3]
        dark = rgb @ [0.299, 0.587, 0.114] < 0.5
        for i, row in enumerate(numbers):
            for j, text in enumerate(row):
                colour = "white" if dark[i, j] else INK
                ax.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)
    return ax
