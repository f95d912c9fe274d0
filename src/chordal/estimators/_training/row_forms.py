"""Forms of rows in a data set, for observations that a CRF cannot read as they are.

A CRF reads attributes and rows of numbers. Other estimators also observe symbols, such as words or
whole numbers, and small arrays, such as images. A symbol is stored as an attribute with its Python
literal as name, and an array as a row of its numbers.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping, Sequence
from math import isfinite, prod
from typing import Any, NamedTuple

import numpy as np

#: What a symbol may hold besides lists, tuples, sets and dicts of such values.
_PLAIN = (str, bytes, bool, int, float, type(None))


class RowForm(NamedTuple):
    """The form of a row; by default it is the observation that a CRF reads.

    symbols : whether a row is one symbol
    shape : the shape of the array that a row of numbers is, or None
    """

    symbols: bool = False
    shape: tuple[int, ...] | None = None

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> RowForm:
        """The form in the facts of a data set, checked."""
        given = facts.get("form")
        if given is None:
            return cls()
        shape = given["shape"]
        if shape is not None:
            shape = tuple(shape)
            if not all(type(n) is int and 0 < n < 2**31 for n in shape):
                raise ValueError(f"the shape of rows must be numbers above 0, got {shape!r}")
        return cls(bool(given["symbols"]), shape)

    def to_facts(self) -> dict[str, Any]:
        """The facts that `of` reads; none for the default."""
        if self == PLAIN:
            return {}
        shape = None if self.shape is None else list(self.shape)
        return {"form": {"symbols": self.symbols, "shape": shape}}

    def stored(self, rows: Any, name: str) -> Any:
        """Observations of an example as rows that a CRF reads.

        >>> RowForm(symbols=True).stored(["sun", 3], "X[0]")
        [["'sun'"], ['3']]
        """
        if self.symbols:
            listed = rows.tolist() if isinstance(rows, np.ndarray) else rows
            return [[literal(own, f"{name}[{t}]")] for t, own in enumerate(listed)]
        if self.shape is None:
            return rows
        array = np.asarray(rows)
        if array.shape[1:] != self.shape:
            raise ValueError(
                f"{name} must be an array [length, {', '.join(map(str, self.shape))}], got shape "
                f"{array.shape}"
            )
        return array.reshape(len(array), prod(self.shape))

    def restored(self, rows: Any, known: dict[str, Any]) -> Any:
        """The observations behind rows; `known` keeps the values of literals."""
        if self.symbols:
            return [_value(own, known) for own in rows]
        return rows if self.shape is None else rows.reshape(len(rows), *self.shape)

    @property
    def described(self) -> str:
        """For errors."""
        if self.symbols:
            return "symbols"
        shape = "" if self.shape is None else " × ".join(map(str, self.shape))
        return f"arrays of {shape} numbers" if shape else "attributes or rows of numbers"


#: Rows are observations that a CRF reads.
PLAIN = RowForm()


def literal(value: Any, where: str) -> str:
    """The Python literal of a symbol; `literal_eval` gives the symbol back.

    >>> literal(("a", np.int64(3)), "X[0][0]")
    "('a', 3)"
    """
    return repr(_plain(value, where))


def _plain(value: Any, where: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    kind = type(value)
    if kind in _PLAIN and not (kind is float and not isfinite(value)):
        return value
    if kind in (list, tuple, set):
        return kind(_plain(own, where) for own in value)
    if kind is dict:
        return {_plain(k, where): _plain(own, where) for k, own in value.items()}
    raise TypeError(
        f"{where} holds {value!r:.80}, which a data set cannot store: give text, finite numbers, "
        "or lists, tuples, sets or dicts of them"
    )


def _value(row: Sequence[str], known: dict[str, Any]) -> Any:
    """The symbol of a row, which has one attribute."""
    if len(row) != 1:
        raise ValueError(f"a row must have one symbol, got {len(row)}")
    text = row[0]
    if text == "set()":  # the one value whose literal is a call
        return set()
    if text not in known:
        try:
            known[text] = literal_eval(text)
        except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
            raise ValueError(f"{text!r:.80} is not the literal of a symbol") from error
    return known[text]
