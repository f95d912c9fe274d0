"""Items: what python-crfsuite's users give as the features of a position.

An item is a dict or a collection of attribute names. In a dict a string value joins its key
(``{"word": "Paris"}`` is the attribute ``word:Paris`` of value 1), containers nest, and
everything else is a number. Unlike chordal, CRFsuite lets an attribute of value 0 make
features, so that zeros are kept here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, SupportsFloat

import numpy as np

if TYPE_CHECKING:
    from chordal.features import AttributeInput, Rows

MAX_DEPTH = 100
ZERO = 1e-300  # stands for 0 on the way through the reader, which drops zeros

Pairs = list[tuple[str, float]]


class ItemSequence:
    """The items of one sequence, ready for `Trainer.append` and `Tagger.tag`.

    >>> ItemSequence([["foo"], {"bar": {"baz": 1}}]).items()
    [{'foo': 1.0}, {'bar:baz': 1.0}]
    """

    def __init__(self, pyseq: Iterable[Any]) -> None:
        if isinstance(pyseq, ItemSequence):
            self._pairs: list[Pairs] = pyseq._pairs
        else:
            self._pairs = [_pairs(item, t) for t, item in enumerate(listed(pyseq))]

    def items(self) -> list[dict[str, float]]:
        """The attributes of each position, with their values."""
        return [dict(pairs) for pairs in self._pairs]

    def __len__(self) -> int:
        return len(self._pairs)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"


def listed(xseq: object) -> list[Any]:
    """The items of a sequence that may be any iterable, but no string and no dict."""
    if isinstance(xseq, (str, bytes, dict)) or not hasattr(xseq, "__iter__"):
        raise TypeError(f"xseq must be a list of items, got {type(xseq).__name__}")
    return xseq if isinstance(xseq, list) else list(xseq)


def tokens_of(xseq: object, zeros: bool = False) -> list[Any]:
    """Items as chordal's estimators read them; with `zeros`, a value of 0 becomes `ZERO`."""
    if isinstance(xseq, ItemSequence):
        return [_summed(pairs, zeros) for pairs in xseq._pairs]
    items = listed(xseq)
    return [_with_zeros(item, t) for t, item in enumerate(items)] if zeros else items


def read_items(source: AttributeInput, xseq: object) -> Rows:
    """Read one sequence, with new attributes and zeros."""
    tokens = tokens_of(xseq, zeros=True)
    try:
        return source.read([tokens], grow=True)
    except TypeError:  # bytes, other iterables, or a mistake: which of them, this finds out
        return source.read([tokens_of(ItemSequence(tokens), zeros=True)], grow=True)
    except ValueError as error:
        raise ValueError(str(error).replace("X[0]", "xseq")) from None


def _with_zeros(item: object, t: int) -> object:
    """The item with `ZERO` for 0; flattened if there may be zeros further inside."""
    if item.__class__ is not dict:
        return _summed(_pairs(item, t), True) if isinstance(item, dict) else item
    try:  # this looks at every attribute of the training data: a comprehension, for speed
        odd = [
            key
            for key, value in item.items()
            if value.__class__ is not str and (not value or value.__class__ is dict)
        ]
    except ValueError:  # an array has no truth value; the reader will refuse it
        return item
    if not odd:
        return item
    out = item.copy()
    for key in odd:
        value = item[key]
        if value.__class__ is dict:
            return _summed(_pairs(item, t), True)
        if isinstance(value, (float, int, np.number, np.bool_)):
            out[key] = ZERO
    return out


def _summed(pairs: Pairs, zeros: bool) -> list[str] | dict[str, float]:
    """As a list where every value is 1, else as a dict with the sums of repeated names."""
    if all(value == 1.0 for _, value in pairs):
        return [name for name, _ in pairs]
    sums: dict[str, float] = {}
    for name, value in pairs:
        sums[name] = sums.get(name, 0.0) + value
    return {name: value or ZERO for name, value in sums.items()} if zeros else sums


def _pairs(item: object, t: int, depth: int = 0) -> Pairs:
    """Attributes and values of an item, containers opened."""
    if depth > MAX_DEPTH:
        raise ValueError(f"xseq[{t}] is nested too deeply")
    if isinstance(item, (str, bytes)) or not hasattr(item, "__iter__"):
        raise TypeError(
            f"xseq[{t}] must be a dict or a list of attribute names, got {type(item).__name__} "
            f"{item!r}"
        )
    if not isinstance(item, dict):
        names = [_text(name, t) for name in item]
        # A set's own order changes between runs.
        return [(n, 1.0) for n in (sorted(names) if isinstance(item, (set, frozenset)) else names)]
    out: Pairs = []
    for key, value in item.items():
        name = _text(key, t)
        if isinstance(value, (str, bytes)):
            out.append((f"{name}:{_text(value, t)}", 1.0))
        elif isinstance(value, (dict, list, tuple, set, frozenset)):
            out += [(f"{name}:{inner}", number) for inner, number in _pairs(value, t, depth + 1)]
        else:
            out.append((name, _number(name, value, t)))
    return out


def _text(name: object, t: int) -> str:
    if isinstance(name, bytes):
        return name.decode("utf-8")
    if not isinstance(name, str):
        raise TypeError(f"attribute names must be str, got {type(name).__name__} in xseq[{t}]")
    return str(name)


def _number(name: str, value: SupportsFloat, t: int) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"the value of attribute {name!r} in xseq[{t}] must be a str, a number, a bool or a "
            f"container, got {type(value).__name__}"
        ) from None
    if not np.isfinite(number):
        raise ValueError(f"the value of attribute {name!r} in xseq[{t}] must be finite")
    return number
