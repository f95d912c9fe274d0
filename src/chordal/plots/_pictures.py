"""Figures to draw into, and files of them."""

from __future__ import annotations

from io import BytesIO
from typing import Any


def subplots(
    n_rows: int = 1, n_columns: int = 1, size: tuple[float, float] = (5.2, 3.4)
) -> tuple[Any, Any]:
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

    return plt.subplots(n_rows, n_columns, figsize=size, layout="constrained")


def as_png(figure: Any, dpi: int = 130) -> bytes:
    """The figure as a PNG file; it is closed."""
    from matplotlib import pyplot as plt

    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    plt.close(figure)
    return buffer.getvalue()
