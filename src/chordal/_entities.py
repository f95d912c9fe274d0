"""Entities in the labels of sequences, and how probable each of them is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

from chordal._schemes import SCHEMES
from chordal.metrics import Chunk, chunks

if TYPE_CHECKING:
    from chordal.potentials import Floats

Spans = Sequence[Sequence[tuple[int, int, Any]]]


class SpanModel(Protocol):
    """A model that tells how probable entities are: a chain, or a network over one."""

    def span_probabilities(self, X: object, spans: Spans) -> list[Floats]:
        """The probability that a segment is exactly this entity."""


def entities_in(labels: Sequence[Sequence[str]], scheme: str) -> list[list[Chunk]]:
    """The entities of each sequence; `scheme` is that of the model's labels.

    Schemes that mark ends are read strictly, the others as conlleval reads them.

    >>> entities_in([["B-LOC", "I-LOC"], [], ["O", "B-PER"]], "bio")
    [[Chunk(start=0, end=2, type='LOC')], [], [Chunk(start=1, end=2, type='PER')]]
    """
    # One call for all of them: an "O" between two sequences keeps their entities apart.
    starts = list(accumulate((len(own) + 1 for own in labels), initial=0))
    flat = [label for own in labels for label in (*own, "O")]
    out: list[list[Chunk]] = [[] for _ in labels]
    for start, end, kind in chunks(flat, scheme if SCHEMES[scheme].marks_ends else "conlleval"):
        k = bisect_right(starts, start) - 1
        out[k].append(Chunk(start - starts[k], end - starts[k], kind))
    return out


def entity_probabilities(
    model: SpanModel, X: object, entities: Sequence[Sequence[Chunk]], scheme: str
) -> list[list[float | None]]:
    """P(exactly these tokens are an entity of this type); None for IOB1.

    Spans of IOB1 may begin in two ways, for which there is no single event to ask about.
    """
    if scheme == "iob1":
        return [[None] * len(own) for own in entities]
    asked: list[list[tuple[int, int, Any]]] = [
        [(e.start, e.end, e.type) for e in own] for own in entities
    ]
    return [row.tolist() for row in model.span_probabilities(X, asked)]
