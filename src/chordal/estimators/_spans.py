"""Segments of a sequence as events: which labels, where, make exactly this entity."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal.estimators._constraints import split_tag
from chordal.estimators._labels import SequenceLabels
from chordal.inference import Spans


def segment_spans(
    labels: SequenceLabels,
    segments: Sequence[Sequence[Any]],
    lengths: NDArray[np.int64],
    begin: int = 0,
) -> Spans:
    """Events of segments (start, end, label) per sequence; `end` is exclusive.

    The sequences are those from number `begin` on, which messages name.
    """
    prefixes = {split_tag(label)[0] for label in labels.labels if "-" in str(label)}
    example, start, length, allowed = [], [], [], []
    for i, (of_sequence, n) in enumerate(zip(segments, lengths, strict=True)):
        for segment in of_sequence:
            first, masks = _event(labels, prefixes, segment, begin + i, int(n))
            example.append(i)
            start.append(first)
            length.append(len(masks))
            allowed.extend(masks)
    flags = np.concatenate(allowed) if allowed else np.zeros(0, dtype=np.uint8)
    return Spans(
        example=np.array(example, dtype=np.int64),
        start=np.array(start, dtype=np.int64),
        length=np.array(length, dtype=np.int64),
        allowed=flags.astype(np.uint8),
    )


def _is_integer(value: Any) -> bool:
    return isinstance(value, Integral)


def _event(
    labels: SequenceLabels, prefixes: set[str], segment: Any, i: int, n: int
) -> tuple[int, list[NDArray[np.bool_]]]:
    """The first position of the event, and the labels allowed from there on."""
    try:
        begin, end, kind = segment
    except (TypeError, ValueError):
        raise ValueError(f"a segment must be (start, end, label), got {segment!r}") from None
    if not (_is_integer(begin) and _is_integer(end)) or not 0 <= begin < end <= n:
        raise ValueError(
            f"segment {segment!r} of sequence {i} must satisfy 0 <= start < end <= {n}, integers"
        )

    def only(*tags: Any) -> NDArray[np.bool_]:
        mask = np.zeros(len(labels), dtype=bool)
        mask[[labels.number(tag) for tag in tags]] = True
        return mask

    size = end - begin
    if prefixes & {"E", "S"}:  # IOBES: an entity carries its own ends
        inner = [f"I-{kind}"] * (size - 2)
        tags = [f"S-{kind}"] if size == 1 else [f"B-{kind}", *inner, f"E-{kind}"]
        return begin, [only(tag) for tag in tags]
    if "B" in prefixes:  # BIO: and the next position does not go on with it
        masks = [only(f"B-{kind}")] + [only(f"I-{kind}") for _ in range(size - 1)]
        if end < n and f"I-{kind}" in labels.labels:
            masks.append(~only(f"I-{kind}"))
        return begin, masks
    masks = [only(kind)] * size  # plain labels: a run that cannot be extended
    if begin > 0:
        masks = [~only(kind), *masks]
    if end < n:
        masks = [*masks, ~only(kind)]
    return max(begin - 1, 0), masks
