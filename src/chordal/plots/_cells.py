"""Tables of coloured cells with numbers in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from chordal.plots._style import CHARACTER, FAINT, INK, LABEL, font_for, inches_of, short, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

Names = Sequence[object] | NDArray[Any]

MOST_NUMBERS = 14  # labels up to which cells carry numbers
LEAST = 0.25  # inches of a cell that does


def table_size(rows: Names, columns: Names) -> tuple[float, float]:
    """Width and height in inches for a table with these names, and a bar beside it."""
    side = min(11.0, max(2.6, 1.0 + 0.36 * max(len(rows), len(columns))))
    return side + 1.2 + width_of(rows), side + 0.4 + width_of(columns)


def draw_table(
    ax: Axes,
    values: NDArray[Any],
    rows: Names,
    columns: Names,
    numbers: Sequence[Sequence[str]],
    **options: Any,
) -> AxesImage:
    """Colours by `values`, with `numbers` in the cells of tables that are not too large."""
    height, width = len(rows), len(columns)
    image = ax.imshow(values, **options)
    across, down = ([short(name, LABEL) for name in own] for own in (columns, rows))
    inches = inches_of(ax)[0]
    points = font_for(max(height, width), inches)
    long = max(map(len, across), default=0) > 3 or width_of(across) + CHARACTER > inches / width
    ax.set_xticks(range(width), across, rotation=90 if long else 0, fontsize=points)
    ax.set_yticks(range(height), down, fontsize=points)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set(color=FAINT, visible=True)
    if max(height, width) <= MOST_NUMBERS and inches / width >= LEAST:
        write_numbers(ax, image.to_rgba(values)[..., :3], numbers)
    return image


def write_numbers(
    ax: Axes, rgb: NDArray[Any], numbers: Sequence[Sequence[str]], below: float = 0.0
) -> None:
    """Text in each cell [row, column], white on dark colours; `below` its middle.

    A halo in the colour of the cell keeps it legible where lines pass.
    """
    dark = rgb @ [0.299, 0.587, 0.114] < 0.5
    for i, row in enumerate(numbers):
        for j, text in enumerate(row):
            colour = "white" if dark[i, j] else INK
            halo = [withStroke(linewidth=2.2, foreground=rgb[i, j])] if below else None
            where: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 5}
            ax.text(j, i + below, text, fontsize=8, color=colour, path_effects=halo, **where)


def colour_bar(ax: Axes, image: Any, label: str, **options: Any) -> None:
    """A bar beside the axes that explains colours."""
    bar = ax.figure.colorbar(image, ax=options.pop("among", ax), label=label, **options)
    bar.outline.set_visible(False)
