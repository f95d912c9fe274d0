"""Where chunks begin and end in tags such as B-NP, I-NP, O.

All sequences stand in one array, with an outside tag before the first and after each, so that
no rule needs to know where a sequence ends. A tag is its prefix ("B") as a code and its type
("NP") as a number; every rule is then a look-up or a comparison of whole arrays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._schemes import SCHEMES as TABLE
from chordal._validate import check_choice
from chordal.metrics._encode import Ints, Pair

Flags = NDArray[np.bool_]

# Codes of prefixes. What conlleval has no rule for (S, U, L, …) is OTHER to it.
OUT, BEGIN, IN, END, DOT, OPEN, CLOSE, SINGLE, OTHER = range(9)
CONLLEVAL = {"O": OUT, "B": BEGIN, "I": IN, "E": END, ".": DOT, "[": OPEN, "]": CLOSE}
_ROLES = (BEGIN, IN, END, SINGLE)
STRICT = {  # a prefix of two roles has the first
    name: {"O": OUT, **dict(zip(scheme[3::-1], _ROLES[::-1], strict=True))}
    for name, scheme in TABLE.items()
    if not scheme.begin_if_adjacent
}
SCHEMES = ("conlleval", *STRICT)


class Tags(NamedTuple):
    """Tags at all positions.

    prefix : int64 [n], codes
    kind : int64 [n], numbers of types
    name : int64 [n], equal where prefix (as text) and type are
    """

    prefix: Ints
    kind: Ints
    name: Ints


class Chunks(NamedTuple):
    """Chunks from `first` up to, but not including, `stop`, and the numbers of their types."""

    first: Ints
    stop: Ints
    kind: Ints


class TagPair(NamedTuple):
    """True and predicted tags; `sequence` [n] holds the sequence of each position."""

    true: Tags
    pred: Tags
    types: list[str]
    sequence: Ints


def read_tags(pair: Pair, scheme: str) -> TagPair:
    """Split the labels and lay out the sequences with an outside tag around each."""
    check_choice("scheme", scheme, SCHEMES)
    types: dict[str, int] = {}
    names: dict[tuple[str, str], int] = {}
    rows = []
    for label in ["O", *pair.labels]:
        prefix, _, kind = label.partition("-")
        if kind == "0" and scheme == "conlleval":
            kind = ""  # to the script, written in Perl, "0" is as good as nothing
        code, number = _code(prefix, label, scheme), types.setdefault(kind, len(types))
        rows.append((code, number, names.setdefault((prefix, kind), len(names))))
    table = np.array(rows, dtype=np.int64).T
    n_tokens, n_sequences = len(pair.true), len(pair.lengths)
    place = np.arange(1, n_tokens + 1) + pair.sequence
    sequence = np.repeat(np.arange(n_sequences), pair.lengths + 1)

    def laid_out(numbers: Ints) -> Tags:
        label = np.zeros(n_tokens + n_sequences + 1, dtype=np.int64)
        label[place] = numbers + 1
        return Tags(*(column[label] for column in table))

    both = laid_out(pair.true), laid_out(pair.pred)
    return TagPair(*both, list(types), np.concatenate([[0], sequence]))


def find_chunks(tags: Tags, scheme: str) -> Chunks:
    """The chunks that `scheme` sees."""
    return _conlleval_chunks(tags) if scheme == "conlleval" else _strict_chunks(tags, scheme)


def starts_and_ends(tags: Tags) -> tuple[Flags, Flags]:
    """conlleval's two questions: does a chunk begin at, or end before, each position?"""
    start, end = np.zeros((2, len(tags.prefix)), dtype=bool)
    before, here = tags.prefix[:-1], tags.prefix[1:]
    changed = tags.kind[:-1] != tags.kind[1:]
    start[1:] = STARTS[before, here] | (changed & INSIDE[here])
    end[1:] = ENDS[before, here] | (changed & INSIDE[before])
    return start, end


def _table(pairs: Iterable[tuple[int, int]]) -> Flags:
    table = np.zeros((OTHER + 1, OTHER + 1), dtype=bool)
    table[tuple(zip(*pairs, strict=True))] = True
    return table


# [prefix before, prefix here]
_BOTH = [(BEGIN, BEGIN), (IN, BEGIN), (END, END), (END, IN)]  # one ends and the next begins
STARTS = _table([*_BOTH, (OUT, BEGIN), (OUT, IN), (OUT, END)])
ENDS = _table([*_BOTH, (BEGIN, OUT), (IN, OUT), (END, OUT)])
STARTS[:, [OPEN, CLOSE]] = True  # a bracket is a chunk of one token
ENDS[[OPEN, CLOSE], :] = True
INSIDE = np.array([code not in (OUT, DOT) for code in range(OTHER + 1)])


def _code(prefix: str, label: str, scheme: str) -> int:
    if scheme == "conlleval":
        return CONLLEVAL.get(prefix, OTHER)
    known = STRICT[scheme]
    if prefix not in known:
        raise ValueError(
            f"scheme {scheme!r} has the prefixes {', '.join(known)}, got the label {label!r}; "
            "choose another scheme"
        )
    return known[prefix]


def _conlleval_chunks(tags: Tags) -> Chunks:
    start, end = starts_and_ends(tags)
    outside = tags.name == tags.name[0]  # ends of sequences, which no chunk crosses, among them
    first = np.flatnonzero(start)
    limits = np.flatnonzero(start | end | outside)
    stop = limits[np.searchsorted(limits, first, side="right")]
    return Chunks(first, stop, tags.kind[first])


def _strict_chunks(tags: Tags, scheme: str) -> Chunks:
    """B I … I, or, where the scheme marks last and single tokens, B I … E and S."""
    before, here = tags.prefix[:-1], tags.prefix[1:]
    goes_on = np.isin(before, [BEGIN, IN]) & np.isin(here, [IN, END])
    goes_on &= tags.kind[:-1] == tags.kind[1:]
    first = np.flatnonzero(np.concatenate([[True], ~goes_on]))
    stop = np.append(first[1:], len(tags.prefix))
    legal = tags.prefix[first] == BEGIN
    if TABLE[scheme].marks_ends:
        legal &= tags.prefix[stop - 1] == END
        legal |= tags.prefix[first] == SINGLE
    return Chunks(first[legal], stop[legal], tags.kind[first[legal]])
