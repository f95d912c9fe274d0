"""Numbers between blanks, counted so that an error can say where it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Context, Decimal

import numpy as np

from chordal._errors import FormatError
from chordal.formats._files import Place, open_source
from chordal.potentials import Floats

LIMIT = 1 << 30  # bytes, decompressed
LEAST, MOST = 1_000_000, 100_000_000  # limits of `allowance`
TINY = np.finfo(np.float64).tiny

_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,15})?")
_PRECISE = Context(prec=25, Emax=10**15, Emin=-(10**15))


class Tokens:
    """The words of a file, taken one after another.

    Counts are compared with the number of words that follow, before an array of that size is made.
    """

    def __init__(self, place: Place, comments: bool = False) -> None:
        with open_source(place) as source:
            self.name = source.name
            text = source.read(LIMIT + 1)
        if len(text) > LIMIT:
            raise FormatError(self.name, f"the text is longer than {LIMIT:,} bytes")
        # Blanks instead of comments: the places of what follows stay as they are.
        self.text = re.sub(rb"#[^\n]*", b" ", text) if comments else text
        self.words = self.text.split()
        self.at = 0

    @property
    def allowance(self) -> int:
        """How many numbers a model may have that the file describes by fewer words."""
        return allowance(len(self.words))

    @property
    def left(self) -> int:
        """How many words are left."""
        return len(self.words) - self.at

    def word(self, what: str) -> str:
        """The next word."""
        self.need(1, what)
        self.at += 1
        return self.words[self.at - 1].decode("utf-8", "replace")

    def integer(self, what: str, minimum: int = 0, maximum: int | None = None) -> int:
        """The next word as a whole number."""
        return self.integers(1, what, minimum, maximum)[0]

    def integers(
        self, n: int, what: str, minimum: int = 0, maximum: int | None = None
    ) -> list[int]:
        """The next n words as whole numbers."""
        self.need(n, what)
        values = []
        for word in self.words[self.at : self.at + n]:
            if not word.isdigit() or len(word) > 18:
                raise self.error(f"{what} must be a whole number, got {_shown(word)}")
            value = int(word)
            if value < minimum or (maximum is not None and value > maximum):
                upper = "" if maximum is None else f" and at most {maximum}"
                raise self.error(f"{what} must be at least {minimum}{upper}, got {value}")
            values.append(value)
            self.at += 1
        return values

    def numbers(self, n: int, what: str) -> Floats:
        """The next n words as numbers; beyond the range of float64 they are 0 or infinite."""
        self.need(n, what)
        self.at += n
        return self.numbers_at(range(self.at - n, self.at), lambda _: what)

    def logs(self, places: Sequence[int], what: Callable[[int], str]) -> Floats:
        """The logarithms of the words at these places, which must not be negative.

        0 becomes −inf, but no number beyond the range of float64 is taken for 0 or infinity.
        `what` names the k-th of them.
        """
        values = self.numbers_at(places, what)
        if (values < 0.0).any():
            k = int(np.argmax(values < 0.0))
            self.at = places[k]
            raise self.error(f"{what(k)} must not be negative, got {_shown(self.words[self.at])}")
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(values)
        for k in np.flatnonzero((values < TINY) | (values == np.inf)).tolist():
            exact = Decimal(self.words[places[k]].decode())
            if exact < 0:  # so small that it was taken for zero
                self.at = places[k]
                shown = _shown(self.words[self.at])
                raise self.error(f"{what(k)} must not be negative, got {shown}")
            logs[k] = float(exact.ln(_PRECISE)) if exact else -np.inf
        return logs

    def numbers_at(self, places: Sequence[int], what: Callable[[int], str]) -> Floats:
        """The words at these places as numbers; `what` names the k-th of them."""
        words = [self.words[place] for place in places]
        for k, word in enumerate(words):
            if not _NUMBER.fullmatch(word):
                self.at = places[k]
                raise self.error(f"{what(k)} must be a number, got {_shown(word)}")
        return np.array(words, dtype=object).astype(np.float64)

    def need(self, n: int, what: str) -> None:
        """Refuse a count that the rest of the file cannot hold."""
        if n > self.left:
            found = "the file ends" if self.left == 0 else f"only {self.left:,} words follow"
            wanted = what if n == 1 else f"{n:,} words ({what})"
            self.at = len(self.words)
            raise self.error(f"expected {wanted}, but {found}; the file is cut short")

    def check_states(self, counts: Sequence[int]) -> None:
        """Refuse variables with more labels than a file of this size can need."""
        if sum(counts) > self.allowance:
            raise self.error(
                f"the variables have {sum(counts):,} labels, more than {self.allowance:,}, too "
                "many for a file of this size"
            )

    def end(self) -> None:
        """Refuse what follows the last thing expected."""
        if self.left:
            raise self.error(f"expected the end of the file, got {_shown(self.words[self.at])}")

    def error(self, what: str) -> FormatError:
        """An error about the next word, with its line and column."""
        line, column = self.place(self.at)
        return FormatError(self.name, what, line=line, column=column)

    def place(self, at: int) -> tuple[int, int]:
        """Line and column of a word, or of the end of the file."""
        for number, line in enumerate(self.text.split(b"\n"), 1):
            found = re.finditer(rb"\S+", line)
            for word in found:
                if at == 0:
                    return number, word.start() + 1
                at -= 1
        return number, len(line) + 1


def allowance(n_words: int) -> int:
    """How many cells or labels a file of `n_words` words may declare: 1,000 for each word.

    >>> allowance(20), allowance(50_000), allowance(10**7)
    (1000000, 50000000, 100000000)
    """
    return min(MOST, max(LEAST, 1000 * n_words))


def product_up_to(counts: Iterable[int], limit: int) -> int:
    """The product of counts of at least 1; once it is above the limit, that plus one.

    >>> product_up_to([2, 3], 100), product_up_to([2] * 400_000, 100)
    (6, 101)
    """
    total = 1
    for count in counts:
        total *= count
        if total > limit:
            return limit + 1
    return total


def _shown(word: bytes) -> str:
    text = word.decode("utf-8", "replace")
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
