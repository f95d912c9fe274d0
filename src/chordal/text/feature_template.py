"""Feature templates in the syntax of CRF++ and Wapiti: attributes of columns of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._validate import check_choice
from chordal.structures import offsets_of
from chordal.text._explain import explained
from chordal.text.columns import Columns, Ints

DIALECTS = ("crf++", "wapiti")
MAX_LINES, MAX_LENGTH = 10_000, 500_000  # of a template
MAX_PATTERN = 1000  # characters: the time that a pattern takes is the text times its length

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

    @classmethod
    def of(cls, lines: list[list[Item]], wapiti: bool, begin: int) -> Program:
        """The program of these lines."""
        items = [item for line in lines for item in line]
        texts = [item.text.encode("utf-8", "surrogatepass") for item in items]
        limits = offsets_of([len(text) for text in texts])
        rows = [
            (ord(item.kind), item.small, item.absolute, item.offset, item.column, *place)
            for item, place in zip(items, pairwise(limits), strict=True)
        ]
        return cls(
            np.array(rows, dtype=np.int64).ravel(),
            np.cumsum([len(line) for line in lines], dtype=np.int64),
            b"".join(texts),
            wapiti,
            begin,
            n_columns=max((item.column + 1 for item in items if item.kind != "l"), default=0),
        )

    def __len__(self) -> int:
        return len(self.line_ends)

    def reader(self, vocabulary: _kernels.Vocabulary) -> _kernels.TemplateReader:
        """What runs the program; it remembers what it has read, and serves one thread."""
        return _kernels.TemplateReader(
            items=self.items,
            line_ends=self.line_ends,
            pool=self.pool,
            wapiti=self.wapiti,
            begin=self.begin,
            vocabulary=vocabulary,
        )

    def read(
        self, reader: _kernels.TemplateReader, columns: Columns, grow: bool
    ) -> tuple[NDArray[np.int32], Ints]:
        """Ids of the attributes of all rows, and where each row's begin."""
        if columns.n_rows and columns.n_columns < self.n_columns:
            raise ValueError(
                f"the template uses column {self.n_columns - 1}, but the rows have "
                f"{columns.n_columns} (columns are counted from 0)"
            )
        flat = np.ascontiguousarray(columns.cells).ravel()
        return reader.read(columns.text, flat, columns.n_columns, columns.lengths, grow)


@final
@dataclass(repr=False, unsafe_hash=True)
class FeatureTemplate:
    """Lines that define the attributes of a position.

    Parameters
    ----------
    text : str
        A line begins with U (attributes of a label), B (of a pair of labels) or * (both). The whole
        line, with its macros replaced, is the attribute. `B` alone gives weights of label pairs
        without observations. Empty lines and lines that begin with # are ignored. %x[-1,0] is the
        cell one row above in the first column. %t[0,0,"^\\u"] is true if the pattern matches, else
        false. %m[0,0,"...$"] is the text that the pattern matches. %s[0,0] is the shape of the cell
        ("Xx-d"). %X, %T and %M give lower case. A row @1 counts from the beginning of the sequence,
        @-1 from its end.
    dialect : "crf++" or "wapiti"
        The name of cells outside the sequence (_B-1 or _x-1), and whether patterns see Unicode
        characters or, as in Wapiti, bytes.

    Examples
    --------
    >>> template = FeatureTemplate("U0:%x[0,0]\\nU1:%x[-1,0]/%X[0,0]\\nU2:%s[0,0]\\nB")
    >>> template.attributes([["Paris"], ["1900"]])[0]
    ['U0:Paris', 'U1:_B-1/paris', 'U2:Xx']
    >>> template.transitions, template.n_columns
    (True, 1)
    """

    text: str
    dialect: str = "crf++"

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"a template must be a str, got {type(self.text).__name__}")
        check_choice("dialect", self.dialect, DIALECTS)
        states: list[list[Item]] = []
        pairs: list[list[Item]] = []
        self.transitions = False
        if len(self.text) > MAX_LENGTH:
            raise ValueError(f"a template must have at most {MAX_LENGTH} characters")
        lines = lines_of(self.text)
        if len(lines) > MAX_LINES + 1:  # the last one is empty where the text ends with a newline
            raise ValueError(f"a template must have at most {MAX_LINES} lines")
        for number, line in enumerate(lines, start=1):
            if not line or line.startswith("#"):
                continue
            kind = line[0].upper()
            if kind not in "UB*":
                raise ValueError(
                    f"template line {number} must begin with U, B, * or #, got {line!r:.60}"
                )
            items = list(_items(line, number))
            observes = any(item.kind != "l" for item in items)
            if kind in "U*":
                states.append(items)
            if kind in "B*" and observes:
                pairs.append(items)
            elif kind in "B*":
                self.transitions = True
        self.unigrams = Program.of(states, self.dialect == "wapiti", begin=0)
        self.bigrams = Program.of(pairs, self.dialect == "wapiti", begin=1)
        if not states and not pairs and not self.transitions:
            raise ValueError("the template has no lines that begin with U, B or *")

    @property
    def n_columns(self) -> int:
        """The number of columns that the macros ask for."""
        return max(self.unigrams.n_columns, self.bigrams.n_columns)

    def attributes(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        """The attributes of each position of one sequence."""
        vocabulary = _kernels.Vocabulary()
        columns = Columns.from_sequences([rows])
        reader = self.unigrams.reader(vocabulary)
        ids, offsets = self.unigrams.read(reader, columns, grow=True)
        names = [vocabulary.name(int(k)) for k in ids]
        return [names[a:b] for a, b in pairwise(offsets.tolist())]

    def explain(self, attribute: str) -> str:
        """Explain an attribute in words; empty if no line produces it.

        >>> FeatureTemplate("U0:%x[0,0]\\nU1:%x[-1,1]").explain("U1:NN")
        'column 1, 1 before'
        """
        return explained(lines_of(self.text), attribute)

    def __repr__(self) -> str:
        lines = len(self.unigrams) + len(self.bigrams)
        of = f"{lines} lines, {self.n_columns} columns, dialect {self.dialect!r}"
        return f"<FeatureTemplate: {of}>"


def lines_of(text: str) -> list[str]:
    """The lines of a template, without blanks around them.

    Characters such as U+2028 and form feeds end no line, as in CRF++.

    >>> lines_of("U:%x[0,0]\\r\\n# B\\u2028B")
    ['U:%x[0,0]', '# B\\u2028B']
    """
    return list(map(str.strip, text.replace("\r\n", "\n").replace("\r", "\n").split("\n")))


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
    if len(pattern) > MAX_PATTERN:
        raise ValueError(
            f"template line {number}: a pattern must have at most {MAX_PATTERN} characters, "
            f"got {len(pattern)}"
        )
    bare = re.sub(r"\\.", "a", pattern.removeprefix("^"))
    if re.search(r"(^|[*?])[*?]", bare):
        raise ValueError(
            f"template line {number}: * and ? must follow a character in the pattern "
            f'"{pattern}"; write \\* or \\? for the character itself'
        )
