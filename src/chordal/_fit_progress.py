"""How a fit goes, and how near the tolerance it is, as progress says it."""

from __future__ import annotations

from collections import deque
from math import inf, isfinite, isnan, log
from types import TracebackType

from chordal.progress import Progress, say_line
from chordal.solvers import Iteration, Solver


class FitProgress:
    """Shows iteration, objective, its fall towards the tolerance, validation score and time.

    `verbose` 0 shows nothing, 1 a live line in terminals and notebooks, 2 a line of text per
    iteration wherever it goes.
    """

    def __init__(self, verbose: int, solver: Solver) -> None:
        self._lines = verbose >= 2
        self._live = Progress("fit", None, "iteration", verbose=0 if self._lines else verbose)
        self._course = Course(solver.max_iter, solver.tol, solver.window)

    def __enter__(self) -> FitProgress:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def update(self, state: Iteration, score: float | None) -> None:
        """Show one iteration, and the validation score if there is one."""
        self._course.add(state, score)
        if self._lines:
            say_line(self._course.text(state, score))
        else:
            share = self._course.share(state)
            self._live.update(state.iteration, *self._course.figures(state), share=share)


class Course:
    """The figures of a run so far, in columns of constant width."""

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
        if not isnan(state.gap) and state.value != 0.0:
            fall = state.gap / abs(state.value)
        if self.tol > 0.0 and 0.0 < fall < 1.0:
            self._done = max(self._done, min(log(fall) / log(min(self.tol, 0.5)), 1.0))

    @property
    def fall(self) -> float:
        """By how much the objective fell, relatively, in the window of the stopping rule."""
        first, last = self._values[0], self._values[-1]
        if len(self._values) < 2 or not isfinite(first) or last == 0.0:
            return inf
        return (first - last) / abs(last)

    def share(self, state: Iteration) -> float:
        """How much of the way is done: to the tolerance on a logarithmic scale, or of the passes.

        Solvers of most problems gain about a constant factor in each iteration.
        """
        passes = state.iteration / self.max_iter
        return max(self._done, passes) if self._nears(state) else passes

    def figures(self, state: Iteration) -> list[str]:
        """The objective, validation score, and the distance to the end; equally long each time."""
        scored = [] if self._score is None else [f"validation {self._score:.4f}"]
        towards = self._towards(state)
        return [f"objective {state.value:<10.5g}", *scored, *([towards] if towards else [])]

    def _falls(self, state: Iteration) -> bool:
        """Whether the run ends when the objective no longer falls: online solvers go on."""
        return self.tol > 0.0 and isnan(state.gap) and not isnan(state.gradient_norm)

    def _nears(self, state: Iteration) -> bool:
        """Whether there is a tolerance that the run comes near."""
        return self._falls(state) or (self.tol > 0.0 and not isnan(state.gap))

    def _towards(self, state: Iteration) -> str:
        if not isnan(state.gap):
            return f"gap {state.gap:<8.2g}"
        if not self._falls(state):
            return f"of at most {self.max_iter} passes" if isnan(state.gradient_norm) else ""
        fall = f"{self.fall:.0e}" if isfinite(self.fall) else "..."
        return f"fall {fall:>6} to {self.tol:.0e}"

    def text(self, state: Iteration, score: float | None) -> str:
        """All of it, for a log."""
        norm = "" if isnan(state.gradient_norm) else f"‖g‖ {state.gradient_norm:.3g}  "
        if not isnan(state.gap):
            norm = f"dual {state.value - state.gap:.6f}  gap {state.gap:.3g}  "
        scored = "" if score is None else f"validation {score:.4f}"
        return (
            f"iteration {state.iteration:4d}  objective {state.value:.6f}  "
            f"{norm}{state.elapsed:.2f} s  {scored}".rstrip()
        )
