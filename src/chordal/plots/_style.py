"""Axes and colours that all pictures share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chordal._shown import in_a_line
from chordal._validate import check_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FAINT = "#1f2328", "#8b929c"
# Told apart also by those who do not see red and green as two colours (Okabe and Ito, 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31")
LIGHT, DARK = 0.5, 0.35  # of further classes: how much white, or black, their colours hold
LABEL = 18  # characters of a label
CHARACTER = 0.095  # the width of one in inches, about


def check_axes(ax: object) -> None:
    """Raise an error for what is neither matplotlib axes nor None."""
    from matplotlib.axes import Axes

    if ax is not None and not isinstance(ax, Axes):
        many = "; give one of them" if isinstance(ax, (np.ndarray, list, tuple)) else ""
        raise TypeError(f"ax must be matplotlib axes or None, got {type(ax).__name__}{many}")


def axes_or_new(ax: Axes | None, size: tuple[float, float], square: bool = False) -> Axes:
    """The axes given, or those of a new figure; `square` if the cells of a table have to be."""
    check_axes(ax)
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    # Beside square cells, the other layout cuts the name of the rows.
    return plt.subplots(figsize=size, layout="compressed" if square else "constrained")[1]


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

    check_number("n", n, integer=True)
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
    """The text on one line, cut in the middle where it is too long; `$` is a character like others.

    Long names often differ at their ends alone.

    >>> short("a very long name", 10)
    'a ver…name'
    """
    text = in_a_line(" ".join(str(text).split()))
    if len(text) > longest:
        tail = (longest - 1) // 2
        text = f"{text[: longest - 1 - tail]}…{text[len(text) - tail :]}"
    return text.replace("$", r"\$")


def width_of(names: Iterable[object]) -> float:
    """How many inches labels on an axis take, about."""
    return CHARACTER * max((len(short(name, LABEL)) for name in names), default=0)


def inches_of(ax: Axes) -> tuple[float, float]:
    """Width and height of axes; before the layout of a new figure, about."""
    check_axes(ax)
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    return float(box.width / dpi), float(box.height / dpi)


def font_for(n: int, inches: float) -> float:
    """The size of n lines of text side by side, in points: 10, or as small as they have to be."""
    return float(np.clip(0.85 * 72 * inches / n, 3.0, 10.0))


def legend_columns(names: Sequence[str], inches: float) -> int:
    """How many entries of a legend of 8 points stand side by side."""
    entry = 0.5 + 0.066 * max(map(len, names))
    return max(1, min(len(names), int(inches / entry)))


def remark(ax: Axes, text: str) -> None:
    """Words in the middle of axes that have nothing else to show."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=FAINT)


def line_with_band(
    ax: Axes, x: NDArray[Any], scores: NDArray[np.float64], colour: str, name: str
) -> None:
    """The mean of scores [n_x, n_folds], in a band of one standard deviation."""
    mean, spread = scores.mean(axis=1), scores.std(axis=1)
    ax.plot(x, mean, color=colour, marker="o", ms=3.5, lw=1.4, label=name)
    if scores.shape[1] > 1:
        ax.fill_between(x, mean - spread, mean + spread, color=colour, alpha=0.18, lw=0)
