"""The JSON of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal.formats import Token
from chordal.metrics import Chunk
from chordal.serve._json import encoded
from chordal.serve._questions import Question
from chordal.serve._shelf import Loaded


@dataclass(eq=False, slots=True)
class Found:
    """A sequence of a question, and what the model says of it."""

    x: Any
    question: Question
    codes: list[int] = field(default_factory=list)
    marginals: NDArray[np.float64] | None = None
    entities: list[Chunk] = field(default_factory=list)
    chances: list[float | None] | None = None
    ranked: list[tuple[Any, float]] = field(default_factory=list)


def answer_of(loaded: Loaded, question: Question, found: Sequence[Sequence[Found]]) -> bytes:
    """The answer to a question: its model and version, and a result for each input."""
    out: dict[str, Any] = {"model": loaded.name, "version": loaded.version}
    if question.marginals:
        out["classes"] = loaded.labels
    results = []
    for sample, own in zip(question.samples, found, strict=True):
        if sample.tokens is None:
            results.append(_sequence(loaded, question, own[0]))
        else:
            text = sample.text or ""
            both = zip(own, sample.tokens, strict=True)
            of_text = [_sentence(loaded, question, one, text, tokens) for one, tokens in both]
            results.append({"sentences": of_text})
    return encoded(out | results[0] if question.single else out | {"results": results})


def _sentence(
    loaded: Loaded, question: Question, one: Found, text: str, tokens: list[Token]
) -> dict[str, Any]:
    """A sequence with its tokens, and where they and its spans are in the text."""
    out = {
        "tokens": [token.text for token in tokens],
        "offsets": [[token.start, token.end] for token in tokens],
        **_sequence(loaded, question, one),
    }
    for span in out.get("spans", ()):
        first, stop = span["tokens"]
        start, end = tokens[first].start, tokens[stop - 1].end
        span.update(start=start, end=end, text=text[start:end])
    return out


def _sequence(loaded: Loaded, question: Question, one: Found) -> dict[str, Any]:
    names = loaded.labels
    out: dict[str, Any] = {"labels": [names[k] for k in one.codes]}
    table = one.marginals
    if question.probabilities:
        chosen = [] if table is None else table[np.arange(len(table)), one.codes].tolist()
        out["probabilities"] = chosen
    if question.marginals:
        out["marginals"] = [] if table is None else table.tolist()
    if question.spans and loaded.scheme is not None:
        out["spans"] = _spans(question, one)
    if question.k_best:
        out["k_best"] = [
            {"labels": list(labels), "log_probability": chance} for labels, chance in one.ranked
        ]
    return out


def _spans(question: Question, one: Found) -> list[dict[str, Any]]:
    spans = [{"label": e.type, "tokens": [e.start, e.end]} for e in one.entities]
    if not question.probabilities or one.chances is None:
        return spans
    pairs = zip(spans, one.chances, strict=True)
    return [{**span, "probability": chance} for span, chance in pairs]
