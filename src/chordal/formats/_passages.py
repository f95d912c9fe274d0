"""Text by blocks that hold whole sequences, for the formats that are read by kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from chordal.formats._files import Source
from chordal.formats._lines import LIMIT, too_long

T = TypeVar("T")

LARGEST = 2**32 - 1  # bytes of one block
SMALL = 1 << 16  # bytes that are read in no time


class Block(NamedTuple):
    """Text whose finished sequences are to be read."""

    text: bytes
    line: int  # lines of the file before it
    at_end: bool  # nothing follows: the last sequence is finished too


class Passage(NamedTuple):
    """How much of a block its finished sequences take."""

    size: int
    lines: int


def read_passages(
    source: Source, size: int, eager: bool, read: Callable[[Block], tuple[T, Passage]]
) -> Iterator[tuple[T, int]]:
    """What `read` makes of blocks of about `size` bytes, and the bytes that each one covers.

    With `eager`, sequences are handed over as soon as they are complete, as a filter in a pipe has
    to.
    """
    rest, line, at_end, tried = b"", 0, False, 0
    while not at_end:
        # A sequence that fills the block needs a larger one.
        missing = min(max(size, 2 * len(rest)), LARGEST) - len(rest)
        more = source.read(missing, eager)
        at_end = not more or (len(more) < missing and not eager)
        text = rest + more
        if eager and not at_end and SMALL < len(text) < 2 * tried:
            rest = text  # a long sequence is not read again for each piece that arrives
            continue
        found, passage = read(Block(text, line, at_end))
        rest = text[passage.size :]
        tried = len(rest)
        line += passage.lines
        if len(rest) > LIMIT:
            raise too_long(source.name, line + 1)
        covered = len(text) if at_end else passage.size
        if covered:
            yield found, covered
