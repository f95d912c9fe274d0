"""Tokens with predicted labels: coloured text, and the formats of displaCy and Label Studio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chordal import _html
from chordal._shown import in_a_line


@dataclass(frozen=True)
class Span:
    """One label for the tokens from `start` up to, but not including, `end`."""

    start: int
    end: int
    label: str
    probability: float | None = None


@dataclass(frozen=True)
class LabelledText:
    """Tokens with the labels that a model predicts; see `show`.

    tokens : tuple of str
    labels, probabilities : tuples, one per token; a probability is None if the model tells none
    spans : tuple of Span
        Entities, where labels are tags such as B-LOC and I-LOC; else one span per token.
    text : str, in which the tokens stand
    offsets : tuple of (start, end), where each token stands in the text
    kinds : tuple of str, all labels of spans that the model knows; their order gives the colours
    """

    tokens: tuple[str, ...]
    labels: tuple[Any, ...]
    probabilities: tuple[float | None, ...]
    spans: tuple[Span, ...]
    text: str
    offsets: tuple[tuple[int, int], ...]
    kinds: tuple[str, ...]

    def limits(self, span: Span) -> tuple[int, int]:
        """Where a span begins and ends in the text, in characters."""
        return self.offsets[span.start][0], self.offsets[span.end - 1][1]

    def to_displacy(self, title: str | None = None) -> dict[str, Any]:
        """What ``displacy.render(…, style="ent", manual=True)`` takes."""
        ents = []
        for span in self.spans:
            start, end = self.limits(span)
            ents.append({"start": start, "end": end, "label": span.label})
        return {"text": self.text, "ents": ents, "title": title}

    def to_label_studio(
        self,
        from_name: str = "label",
        to_name: str = "text",
        key: str = "text",
        model_version: str = "chordal",
    ) -> dict[str, Any]:
        """A task of Label Studio with this prediction; a list of them is a file to import.

        Parameters
        ----------
        from_name, to_name : str
            The names of the tags Labels and Text in the labelling configuration.
        key : str
            The field of `data` that Text shows: `value="$text"` is "text".
        model_version : str
            What the Data Manager calls the model.

        The score of a span is its probability, that of the task the smallest of them.
        """
        result = []
        for k, span in enumerate(self.spans):
            start, end = self.limits(span)
            value: dict[str, Any] = {"start": start, "end": end, "text": self.text[start:end]}
            item: dict[str, Any] = {
                "id": f"span-{k}",
                "from_name": from_name,
                "to_name": to_name,
                "type": "labels",
                "value": {**value, "labels": [span.label]},
            }
            result.append(item if span.probability is None else {**item, "score": span.probability})
        known = [span.probability for span in self.spans if span.probability is not None]
        if not self.spans:
            known = [own for own in self.probabilities if own is not None]
        prediction: dict[str, Any] = {"model_version": model_version, "result": result}
        if known:
            prediction["score"] = min(known)
        return {"data": {key: self.text}, "predictions": [prediction]}

    def __str__(self) -> str:
        """The tokens, with spans in brackets: [Paris LOC 0.98]."""
        pieces: list[str] = []
        at = 0
        for span in self.spans:
            pieces += self.tokens[at : span.start]
            words = " ".join(self.tokens[span.start : span.end])
            pieces.append(f"[{words} {_tag(span)}]")
            at = span.end
        return in_a_line(" ".join([*pieces, *self.tokens[at:]]))

    def _repr_html_(self) -> str:
        """What notebooks show: a mark for each span; no scripts."""
        pieces, at = [], 0
        for span in self.spans:
            start, end = self.limits(span)
            pieces.append(_plain(self.text[at:start]))
            pieces.append(self._mark(span, self.text[start:end]))
            at = end
        pieces.append(_plain(self.text[at:]))
        return f'<div style="{_html.FONT};line-height:2.3">{"".join(pieces)}</div>'

    def _mark(self, span: Span, text: str) -> str:
        colour = _html.colour(self.kinds.index(span.label))
        sure = "" if span.probability is None else f"&nbsp;{span.probability:.2f}"
        return (
            f'<mark style="background:{colour};color:inherit;padding:.25em .5em;margin:0 .2em;'
            f'border-radius:.35em;box-decoration-break:clone;-webkit-box-decoration-break:clone">'
            f'{_html.text(text)}<span style="font-size:.75em;'
            f'font-weight:bold;margin-left:.5em">{_html.text(span.label)}{sure}</span></mark>'
        )


def _plain(text: str) -> str:
    """Text between spans; the spaces at its ends stay, outside of what has its own direction."""
    inner = text.strip(" ")
    if not inner:
        return " " if text else ""
    before, after = text.startswith(" ") * " ", text.endswith(" ") * " "
    return f"{before}{_html.text(inner)}{after}"


def _tag(span: Span) -> str:
    return span.label if span.probability is None else f"{span.label} {span.probability:.2f}"


def placed(tokens: Sequence[str], text: str | None) -> tuple[str, list[tuple[int, int]]]:
    """A text and where each token stands in it; without a text, tokens between spaces.

    >>> placed(["in", "Paris", "."], "in Paris.")
    ('in Paris.', [(0, 2), (3, 8), (8, 9)])
    """
    if text is not None and not isinstance(text, str):
        raise TypeError(f"text must be a str in which the tokens stand, got {type(text).__name__}")
    whole = " ".join(tokens) if text is None else text
    offsets, at = [], 0
    for k, token in enumerate(tokens):
        start = whole.find(token, at)
        if start < 0:
            raise ValueError(
                f"token {k}, {token!r}, is not in the text from its character {at} on; give the "
                "text that the tokens come from"
            )
        at = start + len(token)
        offsets.append((start, at))
    return whole, offsets
