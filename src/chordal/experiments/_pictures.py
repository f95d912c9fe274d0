"""Drawings that experiments share: one style, legible on a phone, described in words.

A picture is at most `WIDTH` inches wide: its text stays readable where the page is narrow, and
two of them stand side by side where it is wide. Every function returns a `Picture`, for
`Outcome.pictures`, whose alternative text is made of what was drawn; `samples` returns
`Samples`, for `Outcome.samples`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from chordal import FitReport, plots
from chordal.experiments._base import Array, Picture, Samples, Token

if TYPE_CHECKING:
    from chordal.plots import Axes

WIDTH = 4.8  # inches
MOST_LABELS = 20  # in a confusion matrix
MOST_TICKS = 10  # on a logarithmic axis that shows every value of x


def curves(
    title: str,
    caption: str,
    series: Mapping[str, Any],
    x: Mapping[str, Sequence[float]] | Sequence[float] | Array | None = None,
    *,
    xlabel: str,
    ylabel: str,
    errors: Mapping[str, Any] | None = None,
    log: str = "",
    height: float = 3.2,
) -> Picture:
    """Lines by name over `x` (1, 2, … if it is not given; or an x for each name).

    `errors` are drawn as bars, `log` names the logarithmic axes: "", "x", "y" or "xy".
    """
    figure, ax = plots.subplots(size=(WIDTH, height))
    said = []
    for name, values in series.items():
        values = np.asarray(values, dtype=np.float64)
        own = x.get(name) if isinstance(x, Mapping) else x
        own = np.arange(1, len(values) + 1) if own is None else np.asarray(own)
        few = {"marker": "o", "ms": 3} if len(values) <= 40 else {}
        error = None if errors is None else errors.get(name)
        ax.errorbar(own, values, error, label=name, lw=1.4, capsize=2, **few)
        finite = values[np.isfinite(values)]
        if len(finite):
            said.append(f"{name} from {finite[0]:.4g} to {finite[-1]:.4g}")
    if "x" in log:
        ax.set_xscale("log")
    if "x" in log and x is not None and not isinstance(x, Mapping) and len(x) <= MOST_TICKS:
        ax.set_xticks(x, [f"{value:g}" for value in x], fontsize=9)
        ax.minorticks_off()
    if "y" in log:
        ax.set_yscale("log")
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.grid(axis="y", color="#8b929c", alpha=0.25, linewidth=0.6)
    if len(series) > 1:
        ax.legend(frameon=False, fontsize=9)
    return Picture.of(title, caption, figure, f"{ylabel} by {xlabel}: {'; '.join(said)}.")


def training(
    title: str,
    caption: str,
    reports: FitReport | Mapping[str, FitReport],
    *,
    xlabel: str = "iteration",
    height: float = 3.2,
) -> Picture:
    """How fits came down to the best objective of all, on a logarithmic scale."""
    figure, ax = plots.subplots(size=(WIDTH, height))
    plots.ConvergenceDisplay.from_reports(reports, ax=ax)
    ax.set(xlabel=xlabel)
    named = {"": reports} if isinstance(reports, FitReport) else reports
    said = [
        f"{name + ' ' if name else ''}ends at {report.objective:.6g} after {len(report.history)}"
        for name, report in named.items()
    ]
    return Picture.of(
        title, caption, figure, f"Distance to the best objective by {xlabel}: {'; '.join(said)}."
    )


def confusion(
    title: str,
    caption: str,
    y_true: Sequence[Any],
    y_pred: Sequence[Any],
    labels: Sequence[object] | None = None,
) -> Picture:
    """What is taken for what, in percent of each true label; the most frequent labels."""
    pairs = Counter(zip(_flat(y_true), _flat(y_pred), strict=True))
    if labels is None:
        common = Counter(_flat(y_true)).most_common(MOST_LABELS)
        labels = sorted((label for label, _ in common), key=str)
    figure, ax = plots.subplots(size=_square(len(labels)))
    plots.ConfusionDisplay.from_predictions(y_true, y_pred, labels=labels, percent=True, ax=ax)
    _small_names(ax, len(labels))
    right = sum(n for (a, b), n in pairs.items() if a == b) / max(1, sum(pairs.values()))
    wrong = [pair for pair in pairs.most_common() if pair[0][0] != pair[0][1]][:3]
    said = ", ".join(f"{a} taken for {b} ({n} times)" for (a, b), n in wrong)
    often = f"; most often {said}" if wrong else ""
    alt = f"Confusion matrix of {len(labels)} labels: {right:.1%} of all labels right{often}."
    return Picture.of(title, caption, figure, alt)


def heat_map(
    title: str,
    caption: str,
    matrix: ArrayLike,
    rows: Sequence[object] | Array,
    columns: Sequence[object] | Array | None = None,
    *,
    xlabel: str = "to",
    ylabel: str = "from",
) -> Picture:
    """A table of weights, such as those of transitions: red below zero, blue above."""
    matrix = np.asarray(matrix, dtype=np.float64)
    columns = rows if columns is None else columns
    width, height = _square(max(matrix.shape))
    height = max(1.6, height * min(1.0, 0.25 + matrix.shape[0] / matrix.shape[1]))
    figure, ax = plots.subplots(size=(width, height))
    drawn = plots.TransitionsDisplay(matrix, rows, columns)
    drawn.plot(xlabel=xlabel, ylabel=ylabel, colorbar=False, ax=ax)
    _small_names(ax, max(matrix.shape))
    bar = figure.colorbar(ax.images[-1], ax=ax, shrink=0.8, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8)
    finite = np.where(np.isfinite(matrix), matrix, 0.0)
    ends = []
    for what, at in (("largest", finite.argmax()), ("smallest", finite.argmin())):
        i, j = divmod(int(at), matrix.shape[1])
        ends.append(f"{what} {finite[i, j]:.2f} ({rows[i]} {xlabel} {columns[j]})")
    shape = f"{matrix.shape[0]} by {matrix.shape[1]}"
    return Picture.of(title, caption, figure, f"Heat map, {shape}: {', '.join(ends)}.")


def image_rows(
    title: str,
    caption: str,
    rows: Sequence[Sequence[Any]],
    columns: Sequence[str],
    *,
    cmaps: Sequence[str | None] | None = None,
    limits: Sequence[tuple[float, float] | None] | None = None,
    names: Sequence[str] | None = None,
) -> Picture:
    """Rows of images under the same heads: input, truth, unary, CRF.

    `cmaps` and `limits` (smallest and largest value) are one a column; None for images that
    have colours. `names` stand before the rows.
    """
    n, m = len(rows), len(columns)
    shapes = [np.shape(row[0])[:2] for row in rows]
    tall = [WIDTH / m * height / width for height, width in shapes]
    figure, axes = plots.subplots(n, m, size=(WIDTH, sum(tall) + 0.3))
    axes = np.asarray(axes).reshape(n, m)
    for k, row in enumerate(rows):
        settings = zip(cmaps or [None] * m, limits or [None] * m, strict=True)
        for ax, image, (cmap, end) in zip(axes[k], row, settings, strict=True):
            low, high = (None, None) if end is None else end
            ax.imshow(image, cmap=cmap, vmin=low, vmax=high, interpolation="nearest")
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        if names is not None:
            axes[k, 0].set_ylabel(names[k], fontsize=8)
    for ax, head in zip(axes[0], columns, strict=True):
        ax.set_title(head, fontsize=9)
    alt = f"{n} rows of images; from left to right: {', '.join(columns)}."
    return Picture.of(title, caption, figure, alt)


def bars(
    title: str,
    caption: str,
    groups: Sequence[str],
    series: Mapping[str, Any],
    *,
    ylabel: str,
    xlabel: str = "",
    limits: tuple[float, float] | None = None,
    height: float = 3.2,
) -> Picture:
    """Bars by name, side by side in every group."""
    figure, ax = plots.subplots(size=(WIDTH, height))
    places, width = np.arange(len(groups)), 0.8 / len(series)
    said = []
    for k, (name, values) in enumerate(series.items()):
        values = np.asarray(values, dtype=np.float64)
        ax.bar(places + k * width, values, width, label=name)
        said.append(f"{name} {values.mean():.3g} on average")
    crowded = sum(map(len, groups)) > 50
    middle = 0.5 * width * (len(series) - 1)
    ax.set_xticks(places + middle, list(groups), rotation=90 if crowded else 0, fontsize=9)
    ax.set(xlabel=xlabel, ylabel=ylabel, ylim=limits)
    if len(series) > 1:
        ax.legend(frameon=False, fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    alt = f"Bars of {ylabel} in {len(groups)} groups: {'; '.join(said)}."
    return Picture.of(title, caption, figure, alt)


def samples(
    title: str,
    caption: str,
    texts: Sequence[Sequence[Any]],
    y_true: Sequence[Sequence[Any]],
    found: Mapping[str, Sequence[Sequence[Any]]],
    which: Iterable[int],
) -> Samples:
    """The sequences `which`, their labels, and where the models of `found` are wrong."""
    sequences = []
    for k in which:
        tokens = []
        for t, (text, true) in enumerate(zip(texts[k], y_true[k], strict=True)):
            said = {name: str(labels[k][t]) for name, labels in found.items()}
            wrong = {name: label for name, label in said.items() if label != str(true)}
            tokens.append(Token(str(text), str(true), wrong))
        sequences.append(tokens)
    return Samples(title, caption, sequences)


def _square(n: int) -> tuple[float, float]:
    """Width and height for a table of n labels a side."""
    side = min(WIDTH, 2.2 + 0.3 * n)
    return side, side


def _small_names(ax: Axes, n: int) -> None:
    if n > 8:
        ax.tick_params(labelsize=8 if n <= MOST_LABELS else 7)


def _flat(y: Sequence[Any]) -> list[Any]:
    if len(y) and (isinstance(y[0], str) or not hasattr(y[0], "__len__")):
        return [_plain(label) for label in y]
    return [_plain(label) for sequence in y for label in np.ravel(sequence)]


def _plain(label: object) -> object:
    """A label without NumPy's type, so that equal ones are one."""
    return label.item() if hasattr(label, "item") else label
