"""What a benchmark gets and gives: the run it belongs to, and rows of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Row:
    """One line of the table; `met` is None where nothing is required or nothing was judged."""

    what: str
    peer: str = ""
    ours: str = ""
    ratio: str = ""
    requirement: str = ""
    met: bool | None = None
    problem: str = ""  # why there is no measurement

    @property
    def verdict(self) -> str:
        """The requirement and whether it is met."""
        if self.met is None or not self.requirement:
            return self.requirement
        return f"{self.requirement} {'✓' if self.met else '✗ NOT MET'}"


@dataclass
class Run:
    """One call of `python -m benchmarks`."""

    quick: bool
    plots: bool
    folder: Path  # for this run only
    say: Callable[[str], None]  # shows what is going on; never inside a timed section

    def judged(self, met: bool) -> bool | None:
        """A quick run's sizes are not those of the requirements."""
        return None if self.quick else met

    def speed(
        self,
        what: str,
        peer: float,
        ours: float,
        *,
        at_least: float | None = None,
        goal: float | None = None,
        show: Callable[[float], str] | None = None,
    ) -> Row:
        """A row of two durations: how many times faster we are."""
        show = show or seconds
        return self.ratio(
            what, show(peer), show(ours), peer / ours, at_least=at_least, goal=goal, unit="×"
        )

    def ratio(
        self,
        what: str,
        peer: str,
        ours: str,
        ratio: float,
        *,
        at_least: float | None = None,
        goal: float | None = None,
        unit: str = "×",
    ) -> Row:
        """A row whose ratio (larger is better) has a requirement."""
        requirement = ""
        if at_least is not None:
            requirement = f"≥ {at_least:g}{unit}"
            if goal is not None:
                reached = "" if self.quick else (": reached" if ratio >= goal else ": not yet")
                requirement += f" (goal {goal:g}{unit}{reached})"
        met = None if at_least is None else self.judged(ratio >= at_least)
        return Row(what, peer, ours, f"{ratio:.2f}{unit}", requirement, met)


Part = Callable[[Run], Iterable[Row]]


def seconds(value: float) -> str:
    """Three digits, in the unit that fits."""
    factor, unit = (1.0, "s") if value >= 1.0 else (1e3, "ms") if value >= 1e-3 else (1e6, "µs")
    number = value * factor
    return f"{number:,.{2 if number < 10 else 1 if number < 100 else 0}f} {unit}"


def megabytes(value: float) -> str:
    return f"{value / 1e6:,.0f} MB"
