"""CRFsuite's items: a line per token with its label and attributes, separated by tabs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import isfinite
from numbers import Real
from typing import Any, ClassVar, final

from chordal._errors import FormatError
from chordal.formats._base import Format, Record, check_labels
from chordal.formats._files import Place, name_of, open_source
from chordal.formats._lines import decoded, read_paragraphs
from chordal.formats._passages import Block, Passage, read_passages
from chordal.text import Items

_MARK = re.compile(r"\\[:\\]|:")
_ESCAPED = re.compile(r"\\([:\\])")
_NUMBER = re.compile("[0-9.eE+-]+")
_DEEPEST = 100  # containers in each other


@final
class CRFsuite(Format):
    r"""Files of ``crfsuite learn`` and ``crfsuite tag``: ``label<tab>attribute[:value]<tab>…``.

    A backslash escapes a colon or a backslash; before anything else it is itself. An attribute
    without a value has the value 1. A field ``@weight:2`` before the first label sets the weight of
    the sequence. ``__BOS__`` and similar names are ordinary attributes.

    As in CRFsuite, empty fields are skipped. Three things that CRFsuite accepts silently are
    errors: a value that is not a number, a second colon, a label with a value.

    A row is a list of attributes or, if one has a value other than 1, a dict from attribute to
    value. The values of a repeated attribute are added. Dicts with strings and containers, such as
    ``{"word": "Rome"}``, are written as `ChainCRF` reads them: ``word:Rome``.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO(b"B-NP\tw=a\\:b\tlength:3\nO\tw=.\n")
    >>> record, = CRFsuite().read(file)
    >>> record.rows, record.labels
    ([{'w=a:b': 1.0, 'length': 3.0}, ['w=.']], ['B-NP', 'O'])
    >>> CRFsuite().encode(record)
    'B-NP\tw=a\\:b\tlength:3.0\nO\tw=.\n\n'
    """

    suffixes: ClassVar[tuple[str, ...]] = (".crfsuite", ".iwa")

    def read(self, source: Place) -> Iterator[Record]:
        """Records, one for each block of items."""
        name = name_of(source)
        for lines in read_paragraphs(source):
            rows: list[Any] = _plain_fields("\n".join([line for _, line in lines]))
            labels: list[str] = [row.pop(0) for row in rows]
            weight = 1.0
            for number, line in () if rows else lines:
                fields = _Fields(line, name, number)
                while (declared := fields.declaration()) is not None:
                    weight = declared
                label = fields.label()
                if label is not None:
                    labels.append(label)
                    rows.append(fields.attributes())
            if rows:
                yield Record(rows, labels, weight=weight)

    def blocks(self, source: Place, size: int = 1 << 21, eager: bool = False) -> Iterator[Items]:
        """The file in blocks of about `size` bytes; the fast road.

        With `eager`, sequences are handed over as soon as they are complete.
        """

        def read(block: Block) -> tuple[Items, Passage]:
            items, consumed, lines, problem = Items.parsed(block.text, block.at_end)
            if problem >= 0:
                raise _problem(block, problem, file.name)
            return items, Passage(consumed, lines)

        with open_source(source) as file:
            for items, _ in read_passages(file, size, eager, read):
                if len(items):
                    yield items

    def encode(self, record: Record) -> str:
        """The lines of a sequence of items."""
        labels = check_labels(record)
        if labels is None:
            raise ValueError(
                "a token of this format begins with its label, and there are no labels"
            )
        if not labels:
            raise ValueError("the format holds no empty sequences")
        lines = []
        for t, (row, label) in enumerate(zip(record.rows, labels, strict=True)):
            if not label.strip() or label.startswith("@"):
                raise ValueError(
                    f"the label {label!r} of token {t} must not be blank or begin with @"
                )
            pairs = _flattened(row, "", f"token {t}", 0)
            fields = [_escaped(label), *(_field(key, value) for key, value in pairs)]
            lines.append("\t".join(fields) + "\n")
        if record.weight != 1.0:
            lines[0] = f"@weight:{float(record.weight)!r}\t{lines[0]}"
        return "".join(lines) + "\n"


def _problem(block: Block, index: int, name: str) -> FormatError:
    """What is wrong with a line that the kernel cannot read."""
    number = block.line + index + 1
    try:
        fields = _Fields(decoded(block.text.split(b"\n")[index], name, number), name, number)
        while fields.declaration() is not None:
            pass
        fields.label()
        fields.attributes()
    except FormatError as error:
        return error
    return FormatError(name, "a line that cannot be read", line=number)


def _plain_fields(text: str) -> list[list[str]]:
    """The fields of lines without values, weights, double backslashes and empty fields.

    Most lines are such, and need no look at every field. Others give an empty list.
    """
    plain = text.count(":") == text.count("\\:") and "\\\\" not in text
    gaps = f"\n{text}\n"
    if not plain or any(mark in gaps for mark in ("\n@", "\n\t", "\t\t", "\t\n")):
        return []
    return [line.split("\t") for line in text.replace("\\:", ":").split("\n")]


class _Fields:
    """The fields of a line, with their place for messages."""

    def __init__(self, line: str, name: str, number: int) -> None:
        self.line, self.name, self.number = line, name, number
        self.fields = [field for field in line.split("\t") if field]
        self.next = 0

    def declaration(self) -> float | None:
        """The value of @weight, if that is the next field."""
        if self.next == len(self.fields) or not self.fields[self.next].startswith("@"):
            return None
        key, value = self._pair(self.next)
        if key != "@weight":
            raise self._error(self.next, f"unknown declaration {key!r}; there is '@weight' alone")
        if value is None or value < 0:
            raise self._error(self.next, "the weight must be a number of at least 0")
        self.next += 1
        return value

    def label(self) -> str | None:
        if self.next == len(self.fields):
            return None
        label, value = self._pair(self.next, numeric=False)
        if value is not None:
            raise self._error(self.next, "a label has no value; write a colon in it as '\\:'")
        self.next += 1
        return label

    def attributes(self) -> list[str] | dict[str, float]:
        pairs = [self._pair(k) for k in range(self.next, len(self.fields))]
        if all(value in (None, 1.0) for _, value in pairs):
            return [key for key, _ in pairs]
        row: dict[str, float] = {}
        for key, value in pairs:
            row[key] = row.get(key, 0.0) + (1.0 if value is None else value)
        return row

    def _pair(self, k: int, numeric: bool = True) -> tuple[str, float | None]:
        field = self.fields[k]
        if ":" not in field:
            return _unescaped(field), None
        colons = [mark.start() for mark in _MARK.finditer(field) if mark.group() == ":"]
        if not colons:
            return _unescaped(field), None
        if len(colons) > 1:
            raise self._error(k, f"two colons in {field!r:.60}; write one in a name as '\\:'")
        key, value = _unescaped(field[: colons[0]]), field[colons[0] + 1 :]
        if not numeric:
            return key, 0.0
        return key, self._number(k, value) if value else None

    def _number(self, k: int, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not isfinite(value) or not _NUMBER.fullmatch(text):
            what = (
                f"the value {text!r:.60} must be a finite number; write a colon in a name as '\\:'"
            )
            raise self._error(k, what)
        return value

    def _error(self, k: int, what: str) -> FormatError:
        begin = -1
        for field in self.fields[: k + 1]:  # equal fields may stand before
            begin = self.line.index(field, begin + 1)
            place, begin = begin, begin + len(field)
        column = len(self.line[:place].encode()) + 1
        return FormatError(self.name, what, line=self.number, column=column)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text


def _escaped(text: str) -> str:
    if any(c in text for c in "\t\n\r\0"):
        raise ValueError(f"{text!r:.60} holds a tab, a line break or NUL, which cannot be written")
    return text.replace("\\", "\\\\").replace(":", "\\:")


def _field(key: str, value: float) -> str:
    text = _escaped(key)
    return text or ":" if value == 1.0 else f"{text}:{value!r}"


def _flattened(row: object, prefix: str, place: str, depth: int) -> Iterator[tuple[str, float]]:
    """Attributes and values of a token, as features.AttributeInput reads them."""
    if depth > _DEEPEST:
        raise ValueError(f"{place} is nested too deeply")
    if isinstance(row, (list, tuple, set, frozenset)):
        for item in sorted(row) if isinstance(row, (set, frozenset)) else row:
            if not isinstance(item, str):
                raise ValueError(f"attributes of {place} must be str, got {type(item).__name__}")
            yield prefix + item, 1.0
        return
    if not isinstance(row, dict):
        raise ValueError(f"{place} must be a list or dict of attributes, got {type(row).__name__}")
    for key, value in row.items():
        if not isinstance(key, str):
            raise ValueError(f"attributes of {place} must be str, got {type(key).__name__}")
        if isinstance(value, str):
            yield f"{prefix}{key}:{value}", 1.0
        elif isinstance(value, (dict, list, tuple, set, frozenset)):
            yield from _flattened(value, f"{prefix}{key}:", place, depth + 1)
        elif isinstance(value, Real) and isfinite(value):
            yield prefix + key, float(value)
        else:
            raise ValueError(
                f"the value of {key!r} of {place} must be a finite number, a str or a container, "
                f"got {value!r:.60}"
            )
