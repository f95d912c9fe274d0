"""The page that `digit_dates.py` writes: one HTML file, pictures inside, light and dark."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from string import Template
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MultipleLocator, NullLocator, StrMethodFormatter

PATTERN = "DDMMYYYY"
CHART = (0.16, 0.18, 0.82, 0.7)  # left, bottom, width, height


@dataclass(frozen=True)
class Theme:
    """Colours of the pictures, those of the page's style sheet."""

    paper: str
    ink: str
    faint: str
    accent: str
    wrong: str

    def scale(self, colour: str) -> LinearSegmentedColormap:
        return LinearSegmentedColormap.from_list("scale", [self.paper, colour])

    def settings(self) -> dict[str, Any]:
        text = ("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor")
        lines = ("axes.edgecolor", "xtick.color", "ytick.color", "grid.color")
        return {
            **dict.fromkeys(text, self.ink),
            **dict.fromkeys(lines, self.faint),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.facecolor": self.paper,
            "figure.facecolor": self.paper,
            "font.size": 9.0,
            "legend.frameon": False,
        }


LIGHT = Theme("#ffffff", "#1f2328", "#c9ced6", "#1f63c1", "#c8321f")
DARK = Theme("#1c2027", "#e4e7eb", "#4b5360", "#6cabff", "#ff8272")


@dataclass(frozen=True)
class Comparison:
    """What the page compares: the unary CRF and the full one on the same dates."""

    images: list[np.ndarray]  # [8, 64] each
    truth: np.ndarray  # [n, 8], as the two below
    unary: np.ndarray
    full: np.ndarray

    @classmethod
    def of(cls, images: Sequence[Any], truth: Any, unary: Any, full: Any) -> Comparison:
        return cls(list(images), *(np.array(list(labels)) for labels in (truth, unary, full)))

    def gained(self) -> np.ndarray:
        """Dates that the full CRF reads right and the unary one wrong."""
        return np.flatnonzero(self._right(self.full) & ~self._right(self.unary))

    def lost(self) -> np.ndarray:
        return np.flatnonzero(~self._right(self.full) & self._right(self.unary))

    def failed(self) -> np.ndarray:
        return np.flatnonzero(~self._right(self.full))

    def _right(self, read: np.ndarray) -> np.ndarray:
        return (read == self.truth).all(axis=1)


def draw_reading(ax: Axes, c: Comparison, i: int, theme: Theme) -> None:
    """The images of one date and, below them, what was read; wrong digits are framed."""
    left = [9 * t + 3 * (t >= 2) + 3 * (t >= 4) for t in range(len(PATTERN))]  # DD MM YYYY
    strip = np.zeros((8, left[-1] + 8))
    for x, at in zip(c.images[i], left, strict=True):
        strip[:, at : at + 8] = x.reshape(8, 8)
    ax.imshow(strip, cmap=theme.scale(theme.ink), vmin=0.0, vmax=1.0)
    frame = {"boxstyle": "round,pad=0.15", "fc": "none", "ec": theme.wrong, "lw": 1.0}
    for line, (name, read) in enumerate([("unary", c.unary), ("CRF", c.full), ("truth", c.truth)]):
        y = 12.2 + 6.2 * line
        ax.text(-3.0, y, name, ha="right", va="center_baseline", fontsize=9)
        for at, digit, right in zip(left, read[i], c.truth[i], strict=True):
            style = {} if digit == right else {"color": theme.wrong, "bbox": frame}
            ax.text(at + 3.5, y, digit, ha="center", va="center_baseline", fontsize=11.5, **style)
    ax.set(xlim=(-15.0, left[-1] + 8), ylim=(27.8, -0.6))
    ax.axis("off")


def reading(c: Comparison, i: int) -> Callable[[Theme], Figure]:
    def draw(theme: Theme) -> Figure:
        figure = Figure(figsize=(3.5, 1.08))
        draw_reading(figure.add_axes((0, 0, 1, 1)), c, i, theme)
        return figure

    return draw


def digit_image(x: np.ndarray) -> Callable[[Theme], Figure]:
    def draw(theme: Theme) -> Figure:
        figure = Figure(figsize=(2.2, 2.2))
        ax = figure.add_axes((0.17, 0.17, 0.8, 0.8))
        ax.imshow(x.reshape(8, 8), cmap=theme.scale(theme.ink), vmin=0.0, vmax=1.0)
        ax.axis("off")
        return figure

    return draw


def pair_table(pairs: np.ndarray) -> Callable[[Theme], Figure]:
    """Probabilities of the pairs at one transition, from row to column."""

    def draw(theme: Theme) -> Figure:
        figure = Figure(figsize=(2.2, 2.2))
        ax = figure.add_axes((0.17, 0.17, 0.8, 0.8))
        # By the square root: rare pairs stay visible beside the commonest.
        ax.imshow(np.sqrt(pairs), cmap=theme.scale(theme.accent), vmin=0.0)
        ax.set(xticks=range(10), yticks=range(10), xlabel="next digit", ylabel="digit")
        ax.tick_params(length=0)
        ax.spines[["top", "right"]].set_visible(True)
        return figure

    return draw


def accuracy_by_position(c: Comparison) -> Callable[[Theme], Figure]:
    def draw(theme: Theme) -> Figure:
        figure = Figure(figsize=(4.2, 2.7))
        ax = figure.add_axes(CHART)
        at = np.arange(len(PATTERN))
        unary, full = (100 * (read == c.truth).mean(axis=0) for read in (c.unary, c.full))
        ax.vlines(at, unary, full, color=theme.faint, lw=3)
        ax.plot(at, unary, "o", color=theme.wrong, mfc=theme.paper, label="unary only")
        ax.plot(at, full, "o", color=theme.accent, label="full CRF")
        ax.set_xticks(at, PATTERN)
        ax.set(xlabel="position", ylabel="digits read right (%)")
        ax.set_ylim(top=101.0)
        ax.yaxis.set_major_locator(MultipleLocator(5))
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        return figure

    return draw


def training_curve(histories: dict[str, list[float]]) -> Callable[[Theme], Figure]:
    def draw(theme: Theme) -> Figure:
        figure = Figure(figsize=(4.2, 2.7))
        ax = figure.add_axes(CHART)
        colours = [theme.wrong, theme.accent]
        for (name, history), colour in zip(histories.items(), colours, strict=True):
            ax.plot(np.arange(1, len(history) + 1), history, color=colour, label=name)
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.set(xlabel="iteration", ylabel="objective")
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
        return figure

    return draw


def png(draw: Callable[[Theme], Figure], theme: Theme, dpi: int = 200) -> bytes:
    with mpl.rc_context(theme.settings()):
        buffer = BytesIO()
        draw(theme).savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def picture(draw: Callable[[Theme], Figure], alt: str, caption: str = "") -> str:
    """The drawing for light and for dark pages, as HTML."""
    light, dark = (
        f"data:image/png;base64,{base64.b64encode(png(draw, theme)).decode()}"
        for theme in (LIGHT, DARK)
    )
    text = f"<figcaption>{caption}</figcaption>" if caption else ""
    return (
        f'<figure>{text}<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img src="{light}" alt="{alt}"></picture></figure>'
    )


def readings(c: Comparison, chosen: np.ndarray) -> str:
    def text(digits: np.ndarray) -> str:
        return "".join(map(str, digits))

    return "\n".join(
        picture(
            reading(c, i),
            f"date {text(c.truth[i])}: unary {text(c.unary[i])}, CRF {text(c.full[i])}",
        )
        for i in chosen
    )


def pair_tables(average: np.ndarray, pairs: np.ndarray) -> str:
    """The image that was shown eight times, and the pairs that the model expects then."""
    figures = [picture(digit_image(average), "a grey smudge", "average image")]
    for t, table in enumerate(pairs):
        name = f"{PATTERN[:t]}<b>{PATTERN[t : t + 2]}</b>{PATTERN[t + 2 :]}"
        first, second = np.unravel_index(table.argmax(), table.shape)
        alt = f"pairs at positions {t + 1} and {t + 2}; the most probable is {first}{second}"
        figures.append(picture(pair_table(table), alt, name))
    return "\n".join(figures)


def overview(c: Comparison, n: int = 6) -> Callable[[Theme], Figure]:
    """Dates that the CRF reads right and the unary model wrong, in one picture."""

    def draw(theme: Theme) -> Figure:
        figure = Figure(figsize=(7.6, 1.25 * (n // 2)))
        figure.subplots_adjust(0.01, 0.01, 0.99, 0.97, wspace=0.05, hspace=0.15)
        axes = figure.subplots(n // 2, 2)
        for ax, i in zip(axes.ravel(), c.gained()[:n], strict=False):
            draw_reading(ax, c, i, theme)
        return figure

    return draw


def table_rows(results: Sequence[Any]) -> str:
    best = max(results, key=lambda r: r.zero_one)
    return "\n".join(
        f"<tr{' class=best' if r is best else ''}><th scope=row>{r.name}<td>{r.strength:g}"
        f"<td>{r.hamming:.3f}<td>{r.zero_one:.3f}"
        for r in results
    )


def write_report(
    path: Path,
    dates: Any,
    results: Sequence[Any],
    average: np.ndarray,
    pairs: np.ndarray,
    overview_path: Path | None = None,
) -> None:
    """Fill the page's template; the last two results are the unary CRF's and the full one's."""
    *_, unary, full = results
    c = Comparison.of(dates.X_test, dates.y_test, unary.predicted, full.predicted)
    gained, lost, failed = c.gained(), c.lost(), c.failed()
    histories = {
        "unary only": unary.model.fit_report_.history,
        "full CRF": full.model.fit_report_.history,
    }
    fields = {
        "n_train": f"{len(dates.X_train):,}",
        "n_test": f"{len(dates.X_test):,}",
        "full": f"{full.zero_one:.1%}",
        "alone": f"{max(r.zero_one for r in results[:-1]):.1%}",
        "rows": table_rows(results),
        "n_gained": len(gained),
        "n_lost": len(lost),
        "n_failed": len(failed),
        "gained": readings(c, gained[:6]),
        "failed": readings(c, failed[:3]),
        "pairs": pair_tables(average, pairs),
        "position": picture(
            accuracy_by_position(c),
            "share of digits read right at each position, unary only and full CRF",
            "Accuracy by position",
        ),
        "curve": picture(
            training_curve(histories), "objective by iteration, unary only and full CRF", "Training"
        ),
    }
    template = Template(Path(__file__).with_name("_digit_dates.html").read_text(encoding="utf-8"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(template.substitute(fields), encoding="utf-8")
    if overview_path is not None:
        overview_path.write_bytes(png(overview(c), LIGHT, dpi=170))
