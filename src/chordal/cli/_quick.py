"""The plainest form of ``chordal tag``, without Typer, whose start takes as long as all the rest.

Typer handles all other forms and commands. The options here mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Call(NamedTuple):
    """What ``chordal tag MODEL [INPUT] [-o OUTPUT] [-j JOBS]`` says."""

    model: str
    input: str
    output: str
    jobs: int


_OPTIONS = {"-o": "output", "--output": "output", "-j": "jobs", "--jobs": "jobs"}


def plain_call(words: Sequence[str]) -> Call | None:
    """The call, if it holds nothing but what a `Call` does.

    >>> plain_call(["tag", "-j", "2", "model", "text"])
    Call(model='model', input='text', output='-', jobs=2)
    >>> plain_call(["tag", "--marginals", "model"])
    """
    if not words or words[0] != "tag":
        return None
    places: list[str] = []
    options: dict[str, str] = {}
    rest = iter(words[1:])
    for word in rest:
        if word in _OPTIONS:
            options[_OPTIONS[word]] = next(rest, "")
        else:
            places.append(word)
    jobs = options.get("jobs", "1")
    output = options.get("output", "-")
    plain = all(re.match("-$|[^-]", word) for word in [*places, output])
    if not plain or len(places) not in (1, 2) or not re.fullmatch("-?[0-9]{1,9}", jobs):
        return None
    return Call(places[0], places[1] if places[1:] else "-", output, int(jobs))


def quick_tag(words: Sequence[str]) -> bool:
    """Label a file if the words are a plain call; whether they were."""
    call = plain_call(words)
    if call is None:
        return False
    from chordal.cli._data import Reading
    from chordal.cli._labeller import Answers
    from chordal.cli._tagging import label_file

    label_file(
        call.model,
        Reading(label=None),
        Answers(),
        input=call.input,
        output=call.output,
        jobs=call.jobs,
        verbose=1,
    )
    return True
