"""Results: PR, MAR and MAP."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal._errors import FormatError
from chordal.formats._files import Place, open_target
from chordal.formats.uai._tokens import Tokens
from chordal.potentials import Floats


def read_pr(place: Place) -> float:
    """log10 of the partition function, or of the probability of the evidence.

    >>> import io
    >>> read_pr(io.BytesIO(b"PR\\n-1.5\\n"))
    -1.5
    """
    tokens = _answer(place, "PR")
    if tokens.left == 2:
        tokens.integer("the number of samples", 1, 1)
    if tokens.left and re.fullmatch(rb"-inf(inity)?", tokens.words[tokens.at].lower()):
        return -np.inf
    value = float(tokens.numbers(1, "log10 of the partition function")[0])
    tokens.end()
    return value


def read_mar(place: Place) -> list[Floats]:
    """The marginal probabilities of each variable.

    >>> import io
    >>> read_mar(io.BytesIO(b"MAR\\n2  2 0.1 0.9  1 1.0"))
    [array([0.1, 0.9]), array([1.])]
    """
    tokens = _answer(place, "MAR")
    start = tokens.at
    try:
        return _distributions(tokens)
    except FormatError as error:
        # Perhaps the number of samples comes first, which is one.
        if tokens.words[start : start + 1] != [b"1"]:
            raise
        tokens.at = start + 1
        with suppress(FormatError):
            return _distributions(tokens)
        raise error


def read_map(place: Place) -> NDArray[np.int32]:
    """The best labels of all variables.

    >>> import io
    >>> read_map(io.BytesIO(b"MAP\\n3 0 1 1"))
    array([0, 1, 1], dtype=int32)
    """
    tokens = _answer(place, "MAP")
    n = tokens.integer("the number of variables")
    if n == 1 and tokens.left > 1:  # it was the number of samples
        n = tokens.integer("the number of variables")
    labels = tokens.integers(n, "a label", 0, 2**31 - 1)
    tokens.end()
    return np.array(labels, dtype=np.int32)


def write_pr(log10_partition: float, place: Place) -> None:
    """Write log10 of the partition function."""
    _write(place, "PR", repr(float(log10_partition)))


def write_mar(marginals: Sequence[ArrayLike], place: Place) -> None:
    """Write the marginal probabilities of each variable."""
    words = [str(len(marginals))]
    for distribution in marginals:
        row = np.asarray(distribution, dtype=np.float64).tolist()
        words += [str(len(row)), *map(repr, row)]
    _write(place, "MAR", " ".join(words))


def write_map(labels: ArrayLike, place: Place) -> None:
    """Write the labels of all variables."""
    row = np.asarray(labels).tolist()
    _write(place, "MAP", " ".join(map(str, [len(row), *row])))


def _answer(place: Place, task: str) -> Tokens:
    """The words of the last answer; programs that improve theirs write -BEGIN- between."""
    tokens = Tokens(place)
    found = tokens.word(task)
    if found.upper() != task:
        tokens.at -= 1
        raise tokens.error(f"expected {task}, got {found[:40]!r}")
    begins = [k for k, word in enumerate(tokens.words) if word.upper() == b"-BEGIN-"]
    if begins:
        tokens.at = begins[-1] + 1
    return tokens


def _distributions(tokens: Tokens) -> list[Floats]:
    n = tokens.integer("the number of variables")
    tokens.need(2 * n, f"the marginals of {n} variables")
    found = []
    for variable in range(n):
        size = tokens.integer(f"the labels of variable {variable}", 1)
        row = tokens.numbers(size, f"a probability of variable {variable}")
        if not ((row >= 0.0) & (row <= 1.0 + 1e-6)).all():
            raise tokens.error(f"probabilities of variable {variable} must be between 0 and 1")
        found.append(row)
    tokens.end()
    return found


def _write(place: Place, task: str, text: str) -> None:
    with open_target(place) as file:
        file.write(f"{task}\n{text}\n".encode())
