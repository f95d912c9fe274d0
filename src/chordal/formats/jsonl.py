"""JSON Lines: one sequence per line, an object with its tokens and labels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, final

import numpy as np

from chordal.formats._base import Format, Record, check_labels
from chordal.formats._files import Place
from chordal.formats._json import read_values, word_of


@final
class JSONL(Format):
    r"""One JSON object per line: ``{"tokens": [...], "labels": [...]}``.

    A token is a string (a row of one column), a list of strings (columns or attributes) or an
    object (a dict of attributes). In an object, a list of numbers is a vector. Optional keys are
    ``labels`` (a string per token), ``comments`` (a list of strings) and ``weight`` (a number).
    Other keys and blank lines are ignored.

    Parameters
    ----------
    tokens : str or sequence of str
        The key of the tokens. Several keys are columns: each has a list with a string per token.
        For example, ``{"words": [...], "pos": [...], "tags": [...]}`` is read with
        ``tokens=["words", "pos"]`` and ``labels="tags"``.
    labels : str or None
        The key of the labels; None ignores them.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO(b'{"tokens": ["in", "Rome"], "labels": ["O", "B-LOC"]}\n')
    >>> record, = JSONL().read(file)
    >>> record.rows, record.labels
    ([['in'], ['Rome']], ['O', 'B-LOC'])
    """

    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson", ".jsonlines")

    def __init__(
        self, tokens: str | Sequence[str] = "tokens", labels: str | None = "labels"
    ) -> None:
        keys = [tokens] if isinstance(tokens, str) else list(tokens)
        if not keys or not all(isinstance(key, str) for key in keys):
            raise ValueError(f"tokens must be a key or a list of keys, got {tokens!r}")
        self.tokens = tokens
        self.labels = labels
        self._keys = keys

    def read(self, source: Place) -> Iterator[Record]:
        """Records, one for each line."""
        return read_values(source, self._record)

    def encode(self, record: Record) -> str:
        """The line of a record."""
        labels = check_labels(record)
        value: dict[str, Any] = {}
        if isinstance(self.tokens, str):
            value[self.tokens] = [_written(row, t) for t, row in enumerate(record.rows)]
        else:
            for k, key in enumerate(self._keys):
                value[key] = [self._cell(row, t, k) for t, row in enumerate(record.rows)]
        if labels is not None and self.labels is not None:
            value[self.labels] = list(labels)
        if record.comments:
            value["comments"] = list(record.comments)
        if record.weight != 1.0:
            value["weight"] = float(record.weight)
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=_numbers)
        except TypeError as error:
            raise ValueError(str(error)) from error
        try:
            text.encode()
        except UnicodeEncodeError:  # half a surrogate pair has an escape and no UTF-8
            text = json.dumps(value, allow_nan=False, default=_numbers)
        return text + "\n"

    def _record(self, value: object) -> Record:
        if not isinstance(value, dict):
            raise ValueError(f"a line must be a JSON object, got {word_of(value)}")
        for key in self._keys:
            if key not in value:
                raise ValueError(
                    f"there is no key {key!r}; there are: {', '.join(value) or 'none'}"
                )
        if isinstance(self.tokens, str):
            rows = [_row(token, t) for t, token in enumerate(_list(value, self.tokens))]
        else:
            columns = [_strings(value, key) for key in self._keys]
            sizes = {key: len(cells) for key, cells in zip(self._keys, columns, strict=True)}
            if len(set(sizes.values())) > 1:
                raise ValueError(f"columns must be equally long, got {sizes}")
            rows = list(map(list, zip(*columns, strict=True)))
        labels = None
        if self.labels is not None and value.get(self.labels) is not None:
            labels = _strings(value, self.labels)
            if len(labels) != len(rows):
                raise ValueError(f"there are {len(rows)} tokens and {len(labels)} labels")
        comments = _strings(value, "comments") if "comments" in value else ()
        weight = value.get("weight", 1.0)
        if (
            isinstance(weight, bool)
            or not isinstance(weight, (int, float))
            or not 0 <= weight < 1e300
        ):
            raise ValueError(f"weight must be a finite number of at least 0, got {weight!r:.60}")
        return Record(rows, labels, comments, float(weight))

    def _cell(self, row: object, t: int, k: int) -> str:
        if not isinstance(row, (list, tuple)) or len(row) != len(self._keys):
            raise ValueError(
                f"token {t} must be a list of {len(self._keys)} strings, got {row!r:.60}"
            )
        return str(row[k])


def _row(token: object, t: int) -> list[str] | dict[str, Any]:
    if isinstance(token, str):
        return [token]
    if isinstance(token, dict):
        return _with_vectors(token, t)
    if isinstance(token, list) and all(isinstance(cell, str) for cell in token):
        return token
    raise ValueError(
        f"token {t} must be a string, a list of strings or an object, got {word_of(token)}: "
        f"{token!r:.60}"
    )


def _with_vectors(token: dict[str, Any], t: int) -> dict[str, Any]:
    """The same with lists of numbers as arrays."""
    for key, value in token.items():
        if isinstance(value, dict):
            token[key] = _with_vectors(value, t)
        elif isinstance(value, list) and value and all(type(v) in (float, int) for v in value):
            try:
                token[key] = np.array(value, dtype=np.float64)
            except OverflowError:
                raise ValueError(f"token {t} has numbers in {key!r} that are too large") from None
    return token


def _numbers(value: object) -> list[Any]:
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON serializable")


def _written(row: object, t: int) -> object:
    if isinstance(row, (list, tuple)):
        if not all(isinstance(cell, str) for cell in row):
            raise ValueError(f"token {t} must be a list of strings, got {row!r:.60}")
        return row[0] if len(row) == 1 else list(row)
    if isinstance(row, (set, frozenset)):
        return sorted(row)
    if isinstance(row, dict):
        return row
    raise ValueError(f"token {t} must be a list of strings or a dict, got {type(row).__name__}")


def _list(value: dict[str, Any], key: str) -> list[Any]:
    found = value[key]
    if not isinstance(found, list):
        raise ValueError(f"{key!r} must be a list, got {word_of(found)}")
    return found


def _strings(value: dict[str, Any], key: str) -> list[str]:
    found = _list(value, key)
    for t, item in enumerate(found):
        if not isinstance(item, str):
            raise ValueError(f"{key!r} must hold strings, got {word_of(item)} at {t}: {item!r:.60}")
    return found
