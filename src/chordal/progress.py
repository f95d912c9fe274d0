"""Progress by the same words everywhere: what is done, how far, the figures, how long still.

A line that is written over in terminals and notebooks; lines of text in logs, on request.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import Any, Protocol

_PAUSE = 0.1  # seconds between two states of a live line
_EARLY = 0.5  # seconds before which the time that is left is anybody's guess
_BAR = 12  # characters
_TICK = 0.5  # seconds


class Progress:
    """How far a task is, in one line.

    The line says the task, how many steps or units are done and of how many, the current figures,
    the time so far and the time that is left. It vanishes when the task ends. Tasks within a task
    share its line.

    Parameters
    ----------
    task : str
        What is done, in one word: "fit", "prepare", "tune".
    total : number, optional
        How many steps or units there are, if that is known.
    unit : str
        The name of a step, as in "part 3 of 20"; or with `measure` of what is counted, as in
        "300,000 tokens".
    measure : bool
        Whether units are counted rather than steps.
    verbose : int
        0 shows nothing; 1 a live line in terminals and notebooks, and nothing in logs; 2 lines of
        text on standard error, wherever it goes.
    pace : float
        With `verbose` 2, the least number of seconds between two lines.
    ticks : bool
        Whether the clock in a terminal runs between two updates, which needs a thread.

    Examples
    --------
    >>> import io, contextlib
    >>> with contextlib.redirect_stderr(io.StringIO()) as log:
    ...     with Progress("sum", 3, "part", verbose=2, pace=0.0) as progress:
    ...         for k in range(3):
    ...             progress.update(k + 1, f"total {k}")
    >>> [line.split("  ")[:3] for line in log.getvalue().splitlines()][-1]
    ['sum', 'part 3 of 3', 'total 2']
    """

    def __init__(
        self,
        task: str,
        total: float | None = None,
        unit: str = "",
        *,
        measure: bool = False,
        verbose: int = 1,
        pace: float = 5.0,
        ticks: bool = False,
    ) -> None:
        self.task, self.total, self.unit, self.measure = task, total, unit, measure
        self.pace = pace
        self.done: float = 0
        self.share: float | None = None
        self.figures: tuple[str, ...] = ()
        self._left: float | None = None
        self._lines = verbose >= 2
        self._screen = screen() if verbose == 1 else None
        self._began = time.monotonic()
        self._shown = self._said = -float("inf")
        self._ended = threading.Event() if ticks and isinstance(self._screen, Terminal) else None

    def __enter__(self) -> Progress:
        self._began = time.monotonic()
        if self._screen is not None:
            _open.append(self)
            self._draw()
        if self._ended is not None:
            threading.Thread(target=self._tick, args=[self._ended], daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._screen is None:
            return
        if self._ended is not None:
            self._ended.set()
        with _drawing:
            _open.remove(self)
            if _open:
                _open[-1]._draw()
            else:
                self._screen.clear()

    @property
    def elapsed(self) -> float:
        """Seconds since the task began."""
        return time.monotonic() - self._began

    @property
    def left(self) -> float | None:
        """Seconds left at the current pace; None if they cannot be estimated yet."""
        if self._left is not None:
            return self._left
        share, elapsed = self.share, self.elapsed
        if share is None or not 0.0 < share <= 1.0 or elapsed < _EARLY:
            return None
        return elapsed * (1.0 - share) / share

    def update(
        self,
        done: float | None = None,
        *figures: str,
        share: float | None = None,
        left: float | None = None,
    ) -> None:
        """Say how far it is.

        Parameters
        ----------
        done : number, optional
            Steps or units that are done; as before, if it is not given.
        figures : texts
            Current figures, the most important first; as before, if none are given.
        share : float, optional
            How much of the task is done, between 0 and 1, where this is not done / total.
        left : float, optional
            Seconds that are left at most, where this is known.
        """
        self.done = self.done if done is None else done
        self.figures = figures or self.figures
        self.share = share if share is not None or not self.total else self.done / self.total
        self._left = left
        now = time.monotonic()
        if self._screen is not None and now - self._shown >= _PAUSE:
            self._draw()
        if self._lines and (now - self._said >= self.pace or self.share == 1.0):
            self._said = now
            say_line(self.text())

    def say(self, text: str) -> None:
        """A line that stays, above the live one; nothing where progress is not shown."""
        if self._screen is not None or self._lines:
            say_line(text)

    @property
    def count(self) -> str:
        """What is done, and of how much: "part 3 of 20", "300 of 900 tokens"."""
        of = f" of {self.total:,.0f}" if self.total else ""
        done = f"{self.done:>{len(of) - 4 if of else 4},.0f}"
        if self.measure:
            return f"{done}{of} {self.unit}"
        return f"{self.unit} {done}{of}" if self.done else "starting"

    def head(self) -> str:
        """The task and its count."""
        return f"{self.task}  {self.count}" if self.unit else self.task

    def line(self, width: int) -> str:
        """As much as there is room for, what matters most first."""
        left = f"{clock(self.left) if self.left is not None else '?':>5} left"
        bar = ""
        if self.share is not None:
            bar = f"[{'=' * round(_BAR * min(max(self.share, 0.0), 1.0)):<{_BAR}}]"
        outer = [own.head() for own in _open[: _open.index(self)]] if self in _open else []
        parts = [  # how much they matter, and the texts in their order
            *((2, text) for text in outer),
            (0, self.head()),
            (3.5, bar),  # says more than the figures after the first one
            *((3 + k, text) for k, text in enumerate(self.figures)),
            (0, f"{clock(self.elapsed):>5}"),
            (2, left if self.share is not None or self._left is not None else ""),
        ]
        parts = [part for part in parts if part[1]]
        while sum(len(text) + 2 for _, text in parts) - 2 >= width and len(parts) > 1:
            parts.remove(max(parts, key=lambda part: part[0]))
        return "  ".join(text for _, text in parts)[: width - 1]

    def text(self) -> str:
        """All of it, for a log."""
        left = "" if self.left is None else f"{clock(self.left)} left"
        said = [self.head(), *self.figures, f"{self.elapsed:.1f} s", left]
        return "  ".join(text for text in said if text)

    def _draw(self) -> None:
        """Show the line, if no task within this one has it."""
        with _drawing:
            if self._screen is not None and _open and _open[-1] is self:
                self._shown = time.monotonic()
                self._screen.show(self.line(self._screen.width()))

    def _tick(self, ended: threading.Event) -> None:
        while not ended.wait(_TICK):
            self._draw()


class Screen(Protocol):
    """Where a live line is shown."""

    def show(self, line: str) -> None:
        """Replace the last line by this one."""

    def clear(self) -> None:
        """Take the line away."""

    def width(self) -> int:
        """Characters that the line may have, and one more."""


class Terminal:
    """The last line of a terminal, which standard error is."""

    def __init__(self) -> None:
        self._length = 0

    def show(self, line: str) -> None:
        """Replace the last line by this one."""
        sys.stderr.write("\r" + line.ljust(self._length))
        sys.stderr.flush()
        self._length = len(line)

    def clear(self) -> None:
        """Take the line away, and the cursor back to where it was."""
        self.show("")
        sys.stderr.write("\r")
        sys.stderr.flush()

    def width(self) -> int:
        """Columns of the terminal; 80 if that is not known."""
        try:
            return os.get_terminal_size(sys.stderr.fileno()).columns or 80
        except (OSError, ValueError):
            return 80


class Notebook:
    """An output of the cell that runs; it is updated in its place."""

    def __init__(self, display: Any) -> None:
        self._display, self._handle = display, None

    def show(self, line: str) -> None:
        """Replace the last line by this one."""
        data = {"text/plain": line}
        if self._handle is None:
            self._handle = self._display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)

    def clear(self) -> None:
        """Empty the output; the next line gets a new one, since it may be in another cell."""
        if self._handle is not None:
            self._handle.update({"text/plain": ""}, raw=True)
        self._handle = None

    def width(self) -> int:
        """What a cell shows without a break on most screens."""
        return 110


_open: list[Progress] = []  # with a live line, the outermost first
_screens: dict[str, Screen] = {}
_drawing = threading.RLock()


def screen() -> Screen | None:
    """Where a live line can be shown: the notebook or the terminal that this runs in, if any."""
    shell = sys.modules.get("IPython")
    kernel = shell and getattr(shell.get_ipython(), "kernel", None)
    if shell and kernel is not None:
        if "notebook" not in _screens:
            _screens["notebook"] = Notebook(shell.display.display)
        return _screens["notebook"]
    try:
        live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # there is none, or it is closed
        return None
    return _screens.setdefault("terminal", Terminal()) if live else None


def say_line(text: str) -> None:
    """A line on standard error, above the live one if there is one."""
    with _drawing:
        live = _open[-1] if _open else None
        if live is not None and live._screen is not None:
            live._screen.clear()
        print(text, file=sys.stderr, flush=True)
        if live is not None:
            live._draw()


def clock(seconds: float) -> str:
    """Minutes and seconds, or hours, minutes and seconds.

    >>> clock(75), clock(3700)
    ('1:15', '1:01:40')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
