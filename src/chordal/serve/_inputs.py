"""What a model reads, and one input of a request as sequences for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from chordal._opening import columns_of
from chordal.features import AttributeInput, DenseInput, VectorInput
from chordal.formats import Token, sentences
from chordal.serve._refusal import Refusal, key, refuse

if TYPE_CHECKING:
    from chordal import ChainCRF

#: How deep objects of attributes may be nested.
DEEPEST = 8


class Sample(NamedTuple):
    """One input: the sequences that the model gets, and where their tokens are in a text."""

    X: list[Any]
    text: str | None = None
    tokens: list[list[Token]] | None = None  # of each sequence, of a text

    @property
    def n_tokens(self) -> int:
        """Tokens of all sequences."""
        return sum(map(len, self.X))


@dataclass(frozen=True)
class Reads:
    """What a model reads.

    rows : "columns" (strings), "attributes" (names, with or without values) or "numbers"
    width : columns or numbers of a row; 0 for attributes
    vectors : widths of the arrays among attributes, by name
    """

    rows: str
    width: int
    vectors: Mapping[str, int]

    @classmethod
    def of(cls, model: ChainCRF) -> Reads:
        """What this model reads; refuses models that no JSON can ask."""
        source, vectors = model.input_, model.reader_.input("vectors")
        template = model.columns_template()
        if model.transition_features is not None:
            raise ValueError("models with transition_features cannot be served")
        if template is not None:
            return cls("columns", max(columns_of(model), template.n_columns, 1), {})
        if isinstance(source, AttributeInput):
            widths = vectors.widths if isinstance(vectors, VectorInput) else {}
            return cls("attributes", 0, widths)
        if isinstance(source, DenseInput):
            return cls("numbers", source.n_columns, {})
        raise ValueError("models of sparse matrices cannot be served; train on named attributes")

    @property
    def inputs(self) -> tuple[str, ...]:
        """The kinds of input that a request may have."""
        return ("text", "tokens", "rows") if self.takes_words else ("rows",)

    @property
    def takes_words(self) -> bool:
        """Whether words are all that the model needs."""
        return self.rows == "columns" and self.width == 1

    def example(self) -> Any:
        """A sequence of one token that the model can read."""
        if self.rows == "numbers":
            return np.zeros((1, self.width))
        return [["a"] * max(self.width, 1)]

    def sample(self, kind: str, value: object, where: str) -> Sample:
        """One input of a request, checked."""
        if kind not in self.inputs:
            raise Refusal(422, f"{where}: the model reads {self.words()}; give rows", where)
        if kind == "text":
            return _of_text(value, where)
        if kind == "tokens":
            return Sample([[[word] for word in _strings(value, where)]])
        rows = _array(value, where, "an array of rows, one for each token")
        return Sample([self._checked(rows, where)])

    def words(self) -> str:
        """What the rows of the model are, for people."""
        if self.rows == "attributes":
            return "rows of attributes, each an array of strings or an object"
        noun = "string" if self.rows == "columns" else "number"
        return f"rows of {self.width} {noun}{'s' * (self.width != 1)}"

    def _checked(self, rows: list[Any], where: str) -> Any:
        if self.rows == "columns":
            return self._columns(rows, where)
        return (self._numbers if self.rows == "numbers" else self._attributes)(rows, where)

    def _columns(self, rows: list[Any], where: str) -> list[Any]:
        for t, row in enumerate(rows):
            if len(_strings(row, f"{where}[{t}]")) != self.width:
                place, columns = f"{where}[{t}]", "column" if self.width == 1 else "columns"
                message = (
                    f"{place} must have {self.width} {columns}, as in training, got {len(row)}"
                )
                raise Refusal(422, message, place)
        return rows

    def _numbers(self, rows: list[Any], where: str) -> Any:
        for t, row in enumerate(rows):
            _numbers(row, f"{where}[{t}]", self.width)
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.width)

    def _attributes(self, rows: list[Any], where: str) -> list[Any]:
        out: list[Any] = []
        for t, row in enumerate(rows):
            if isinstance(row, list):
                out.append(_strings(row, f"{where}[{t}]"))
            elif isinstance(row, dict):
                out.append(self._named(row, f"{where}[{t}]", "", 1))
            else:
                refuse(f"{where}[{t}]", "an array of strings or an object", row)
        return out

    def _named(self, row: dict[str, Any], where: str, prefix: str, depth: int) -> dict[str, Any]:
        """An object of attributes, its arrays of numbers made into vectors."""
        if depth > DEEPEST:
            raise Refusal(422, f"{where} is nested too deeply (at most {DEEPEST})", where)
        return {
            name: self._value(value, f"{where}[{key(name)}]", prefix + name, depth)
            for name, value in row.items()
        }

    def _value(self, value: object, where: str, name: str, depth: int) -> object:
        if isinstance(value, (str, bool)):
            return value
        if isinstance(value, (int, float)):
            return _number(value, where)
        if isinstance(value, dict):
            return self._named(value, where, f"{name}:", depth + 1)
        if not isinstance(value, list):
            refuse(where, "a string, a number, a boolean, an array or an object", value)
        if name not in self.vectors:
            return _strings(value, where)
        return np.array(_numbers(value, where, self.vectors[name]), dtype=np.float64)


def _of_text(value: object, where: str) -> Sample:
    """Sentences of a text, line by line, as ``chordal tag --text`` finds them."""
    if not isinstance(value, str):
        refuse(where, "a string", value)
    found, at = [], 0
    for line in value.split("\n"):
        own = sentences(line)
        found += [[Token(t.text, t.start + at, t.end + at) for t in s] for s in own] if at else own
        at += len(line) + 1
    return Sample([[[token.text] for token in own] for own in found], value, found)


def _array(value: object, where: str, must: str) -> list[Any]:
    if not isinstance(value, list):
        refuse(where, must, value)
    return value


def _strings(value: object, where: str) -> list[str]:
    """An array of strings."""
    items = _array(value, where, "an array of strings")
    if not all(type(item) is str for item in items):
        k = next(k for k, item in enumerate(items) if type(item) is not str)
        refuse(f"{where}[{k}]", "a string", items[k])
    return items


def _numbers(value: object, where: str, width: int) -> Sequence[float]:
    """An array of numbers of this length."""
    items = _array(value, where, f"an array of {width} numbers")
    if len(items) != width:
        raise Refusal(422, f"{where} must have {width} numbers, got {len(items)}", where)
    return [_number(item, f"{where}[{k}]") for k, item in enumerate(items)]


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        refuse(where, "a number", value)
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not isfinite(number):
        raise Refusal(422, f"{where} must be a finite number", where)
    return number
