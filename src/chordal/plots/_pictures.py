"""Figures to draw into, and files of them."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from chordal._validate import check_number
from chordal.plots._checks import check_count, places, real
from chordal.plots._style import COLOURS, bare

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def subplots(
    n_rows: int = 1, n_columns: int = 1, size: tuple[float, float] = (5.2, 3.4)
) -> tuple[Figure, Any]:
    """A figure with rows and columns of axes, in the library's style; `size` in inches.

    Examples
    --------
    >>> figure, axes = subplots(1, 2)
    >>> len(axes)
    2
    >>> as_png(figure)[1:4]
    b'PNG'
    """
    from matplotlib import pyplot as plt

    check_count("n_rows", n_rows)
    check_count("n_columns", n_columns)
    if not (real(size, "size", 2) > 0.0).all():
        raise ValueError(f"size must be a width and a height above 0, got {size!r}")
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained")
    for ax in figure.axes:
        bare(ax)
        ax.set_prop_cycle(color=COLOURS)
    return figure, axes


def as_png(figure: Figure, dpi: int = 130, colours: int | None = None) -> bytes:
    """The figure as a PNG file; it is closed. A palette of few `colours` makes it a small one."""
    from matplotlib import pyplot as plt
    from matplotlib.figure import Figure

    if not isinstance(figure, Figure):
        raise TypeError(f"figure must be a matplotlib Figure, got {type(figure).__name__}")
    check_number("dpi", dpi, strict=True)
    if colours is not None:
        places(colours, "colours", low=1, high=256)
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    plt.close(figure)
    return buffer.getvalue() if colours is None else _palette(buffer, colours)


def _palette(png: BytesIO, colours: int) -> bytes:
    from PIL import Image

    small = BytesIO()
    with Image.open(png) as image:
        # Without dithering: areas of one colour stay clean, and compress well.
        few = image.convert("RGB").quantize(colours, dither=Image.Dither.NONE)
        few.save(small, format="png", optimize=True)
    return small.getvalue()
