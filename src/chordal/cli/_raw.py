"""Raw text: one line in, one line of JSON out, with entities and where they are in the line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from chordal._entities import entities_in, entity_probabilities
from chordal._schemes import scheme_of
from chordal.formats import Place, Token, read_lines, sentences

if TYPE_CHECKING:
    from chordal import ChainCRF
    from chordal.cli._token_model import TokenModel

Sentence = list[Token]


def raw_pieces(
    model: ChainCRF | TokenModel, place: Place, live: bool, constrain: str | None
) -> Iterator[bytes]:
    """A line of JSON for each line of text; what arrives through a pipe is answered at once."""
    check_one_column(model)
    lines = (line for _, line in read_lines(place))
    while batch := list(islice(lines, 1 if live else 256)):
        found = answers(model, batch, constrain)
        yield "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in found).encode()


def check_one_column(model: ChainCRF | TokenModel) -> None:
    """Refuse a model that needs more than words."""
    if model.input_ is None:
        return  # it reads tokens
    template, width = model.columns_template(), getattr(model.input_, "width", 0)
    if template is None:
        raise ValueError(
            "--text needs a model with a template, but this one was trained on attributes"
        )
    if max(width, template.n_columns) > 1:
        raise ValueError(
            f"--text gives one column (the words), but the model was trained with "
            f"{max(width, template.n_columns)}: give a file with all columns"
        )


def answers(
    model: ChainCRF | TokenModel, lines: Sequence[str], constrain: str | None
) -> list[dict[str, Any]]:
    """For each line its text and its entities; labelled tokens if the labels are of no scheme."""
    split = [sentences(line) for line in lines]
    flat = [own for of_line in split for own in of_line]
    scheme = scheme_of(model.classes_)
    found: list[list[dict[str, Any]]] = []
    if scheme is None and flat:
        found = _tokens(model, flat, constrain)
    elif scheme is not None and flat:
        found = _entities(model, flat, constrain or "auto", scheme)
    key, out, at = "tokens" if scheme is None else "entities", [], 0
    for line, of_line in zip(lines, split, strict=True):
        own = [one for part in found[at : at + len(of_line)] for one in part]
        at += len(of_line)
        out.append({"text": line, key: [{**one, "text": _text(line, one)} for one in own]})
    return out


def _text(line: str, one: dict[str, Any]) -> str:
    return line[one["start"] : one["end"]]


def _entities(
    model: ChainCRF | TokenModel, flat: list[Sentence], constrain: str, scheme: str
) -> list[list[dict[str, Any]]]:
    """The entities of each sentence, and P(exactly these tokens are an entity of this type)."""
    X = [[[token.text] for token in own] for own in flat]
    labels = [list(map(str, y)) for y in model.predict(X, allowed_transitions=constrain)]
    spans = entities_in(labels, scheme)
    chances = entity_probabilities(model, X, spans, scheme)
    return [
        [
            {
                "start": own[chunk.start].start,
                "end": own[chunk.end - 1].end,
                "label": chunk.type,
                "probability": chance,
            }
            for chunk, chance in zip(found, row, strict=True)
        ]
        for own, found, row in zip(flat, spans, chances, strict=True)
    ]


def _tokens(
    model: ChainCRF | TokenModel, flat: list[Sentence], constrain: str | None
) -> list[list[dict[str, Any]]]:
    """The tokens of each sentence with their labels and P(label)."""
    X = [[[token.text] for token in own] for own in flat]
    names = [str(label) for label in model.classes_]
    ends = np.cumsum([len(own) for own in flat])[:-1]
    codes = np.split(model.predict_codes(X, allowed_transitions=constrain), ends)
    chances = model.predict_marginals(X, allowed_transitions=constrain)
    return [
        [
            {
                "start": token.start,
                "end": token.end,
                "label": names[k],
                "probability": float(row[k]),
            }
            for token, k, row in zip(own, of_own.tolist(), rows, strict=True)
        ]
        for own, of_own, rows in zip(flat, codes, chances, strict=True)
    ]
