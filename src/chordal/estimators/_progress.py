"""Progress of a fit: a live line in a terminal, nothing where output is not one."""

from __future__ import annotations

from math import isnan
from types import TracebackType
from typing import Any

from chordal.solvers import Iteration


class FitProgress:
    """Shows iteration, objective, gradient norm, elapsed and remaining time.

    `verbose` 0 shows nothing, 1 a live line when standard error is a terminal, 2 a line of text
    per iteration wherever it goes.
    """

    def __init__(self, verbose: int, max_iter: int) -> None:
        self._lines = verbose >= 2
        self._bar: Any = None
        if verbose <= 0:
            return
        from rich.console import Console

        self._console = Console(stderr=True)
        if verbose == 1 and self._console.is_terminal:
            self._bar = _live_line(self._console)
            self._task = self._bar.add_task("fit", total=max_iter, value=0.0, norm="", score="")

    def __enter__(self) -> FitProgress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, state: Iteration, score: float | None) -> None:
        """Show one iteration, and the validation score if there is one."""
        text = "" if score is None else f"validation {score:.4f}"
        norm = "" if isnan(state.gradient_norm) else f"‖g‖ {state.gradient_norm:.3g}"
        if not isnan(state.gap):
            norm = f"dual {state.value - state.gap:.6f}  gap {state.gap:.3g}"
        if self._bar is not None:
            self._bar.update(self._task, advance=1, value=state.value, norm=norm)
            if text:
                self._bar.update(self._task, score=text)
        elif self._lines:
            self._console.print(
                f"iteration {state.iteration:4d}  objective {state.value:.6f}  "
                f"{norm + '  ' if norm else ''}{state.elapsed:.2f} s  {text}".rstrip(),
                highlight=False,
                soft_wrap=True,
            )


def _live_line(console: Any) -> Any:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("[bold]fit"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("objective {task.fields[value]:.6g}"),
        TextColumn("{task.fields[norm]}"),
        TextColumn("{task.fields[score]}"),
        TimeElapsedColumn(),
        TextColumn("left ≤"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
