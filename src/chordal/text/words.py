"""The words of tokens, as their attributes have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chordal.text.columns import Columns

#: Names of attributes that usually hold the token itself.
USUAL = (
    "word",
    "w",
    "token",
    "form",
    "text",
    "w[0]",
    "w0",
    "word[0]",
    "word.lower()",
    "word.lower",
)


def words_of(x: object, n: int) -> list[str]:
    """The words of the n tokens or nodes of an example; of those that have none, the numbers.

    >>> words_of([["w=in"], ["Paris", "NP"], {"length": 3}], 3)
    ['in', 'Paris', '2']
    """
    if isinstance(x, Columns):
        return [str(token) for token in x.column(0)[0]]
    rows = x[0] if isinstance(x, tuple) and len(x) in (2, 3) else x  # the nodes of a graph
    if not isinstance(rows, (list, tuple)) or len(rows) != n:
        return [str(k) for k in range(n)]
    return [_word(row, k) for k, row in enumerate(rows)]


def _word(row: object, k: int) -> str:
    if isinstance(row, str):
        return row
    word = usual_word(row) if isinstance(row, (Mapping, list, tuple)) else None
    if word is None and isinstance(row, (list, tuple)) and len(row) and isinstance(row[0], str):
        return row[0]
    return str(k) if word is None else word


def first_text(row: Mapping[Any, Any] | Iterable[Any]) -> str:
    """The value of the first attribute, or its name where it has none; empty without attributes.

    >>> first_text(["pos=NN", "b"]), first_text({"big": True})
    ('NN', 'big')
    """
    found = _attributes(row)
    valued = [value for _, value in found if value is not None]
    if isinstance(row, Mapping) and valued:
        return valued[0]
    return next((name if value is None else value for name, value in found), "")


def usual_word(row: Mapping[Any, Any] | Iterable[Any]) -> str | None:
    """The value of the attribute that usually holds the word, such as "w=dog"; None without one.

    >>> usual_word(["b", "w=dog"]), usual_word(["dog", "NN"])
    ('dog', None)
    """
    found = {name: value for name, value in reversed(_attributes(row)) if value is not None}
    return next((found[name] for name in USUAL if name in found), None)


def _attributes(row: Mapping[Any, Any] | Iterable[Any]) -> list[tuple[str, str | None]]:
    """Names, and values where they are text: "w=cat" is the name "w"."""
    if isinstance(row, Mapping):
        return [(str(k), value if isinstance(value, str) else None) for k, value in row.items()]
    texts = [str(own[0] if isinstance(own, tuple) and own else own) for own in row]
    parts = [text.partition("=") for text in texts]
    return [(name, value if equals else None) for name, equals, value in parts]
