"""What an experiment is, and what comes out of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isinf
from typing import Any, ClassVar

from numpy.typing import NDArray

Array = NDArray[Any]  # of numbers or labels

COLOURS = 256  # of a picture's palette


@dataclass(frozen=True)
class Row:
    """One figure of ours beside the published one.

    Parameters
    ----------
    what : str
        What was measured.
    ours : float
    published : float, optional
        The figure that was printed; there may be none.
    must : float, optional
        What ours has to reach to be called met; the published figure, if nothing is said.
    spread : float, optional
        One standard error of ours over repetitions.
    lower : bool
        Whether smaller figures are better.
    digits : int
        Decimals that are shown; figures that agree in them are equal.
    why : str
        How the protocol differs, or why a figure is not met.
    judged : bool
        Whether there is a verdict; a quick run gives none.

    Examples
    --------
    >>> Row("letters", 0.955, published=0.955).verdict
    'met'
    >>> Row("letters", 0.96, published=0.955).verdict
    'beaten'
    >>> Row("error", 0.1, must=0.05, lower=True).verdict
    'not met'
    >>> Row("time", 3.0).verdict
    ''
    """

    what: str
    ours: float
    published: float | None = None
    must: float | None = None
    spread: float | None = None
    lower: bool = False
    digits: int = 3
    why: str = ""
    judged: bool = True

    @property
    def verdict(self) -> str:
        """beaten, met, not met; or nothing, where nothing was asked."""
        asked = self.must if self.must is not None else self.published
        if asked is None or not self.judged:
            return ""
        sign = -1.0 if self.lower else 1.0
        ours, asked = (round(sign * value, self.digits) for value in (self.ours, asked))
        if not ours >= asked:
            return "not met"
        if self.published is None:
            return "met"
        return "beaten" if ours > round(sign * self.published, self.digits) else "met"

    def shown(self, value: float | None) -> str:
        """A figure in this row's decimals; by its power of ten where these are many."""
        if value is None:
            return ""
        if isinf(value):
            return "never"
        return f"{value:,.{self.digits}f}" if self.digits < 8 else f"{value:.1g}"

    @property
    def reason(self) -> str:
        """The figure to reach, where it is not the published one; then why.

        Examples
        --------
        >>> Row("error", 0.1, 0.04, must=0.05, lower=True, digits=2, why="other data").reason
        'asked: at most 0.05; other data'
        """
        parts = [self.why] if self.why else []
        if self.must is not None and self.must != self.published:
            side = "most" if self.lower else "least"
            parts.insert(0, f"asked: at {side} {self.shown(self.must) if self.must else 0}")
        return "; ".join(parts)

    @property
    def ours_shown(self) -> str:
        """Ours, with its standard error if that is known."""
        if self.spread is None:
            return self.shown(self.ours)
        return f"{self.shown(self.ours)} ± {self.shown(self.spread)}"


@dataclass(frozen=True)
class Table:
    """More figures than verdicts: a head and rows of text and numbers."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Picture:
    """A drawing: PNG bytes, a title, and a sentence about what is to be seen.

    `alt` is for those who do not see it: what it shows, with the figures that matter.
    """

    title: str
    caption: str
    png: bytes
    alt: str = ""

    @classmethod
    def of(cls, title: str, caption: str, figure: Any, alt: str = "") -> Picture:
        """A figure of matplotlib's, which is closed."""
        from chordal.plots import as_png

        return cls(title, caption, as_png(figure, colours=COLOURS), alt)


@dataclass(frozen=True)
class Token:
    """One position of a sequence: what is seen, its label, and what models wrongly said."""

    text: str
    true: str
    wrong: Mapping[str, str]


@dataclass(frozen=True)
class Samples:
    """Sequences with their true labels, and the mistakes that models make in them."""

    title: str
    caption: str
    sequences: Sequence[Sequence[Token]]


@dataclass
class Outcome:
    """What an experiment found."""

    rows: list[Row] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    samples: list[Samples] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def verdicts(self) -> dict[str, int]:
        """How many rows are beaten, met and not met; none that are not there."""
        counts = Counter(row.verdict for row in self.rows)
        return {v: counts[v] for v in ("beaten", "met", "not met") if counts[v]}

    def draw(self, title: str, caption: str, figure: Any, alt: str = "") -> None:
        """Add a figure of matplotlib's, and close it."""
        self.pictures.append(Picture.of(title, caption, figure, alt))


@dataclass(frozen=True)
class Setup:
    """How to run: `quick` takes the same path on less data; `say` tells what is being done."""

    quick: bool = False
    say: Callable[[str], None] = lambda stage: None
    n_jobs: int = 2


class Experiment(ABC):
    """One experiment: facts for its reader, and `run`. The same seed gives the same figures."""

    title: ClassVar[str]
    #: What is measured and why, in a few sentences.
    about: ClassVar[str]
    data: ClassVar[str]
    split: ClassVar[str]
    model: ClassVar[str]
    #: Where the published figures are from.
    source: ClassVar[str]
    seed: ClassVar[int] = 0

    @abstractmethod
    def run(self, setup: Setup) -> Outcome:
        """Everything, from the data to the figures."""


@dataclass(frozen=True)
class Finished:
    """An experiment that was run: what it found, or why it could not."""

    name: str
    experiment: Experiment
    outcome: Outcome | None
    problem: str
    seconds: float
