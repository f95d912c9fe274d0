"""Lines of text with their numbers, for the formats that are read in Python."""

from __future__ import annotations

from collections.abc import Iterator

from chordal._errors import FormatError
from chordal.formats._files import Place, name_of, open_source

LIMIT = 1 << 28  # bytes of a line or sequence: a longer one lacks its line breaks
BLOCK = 1 << 18


def read_lines(place: Place) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line, without its end; checked to be UTF-8."""
    with open_source(place) as source:
        number, begun, size = 0, [b""], 0  # the pieces of a line without an end so far
        while block := source.read(BLOCK, eager=True):
            first, *others = block.split(b"\n")
            begun.append(first)
            size += len(first)
            _check_size(size, source.name, number + 1)
            if others:
                for line in (b"".join(begun), *others[:-1]):
                    number += 1
                    yield number, decoded(line, source.name, number)
                begun, size = [others[-1]], len(others[-1])
        if size:
            yield number + 1, decoded(b"".join(begun), source.name, number + 1)


def read_paragraphs(place: Place) -> Iterator[list[tuple[int, str]]]:
    """The lines between blank ones."""
    lines: list[tuple[int, str]] = []
    size = 0
    for number, line in read_lines(place):
        if line.strip(" \t"):
            lines.append((number, line))
            size += len(line)
            if size > LIMIT:
                raise too_long(name_of(place), number)
        elif lines:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines


def too_long(name: str, line: int) -> FormatError:
    """The error of a sequence that does not end."""
    what = f"a sequence of more than {LIMIT >> 20} MiB; are the blank lines missing?"
    return FormatError(name, what, line=line)


def _check_size(size: int, name: str, number: int) -> None:
    if size > LIMIT:
        what = f"a line of more than {LIMIT >> 20} MiB; are the line breaks missing?"
        raise FormatError(name, what, line=number)


def decoded(line: bytes, name: str, number: int) -> str:
    """The text of a line, without its carriage return; checked."""
    if line.endswith(b"\r"):
        line = line[:-1]
    for byte, what in (
        (b"\0", "a NUL byte, which text does not hold; convert the file to UTF-8"),
        (b"\r", "a carriage return inside a line; end lines with LF or CRLF"),
    ):
        if byte in line:
            raise FormatError(name, what, line=number, column=line.index(byte) + 1)
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        what = "not UTF-8; convert the file to UTF-8"
        raise FormatError(name, what, line=number, column=error.start + 1) from None
