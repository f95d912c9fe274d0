"""Axes and colours that all pictures share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FAINT = "#1f2328", "#8b929c"
# Told apart also by those who do not see red and green as two colours (Okabe and Ito, 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31")
LIGHT, DARK = 0.5, 0.35  # of further classes: how much white, or black, their colours hold
LABEL = 18  # characters of a label
CHARACTER = 0.095  # the width of one in inches, about


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def class_colours(n: int) -> NDArray[np.float64]:
    """RGB of n classes, [n, 3]: up to seven are safe for colour-blind readers.

    The next seven are light, and the next seven dark shades of them. More than 21 form a rainbow.

    Examples
    --------
    >>> class_colours(3).shape, class_colours(21).shape
    ((3, 3), (21, 3))
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_rgb

    plain = np.array([to_rgb(c) for c in COLOURS])
    if n <= 3 * len(plain):
        light, dark = plain + LIGHT * (1.0 - plain), (1.0 - DARK) * plain
        return np.concatenate([plain, light, dark])[:n]
    return colormaps["turbo"](np.linspace(0.05, 0.95, n))[:, :3]


def bare(ax: Axes) -> None:
    """No frame but the two axes, in a quiet colour."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(color=FAINT)


def short(text: object, longest: int = 40) -> str:
    """The text on one line, cut where it is too long; `$` is a character like any other.

    >>> short("a very long name", 10)
    'a very lo…'
    """
    text = " ".join(str(text).split())
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return text.replace("$", r"\$")


def width_of(names: Iterable[object]) -> float:
    """How many inches labels on an axis take, about."""
    return CHARACTER * max((len(short(name, LABEL)) for name in names), default=0)


def line_with_band(
    ax: Axes, x: NDArray[Any], scores: NDArray[np.float64], colour: str, name: str
) -> None:
    """The mean of scores [n_x, n_folds], in a band of one standard deviation."""
    mean, spread = scores.mean(axis=1), scores.std(axis=1)
    ax.plot(x, mean, color=colour, marker="o", ms=3.5, lw=1.4, label=name)
    if scores.shape[1] > 1:
        ax.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.18, lw=0)
