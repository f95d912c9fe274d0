"""Ready-made feature templates for common tasks."""

from __future__ import annotations

from collections.abc import Iterator

from chordal._validate import check_choice, check_number

TASKS = ("chunking", "ner", "pos")


def default_template(task: str, n_columns: int = 1) -> str:
    """The template of a task, for rows of a word and n_columns − 1 further columns.

    Parameters
    ----------
    task : {"chunking", "ner", "pos"}
    n_columns : int
        Number of columns; the first is the word, the others (part of speech, lemma, …) are
        used in windows around it.

    Examples
    --------
    >>> print(default_template("pos"))  # doctest: +ELLIPSIS
    # Words
    U00:%x[0,0]
    U01:%x[-1,0]
    ...
    """
    check_choice("task", task, TASKS)
    check_number("n_columns", n_columns, minimum=1, integer=True)
    makers = {"chunking": _chunking, "ner": _ner, "pos": _pos}
    lines = list(makers[task]())
    for column in range(1, n_columns):
        lines += _tags(column, many=task != "ner")
    return "\n".join([*_numbered(lines), "B", ""])


def _numbered(lines: list[str]) -> Iterator[str]:
    """Give each line a unique name, so that equal values stay different attributes."""
    number = 0
    for line in lines:
        if line.startswith("#"):
            yield line
            continue
        yield f"U{number:02d}:{line}"
        number += 1


def _window(macro: str, reach: int) -> Iterator[str]:
    """The macro at the position, then around it."""
    for distance in range(reach + 1):
        for offset in sorted({distance, -distance}):
            yield macro.format(offset)


def _affixes(longest: int) -> Iterator[str]:
    for n in range(1, longest + 1):
        yield f'%m[0,0,"^{"." * n}"]'
        yield f'%m[0,0,"{"." * n}$"]'


def _chunking() -> Iterator[str]:
    yield "# Words"
    yield from _window("%x[{},0]", 2)
    yield "%x[-1,0]/%x[0,0]"
    yield "%x[0,0]/%x[1,0]"
    yield "# What words look like"
    yield from _affixes(4)
    yield from _window("%s[{},0]", 1)


def _ner() -> Iterator[str]:
    yield "# Words"
    yield from _window("%x[{},0]", 2)
    yield from _window("%X[{},0]", 1)
    yield "%X[-1,0]/%X[0,0]"
    yield "%X[0,0]/%X[1,0]"
    yield "# What words look like"
    yield from _affixes(4)
    yield from _window("%s[{},0]", 2)
    yield "%s[-1,0]/%s[0,0]"
    yield "%s[0,0]/%s[1,0]"
    yield "%s[-1,0]/%s[0,0]/%s[1,0]"
    yield '%m[-1,0,"...$"]'
    yield '%m[1,0,"...$"]'


def _pos() -> Iterator[str]:
    yield "# Words"
    yield from _window("%x[{},0]", 2)
    yield "%X[0,0]"
    yield "%x[-1,0]/%x[0,0]"
    yield "%x[0,0]/%x[1,0]"
    yield "# What words look like"
    yield from _affixes(5)
    yield from _window("%s[{},0]", 1)
    yield '%m[-1,0,"...$"]'
    yield '%m[1,0,"...$"]'


def _tags(column: int, many: bool) -> Iterator[str]:
    """Windows of a further column; `many` adds long ones, which names of things do not need."""
    yield f"# Column {column}"
    yield from _window(f"%x[{{}},{column}]", 2)
    for first in (-2, -1, 0, 1):
        yield f"%x[{first},{column}]/%x[{first + 1},{column}]"
    if not many:
        return
    for first in (-2, -1, 0):
        yield f"%x[{first},{column}]/%x[{first + 1},{column}]/%x[{first + 2},{column}]"
    yield f"%x[0,0]/%x[0,{column}]"
