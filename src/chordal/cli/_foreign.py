"""Options of ``crf_learn`` and ``wapiti train``, with their original meaning."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer

if TYPE_CHECKING:
    from chordal._saved import Saved, State
    from chordal.solvers import Iteration

T = TypeVar("T")

Freq = Annotated[
    int | None,
    typer.Option(
        "--freq", min=0, help="CRF++ (also -f N): drop attributes seen less than N times."
    ),
]
Pattern = Annotated[
    str | None,
    typer.Option(
        "--pattern",
        "-p",
        metavar="FILE",
        help="Wapiti: a template file in its dialect. (-p N: threads, as in CRF++.)",
    ),
]
NThread = Annotated[
    int | None,
    typer.Option("--nthread", min=1, help="Wapiti (also -t N), CRF++ (-p N): threads."),
]
Iterations = Annotated[
    int | None, typer.Option("-i", min=1, metavar="N", help="Wapiti: --max-iter.")
]
Eta = Annotated[
    float | None,
    typer.Option(
        min=0.0, help="CRF++ (-e): stop after three changes of the objective below this fraction."
    ),
]
StopEps = Annotated[
    float | None,
    typer.Option(
        "--stopeps",
        min=0.0,
        help="Wapiti (-e): stop when the error rate, in percent, varies by less in --stopwin "
        "iterations, or the objective, as a fraction, in five.",
    ),
]
StopWin = Annotated[
    int | None,
    typer.Option(
        "--stopwin", "-w", min=0, help="Wapiti: number of iterations for --stopeps; default 5."
    ),
]
Epsilon = Annotated[
    float | None, typer.Option("-e", min=0.0, help="CRF++: --eta. Wapiti: --stopeps.")
]


@dataclass(frozen=True)
class Given:
    """Values of options that several tools share, by each tool's names."""

    template: str | None  # -t
    pattern: str | None  # -p
    dialect: str | None
    format: str | None  # -f
    min_freq: int | None
    freq: int | None
    pairs: str | None
    max_iter: int | None
    iterations: int | None  # -i
    jobs: int | None
    nthread: int | None
    c: float | None
    eta: float | None
    stopeps: float | None
    stopwin: int | None
    epsilon: float | None  # -e

    def ours(self) -> Given:
        """The same in our options: template, dialect, format, min_freq, pairs, max_iter, jobs."""
        found = self._number_or_file("template", "-t", "nthread")
        found = found._number_or_file("pattern", "-p", "jobs")
        if found.format is not None and found.format.isdigit():
            found = replace(found, format=None, freq=found._one("freq", int(found.format)))
        if found.freq is not None:
            found = found._by_frequency()
        if found.pattern is not None:
            if found.template is not None:
                refuse("give --feature-template or --pattern, not both")
            dialect = found.dialect or "wapiti"
            found = replace(found, template=found.pattern, dialect=dialect)
        jobs = found.jobs if found.nthread is None else found._one("jobs", found.nthread)
        most = found.max_iter
        if found.iterations is not None:
            most = found._one("max_iter", found.iterations)
        return replace(found, jobs=jobs, max_iter=most, dialect=found.dialect or "crf++")

    def rule(self) -> SlowFall | Steady | None:
        """The stopping rule of CRF++ or Wapiti, if their options ask for it; call it on `ours`."""
        found, wapiti = self, self.stopeps is not None or self.stopwin is not None
        if self.epsilon is not None:
            of_wapiti = (self.pattern, self.iterations, self.nthread)
            wapiti |= self.dialect == "wapiti" or any(x is not None for x in of_wapiti)
            like_crfpp = any(x is not None for x in (self.c, self.freq, self.eta))
            if wapiti == like_crfpp:
                refuse(
                    "-e is --eta of CRF++ or --stopeps of Wapiti: use one of these names instead"
                )
            if wapiti:
                found = replace(self, stopeps=self._one("stopeps", self.epsilon))
            else:
                found = replace(self, eta=self._one("eta", self.epsilon))
        if wapiti and found.eta is not None:
            refuse("give --eta (CRF++) or --stopeps and --stopwin (Wapiti), not both")
        if wapiti:
            epsilon = 0.02 if found.stopeps is None else found.stopeps
            return Steady(epsilon, 5 if found.stopwin is None else found.stopwin)
        return None if found.eta is None else SlowFall(found.eta)

    def _number_or_file(self, name: str, short: str, threads: str) -> Given:
        """-t 4 and -p 4 are threads, unless a file has that name."""
        value = getattr(self, name)
        if value is None or not value.isdigit():
            return self
        if os.path.exists(value):
            refuse(f"{short} {value} may be a file or threads: give ./{value} or --nthread {value}")
        changes: dict[str, Any] = {name: None, threads: self._one(threads, int(value))}
        return replace(self, **changes)

    def _by_frequency(self) -> Given:
        """CRF++ counts an attribute whatever its label, and has weights for all pairs."""
        if self.pairs == "seen":
            refuse("-f (CRF++) implies --pairs all; use --min-freq with --pairs seen")
        return replace(self, pairs="all", min_freq=self._one("min_freq", self.freq))

    def _one(self, name: str, value: T) -> T:
        if getattr(self, name) is not None:
            option = "--" + name.replace("_", "-")
            refuse(f"{option} was given twice, under two names: keep one")
        return value


def refuse(message: str) -> NoReturn:
    """Say that options do not go together."""
    raise typer.BadParameter(message)


class SlowFall:
    """CRF++'s rule: the objective changed by less than `eta`, relatively, three times in a row."""

    needs_scores = False

    def __init__(self, eta: float) -> None:
        self.eta = eta
        self._before: float | None = None
        self._times = 0

    def to_state(self) -> State:
        """What a checkpoint keeps."""
        return {"before": [] if self._before is None else [self._before], "times": self._times}

    def from_state(self, saved: Saved) -> None:
        """Go on with a fit."""
        self._before = next(iter(saved.numbers("before")), None)
        self._times = saved.integer("times")

    def __call__(self, state: Iteration) -> bool:
        before, self._before = self._before, state.value
        slow = before is not None and abs(before - state.value) < self.eta * abs(before)
        self._times = self._times + 1 if slow else 0
        return self._times >= 3


class Steady:
    """Wapiti's rule: errors in percent vary by less than `epsilon` in `window` iterations, or the
    objective, relatively, in five. A window of 0 leaves out the first.
    """

    OBJECTIVES = 5

    def __init__(self, epsilon: float, window: int) -> None:
        self.epsilon = epsilon
        self.needs_scores = window > 0
        self._errors: deque[float] = deque(maxlen=max(window, 1))
        self._values: deque[float] = deque(maxlen=self.OBJECTIVES)

    def to_state(self) -> State:
        """What a checkpoint keeps."""
        return {"errors": list(self._errors), "values": list(self._values)}

    def from_state(self, saved: Saved) -> None:
        """Go on with a fit."""
        self._errors.extend(saved.numbers("errors"))
        self._values.extend(saved.numbers("values"))

    def __call__(self, state: Iteration) -> bool:
        self._values.append(state.value)
        if self.needs_scores:
            self._errors.append(100.0 * (1.0 - state.score))
            full = len(self._errors) == self._errors.maxlen
            if full and max(self._errors) - min(self._errors) < self.epsilon:
                return True
        before = self._values[0]
        return state.iteration > self.OBJECTIVES and (
            abs(before - state.value) < self.epsilon * abs(before)
        )
