"""A progress line for the search for the best labelling."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chordal.inference import Inference
    from chordal.inference.portfolio import Progress

_COLUMNS = ("member", "score", "bound", "gap")


@contextmanager
def watched(inference: Inference) -> Iterator[None]:
    """Show best score, bound, gap, seconds and the member at work, if the method tells of them.

    Nothing is shown where standard error is not a terminal.
    """
    from chordal.inference.portfolio import PortfolioInference

    if not isinstance(inference, PortfolioInference) or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress as Line
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = [TextColumn(f"{name} {{task.fields[{name}]}}") for name in _COLUMNS]
    line = Line(
        SpinnerColumn(), *columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True
    )
    with line:
        task = line.add_task("", total=None, member="-", score="-", bound="-", gap="-")

        def show(state: Progress) -> None:
            line.update(
                task,
                member=state.member,
                score=f"{state.score:.6g}",
                bound=f"{state.bound:.6g}",
                gap=f"{state.bound - state.score:.6g}",
            )

        inference.watch = show
        try:
            yield
        finally:
            inference.watch = None
