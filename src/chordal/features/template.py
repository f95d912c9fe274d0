"""Feature templates in the syntax of CRF++ and Wapiti: attributes of columns of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._validate import check_choice
from chordal.features._base import Ints, Rows
from chordal.features._explain import explained
from chordal.features._occurrences import Occurrences
from chordal.features.attributes import VocabularyInput
from chordal.features.columns import Columns

DIALECTS = ("crf++", "wapiti")

_MACRO = re.compile(
    r"%(?P<kind>[xXtTmMs])\[\s*(?P<absolute>@?)(?P<offset>[+-]?\d+)\s*,\s*(?P<column>\d+)\s*"
    r'(?:,\s*"(?P<pattern>(?:[^"\\]|\\.)*)"\s*)?\]'
)


class Item(NamedTuple):
    """A literal ("l"), or a macro on a cell: x itself, t test, m match, s shape."""

    kind: str
    small: bool  # in small letters
    absolute: bool
    offset: int
    column: int
    text: str  # the literal, or the pattern


@dataclass(frozen=True)
class Program:
    """Lines of items as the kernel takes them."""

    items: Ints  # [n_items * 7]
    line_ends: Ints
    pool: bytes
    wapiti: bool
    begin: int  # the first position that has attributes: 0, or 1 for transitions
    n_columns: int  # that the lines ask for

    def __len__(self) -> int:
        return len(self.line_ends)


@final
class FeatureTemplate:
    """Lines that say which attributes a position has.

    Parameters
    ----------
    text : str
        A line begins with U (attributes of a label), B (of a pair of labels) or * (both); the
        whole line, its macros replaced, is the attribute. `B` alone asks for weights of label
        pairs without observation. Empty lines and lines that begin with # say nothing.
        %x[-1,0] is the cell one row above in the first column, %t[0,0,"^\\u"] is true or false
        as the pattern is found or not, %m[0,0,"...$"] is what the pattern found, %s[0,0] the shape
        of the cell ("Xx-d"); %X, %T and %M give small letters. A row @1 counts from the
        beginning of the sequence, @-1 from its end.
    dialect : "crf++" or "wapiti"
        What lies outside the sequence is called _B-1 or _x-1; patterns see Unicode's characters,
        or bytes as Wapiti does.

    Examples
    --------
    >>> template = FeatureTemplate("U0:%x[0,0]\\nU1:%x[-1,0]/%X[0,0]\\nU2:%s[0,0]\\nB")
    >>> template.attributes([["Paris"], ["1900"]])[0]
    ['U0:Paris', 'U1:_B-1/paris', 'U2:Xx']
    >>> template.transitions, template.n_columns
    (True, 1)
    """

    def __init__(self, text: str, dialect: str = "crf++") -> None:
        if not isinstance(text, str):
            raise TypeError(f"a template must be a str, got {type(text).__name__}")
        check_choice("dialect", dialect, DIALECTS)
        self.text, self.dialect = text, dialect
        states: list[list[Item]] = []
        pairs: list[list[Item]] = []
        self.transitions = False
        for number, line in enumerate(text.splitlines(), start=1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            kind = line[0].upper()
            if kind not in "UB*":
                raise ValueError(
                    f"template line {number} must begin with U, B, * or #, got {line!r}"
                )
            items = list(_items(line, number))
            observes = any(item.kind != "l" for item in items)
            if kind in "U*":
                states.append(items)
            if kind in "B*" and observes:
                pairs.append(items)
            elif kind in "B*":
                self.transitions = True
        self.unigrams = _program(states, dialect == "wapiti", begin=0)
        self.bigrams = _program(pairs, dialect == "wapiti", begin=1)
        if not states and not pairs and not self.transitions:
            raise ValueError("the template has no lines that begin with U, B or *")

    @property
    def n_columns(self) -> int:
        """The number of columns that the macros ask for."""
        return max(self.unigrams.n_columns, self.bigrams.n_columns)

    def attributes(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """The attributes of each position of one sequence."""
        source = TemplateInput(self, "unigrams")
        data = source.read(Columns.from_sequences([rows]), grow=True).data
        names = [source.name(k) for k in data.ids]
        return [names[a:b] for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]

    def explain(self, attribute: str) -> str:
        """What an attribute is about, in words; empty if no line gives it.

        >>> FeatureTemplate("U0:%x[0,0]\\nU1:%x[-1,1]").explain("U1:NN")
        'column 1, 1 before'
        """
        return explained(self.text, attribute)

    def __repr__(self) -> str:
        lines = len(self.unigrams) + len(self.bigrams)
        return (
            f"<FeatureTemplate: {lines} lines, {self.n_columns} columns, dialect {self.dialect!r}>"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FeatureTemplate):
            return NotImplemented
        return (self.text, self.dialect) == (other.text, other.dialect)

    def __hash__(self) -> int:
        return hash((self.text, self.dialect))

    def __getstate__(self) -> tuple[str, str]:
        return self.text, self.dialect

    def __setstate__(self, state: tuple[str, str]) -> None:
        self.__init__(*state)


def _items(line: str, number: int) -> Iterator[Item]:
    at = 0
    while at < len(line):
        if line[at] != "%":
            end = line.find("%", at)
            end = len(line) if end < 0 else end
            yield Item("l", False, False, 0, 0, line[at:end])
            at = end
            continue
        match = _MACRO.match(line, at)
        if match is None:
            raise ValueError(
                f"template line {number}, column {at + 1}: expected a macro such as %x[-1,0], "
                f'%t[0,0,"\\u"], %m[0,0,"^.."] or %s[0,0], got {line[at : at + 20]!r}'
            )
        kind, pattern = match["kind"], match["pattern"]
        if (pattern is not None) != (kind in "tTmM"):
            needs = "needs a pattern in quotes" if pattern is None else "takes no pattern"
            raise ValueError(f"template line {number}, column {at + 1}: %{kind} {needs}")
        if pattern is not None:
            _check_pattern(pattern, number)
        offset, column = int(match["offset"]), int(match["column"])
        if abs(offset) > 10**6 or column > 10**6:
            raise ValueError(f"template line {number}: {match[0]} is out of range")
        yield Item(
            kind.lower(), kind.isupper(), match["absolute"] == "@", offset, column, pattern or ""
        )
        at = match.end()


def _check_pattern(pattern: str, number: int) -> None:
    bare = re.sub(r"\\.", "a", pattern.removeprefix("^"))
    if re.search(r"(^|[*?])[*?]", bare):
        raise ValueError(
            f"template line {number}: * and ? must follow a character in the pattern "
            f'"{pattern}"; write \\* or \\? for the character itself'
        )


def _program(lines: list[list[Item]], wapiti: bool, begin: int) -> Program:
    pool = b""
    rows: list[tuple[int, ...]] = []
    ends = []
    n_columns = 0
    for line in lines:
        for item in line:
            text = item.text.encode("utf-8", "surrogatepass")
            place = (len(pool), len(pool) + len(text))
            rows.append(
                (ord(item.kind), item.small, item.absolute, item.offset, item.column, *place)
            )
            pool += text
            if item.kind != "l":
                n_columns = max(n_columns, item.column + 1)
        ends.append(len(rows))
    items = np.array(rows, dtype=np.int64).ravel()
    return Program(items, np.array(ends, dtype=np.int64), pool, wapiti, begin, n_columns)


@final
class TemplateInput(VocabularyInput):
    """Sequences of rows of columns, read by a template's lines U or by its lines B."""

    def __init__(
        self,
        template: FeatureTemplate,
        part: str,
        vocabulary: _kernels.Vocabulary | None = None,
        width: int = 0,
    ) -> None:
        self.template, self.part = template, part
        self.width = width  # columns of the rows that were learned from; 0 if that is not known
        self.program = template.unigrams if part == "unigrams" else template.bigrams
        self.vocabulary = _kernels.Vocabulary() if vocabulary is None else vocabulary
        # Those that are not in use: each thread takes its own.
        self._readers: list[_kernels.TemplateReader] = []

    def _reader(self) -> _kernels.TemplateReader:
        """A reader that remembers what others have read, if one is free."""
        try:
            return self._readers.pop()
        except IndexError:
            program = self.program
            return _kernels.TemplateReader(
                items=program.items,
                line_ends=program.line_ends,
                pool=program.pool,
                wapiti=program.wapiti,
                begin=program.begin,
                vocabulary=self.vocabulary,
            )

    def with_vocabulary(self, vocabulary: _kernels.Vocabulary) -> TemplateInput:
        """The same input with other attributes."""
        return TemplateInput(self.template, self.part, vocabulary, self.width)

    def read(self, X: object, grow: bool) -> Rows:
        """Read a batch of sequences."""
        columns = Columns.of(X)
        program = self.program
        if columns.n_columns < program.n_columns:
            raise ValueError(
                f"the template asks for column {program.n_columns - 1}, but the rows have "
                f"{columns.n_columns} (columns are counted from 0)"
            )
        cells = columns.cells
        if (cells > len(columns.text)).any() or (cells[:, :, 0] > cells[:, :, 1]).any():
            raise ValueError("a cell of the columns lies outside of their text")
        reader = self._reader()
        ids, offsets = reader.read(
            columns.text,
            np.ascontiguousarray(cells, dtype=np.uint32).ravel(),
            columns.n_columns,
            columns.lengths,
            grow,
        )
        if grow:
            self.width = columns.n_columns
        else:
            self._readers.append(reader)
        lengths = np.maximum(columns.lengths - program.begin, 0)
        return Rows(lengths, Occurrences(offsets, ids, None))

    def facts(self) -> dict[str, Any]:
        """What a model file keeps besides arrays."""
        return {
            "template": self.template.text,
            "dialect": self.template.dialect,
            "part": self.part,
            "width": self.width,
        }

    @classmethod
    def from_arrays(
        cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> TemplateInput:
        """What a model file holds, checked."""
        check_choice("part", facts["part"], ["unigrams", "bigrams"])
        template = FeatureTemplate(facts["template"], facts["dialect"])
        width = facts.get("width", 0)
        if type(width) is not int or not 0 <= width < 2**31:
            raise ValueError(f"width must be a number of columns, got {width!r}")
        return cls(template, facts["part"], cls.vocabulary_from(arrays), width)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.template, self.part, self.vocabulary.arrays(), self.width

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        template, part, arrays, width = state
        self.__init__(template, part, _kernels.Vocabulary.from_arrays(*arrays), width)
