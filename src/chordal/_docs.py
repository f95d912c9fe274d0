"""What classes share is documented once, in their base class, and `help` shows it for each."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection

_HEADING = re.compile(r"^(\w+)\n-{3,}\n", re.MULTILINE)
_ENTRY = re.compile(r"^(?=\S)", re.MULTILINE)  # where the description of a name begins


def complete_docs(cls: type) -> None:
    """Add what the base class says of parameters and attributes to the docstrings of a class, and
    of those of its methods that the base class has too.
    """
    base = cls.__mro__[1]
    parameters = {*inspect.signature(base).parameters, *inspect.get_annotations(cls)}
    cls.__doc__ = completed(cls.__doc__, base.__doc__, parameters)
    for name, method in vars(cls).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            shared = vars(base).get(name)
            if shared is not None:
                known = inspect.signature(method).parameters
                method.__doc__ = completed(method.__doc__, shared.__doc__, known)


def completed(own: str | None, shared: str | None, parameters: Collection[str]) -> str | None:
    """A docstring with the entries of another one that it lacks, in the sections that both have.

    >>> shared = "Base.\\n\\nParameters\\n----------\\na : int\\n    One.\\nb : int\\nc : int"
    >>> own = "Mine.\\n\\nParameters\\n----------\\nx : str\\nb, d : float\\n\\nExamples\\n---\\n1"
    >>> print(completed(own, shared, ["a", "b", "x"]))
    Mine.
    <BLANKLINE>
    Parameters
    ----------
    x : str
    b, d : float
    a : int
        One.
    <BLANKLINE>
    Examples
    --------
    1
    """
    if own is None or shared is None:
        return own
    head, sections = _sections(own)
    _, theirs = _sections(shared)
    for title in ("Parameters", "Attributes"):
        entries = _entries(sections.get(title, ""))
        described = {name for entry in entries for name in _names(entry)}
        for entry in _entries(theirs.get(title, "")):
            names = {*_names(entry)}
            if not names & described and (title == "Attributes" or names & {*parameters}):
                entries.append(entry)
        if entries:
            sections[title] = "\n".join(entries)
    titles = sorted(sections, key=("Parameters", "Attributes").__contains__, reverse=True)
    written = [f"{title}\n{'-' * len(title)}\n{sections[title]}" for title in titles]
    return "\n\n".join([head, *written])


def _sections(text: str) -> tuple[str, dict[str, str]]:
    """What stands before the first heading, and the text under each."""
    head, *rest = map(str.strip, _HEADING.split(inspect.cleandoc(text)))
    return head, dict(zip(rest[::2], rest[1::2], strict=True))


def _entries(section: str) -> list[str]:
    return [entry.rstrip() for entry in _ENTRY.split(section) if entry.strip()]


def _names(entry: str) -> list[str]:
    """The names that an entry describes: of "l1, l2 : float", both."""
    return [name.strip() for name in entry.partition("\n")[0].partition(" : ")[0].split(",")]
