"""A line in a terminal that says how a fit goes, and how near the tolerance it is."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from math import inf, isfinite, isnan, log
from types import TracebackType

from chordal.solvers import Iteration, Solver

_PAUSE = 0.1  # seconds between two states of the line
_BAR = 12


class FitProgress:
    """Shows iteration, objective, its fall towards the tolerance, validation score and time.

    `verbose` 0 shows nothing, 1 a live line when standard error is a terminal, 2 a line of text
    per iteration wherever it goes.
    """

    def __init__(self, verbose: int, solver: Solver) -> None:
        self._lines, self._live = verbose >= 2, verbose == 1 and sys.stderr.isatty()
        self._course = Course(solver.max_iter, solver.tol, solver.window)
        self._shown = -inf
        self._width = 0

    def __enter__(self) -> FitProgress:
        if self._live:
            self._write("fit  starting")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def update(self, state: Iteration, score: float | None) -> None:
        """Show one iteration, and the validation score if there is one."""
        self._course.add(state, score)
        if self._live and time.monotonic() - self._shown >= _PAUSE:
            self._shown = time.monotonic()
            self._write(self._course.line(state, terminal_width()))
        if self._lines:
            print(self._course.text(state, score), file=sys.stderr, flush=True)

    def _write(self, line: str) -> None:
        """Put the line in the place of the one before."""
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)


class Course:
    """What is known of a run so far, as a line of constant width."""

    def __init__(self, max_iter: int, tol: float, window: int) -> None:
        self.max_iter, self.tol = max_iter, tol
        self._values: deque[float] = deque(maxlen=window + 1)
        self._score: float | None = None
        self._done = 0.0

    def add(self, state: Iteration, score: float | None) -> None:
        """Take note of an iteration."""
        self._values.append(state.value)
        self._score = self._score if score is None else score
        fall = self.fall
        if self.tol > 0.0 and 0.0 < fall < 1.0:
            self._done = max(self._done, min(log(fall) / log(min(self.tol, 0.5)), 1.0))

    @property
    def fall(self) -> float:
        """By how much the objective fell, relatively, in the window of the stopping rule."""
        first, last = self._values[0], self._values[-1]
        if len(self._values) < 2 or not isfinite(first) or last == 0.0:
            return inf
        return (first - last) / abs(last)

    def line(self, state: Iteration, width: int) -> str:
        """As much as there is room for, what matters most first; equally long each time."""
        minutes, seconds = divmod(int(state.elapsed), 60)
        parts = [  # how much they matter, and the texts in their order
            (0, f"fit {state.iteration:>4}"),
            (4, f"[{'=' * round(_BAR * self._done):<{_BAR}}]" if self._falls(state) else ""),
            (1, f"objective {state.value:<10.5g}"),
            (3, self._towards(state)),
            (2, "" if self._score is None else f"validation {self._score:.4f}"),
            (0, f"{minutes:>2}:{seconds:02}"),
        ]
        parts = [part for part in parts if part[1]]
        while sum(len(text) + 2 for _, text in parts) - 2 >= width and len(parts) > 1:
            parts.remove(max(parts))
        return "  ".join(text for _, text in parts)[: width - 1]

    def _falls(self, state: Iteration) -> bool:
        """Whether the run ends when the objective no longer falls: online solvers go on."""
        return self.tol > 0.0 and isnan(state.gap) and not isnan(state.gradient_norm)

    def _towards(self, state: Iteration) -> str:
        if not isnan(state.gap):
            return f"gap {state.gap:<8.2g}"
        if not self._falls(state):
            return f"of at most {self.max_iter} passes" if isnan(state.gradient_norm) else ""
        fall = f"{self.fall:.0e}" if isfinite(self.fall) else "..."
        return f"fall {fall:>6} to {self.tol:.0e}"

    def text(self, state: Iteration, score: float | None) -> str:
        """All of it, for a file."""
        norm = "" if isnan(state.gradient_norm) else f"‖g‖ {state.gradient_norm:.3g}  "
        if not isnan(state.gap):
            norm = f"dual {state.value - state.gap:.6f}  gap {state.gap:.3g}  "
        scored = "" if score is None else f"validation {score:.4f}"
        return (
            f"iteration {state.iteration:4d}  objective {state.value:.6f}  "
            f"{norm}{state.elapsed:.2f} s  {scored}".rstrip()
        )


def terminal_width() -> int:
    """Columns of the terminal that standard error is; 80 if that is not known."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
