"""CoNLL columns: a token per line, a blank line between sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._errors import FormatError
from chordal._validate import check_same_lengths
from chordal.formats._base import Format, Record, check_labels, check_unweighted
from chordal.formats._files import Place, name_of, open_source
from chordal.formats._passages import LARGEST, Block, Passage, read_passages
from chordal.structures import offsets_of
from chordal.text import Columns


class _Noted(NamedTuple):
    """A block of columns, and the notes before each of its sequences."""

    columns: Columns
    notes: dict[int, list[str]]


@final
class CoNLL(Format):
    r"""Files of the CoNLL shared tasks, CRF++ and Wapiti: a token per line, in columns.

    Blank lines (only spaces and tabs) separate sequences. All rows have as many cells as the first.
    Text is UTF-8, lines end with LF or CRLF, and a byte order mark is skipped.

    Parameters
    ----------
    separator : str or None
        One ASCII character; a cell may then be empty and contain blanks. None: any run of spaces
        and tabs.
    label : int or None
        Number of the label column, counted from the end if negative; None if there are no labels.
    comment : str or None
        Start of comment lines, such as ``"#"``; None if there are none. Words may begin like this
        too (``# # B-NP`` in CoNLL-2000). So such a line is a comment only if it has no separator
        or, with blanks as separators, if it comes before the first token of a sequence.
    document : str or None
        First cell of a line that begins a document and is not a token.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO(b"-DOCSTART- O\n\nIn IN O\nRome NNP B-LOC\n\nYes UH O\n")
    >>> for record in CoNLL().read(file):
    ...     print(record.rows, record.labels, record.comments)
    [['In', 'IN'], ['Rome', 'NNP']] ['O', 'B-LOC'] ['-DOCSTART- O']
    [['Yes', 'UH']] ['O'] ()
    """

    suffixes: ClassVar[tuple[str, ...]] = (".conll", ".iob", ".bio", ".tsv", ".txt", ".data")

    def __init__(
        self,
        separator: str | None = None,
        label: int | None = -1,
        comment: str | None = None,
        document: str | None = "-DOCSTART-",
    ) -> None:
        bad = separator is not None and (
            len(separator) != 1 or not separator.isascii() or separator in "\n\r\0"
        )
        if bad:
            raise ValueError(
                f"separator must be None or one ASCII character, no line break, got {separator!r}"
            )
        for what, mark in (("comment", comment), ("document", document)):
            if mark is not None and (not mark or set(mark) & set(" \t\r\n\0")):
                raise ValueError(f"{what} must be None or a word without blanks, got {mark!r}")
        self.separator = separator
        self.label = label
        self.comment = comment
        self.document = document

    def blocks(self, source: Place, size: int = 1 << 22, eager: bool = False) -> Iterator[Columns]:
        """The file in blocks of about `size` bytes, labels included; the fastest way to read.

        With `eager`, sequences are handed over as soon as they are complete, as a filter in a pipe
        has to. Comments and document marks are left out.
        """
        found = self._blocks(source, size, eager)
        return (columns for columns, _, _ in found if len(columns))

    def passages(
        self, source: Place, size: int = 1 << 18, eager: bool = False
    ) -> Iterator[tuple[Columns, int]]:
        r"""Blocks as of `blocks`, and how many bytes of ``columns.text`` each one covers.

        These bytes, one block after another, are the file: blank lines, comments and document
        marks too. A block may hold no sequence. `append_column` writes them with one more column.

        >>> import io
        >>> file = io.BytesIO(b"# text 1\nIn IN\nRome NNP\n\n")
        >>> for columns, size in CoNLL(comment="#").passages(file):
        ...     append_column(columns, size, np.array([0, 1], np.int32), [" O", " B-LOC"])
        b'# text 1\nIn IN O\nRome NNP B-LOC\n\n'
        """
        found = self._blocks(source, size, eager)
        return ((columns, covered) for columns, _, covered in found)

    def load(self, source: Place) -> Columns:
        """The whole file, which must be smaller than 4 GiB."""
        found = list(self.blocks(source, LARGEST))
        if len(found) > 1:
            raise ValueError("the file must be smaller than 4 GiB; read it by blocks")
        empty = np.zeros((0, 0, 2), dtype=np.uint32)
        return found[0] if found else Columns(b"", empty, np.zeros(0, dtype=np.int64))

    def read(self, source: Place) -> Iterator[Record]:
        """Records, one for each block of lines."""
        for columns, notes, _ in self._blocks(source, 1 << 18, True):
            if not len(columns):
                continue
            labels: Iterator[list[str] | None] = repeat(None)
            if self.label is not None:
                n, k = columns.n_columns, self.label
                if n == 1 or not -n <= k < n:
                    what = f"there is no column {k} of labels beside others; there are {n} columns"
                    raise FormatError(name_of(source), f"{what}. Without labels, set label=None")
                labels = iter(columns.column(k))
                columns = columns.drop(k)
            for i, rows in enumerate(columns.rows()):
                yield Record(rows, next(labels), notes.get(i, ()))

    def encode(self, record: Record) -> str:
        """The rows, each with its label where `label` says.

        Comments and document marks that would not be read back as such are left out.
        """
        check_unweighted(record, "a file of columns")
        labels = check_labels(record)
        if not record.rows:
            raise ValueError("a file of columns holds no empty sequences")
        if self.label is None and labels is not None:
            raise ValueError("the record has labels, but label=None: set label to a column")
        rows = [self._cells(record, t) for t in range(len(record.rows))]
        notes = "".join(map(self._note, record.comments))
        text = self._joined(rows)
        if text is None:  # something is wrong, or looks like it: row by row
            for t, row in enumerate(rows):
                if len(row) != len(rows[0]):
                    raise ValueError(
                        f"token {t} has {len(row)} columns, the first has {len(rows[0])}"
                    )
            text = "\n".join(self._line(row, t) for t, row in enumerate(rows))
        return f"{notes}{text}\n\n"

    def encode_columns(
        self, columns: Columns, labels: Sequence[Sequence[str]] | None = None
    ) -> bytes:
        r"""The text of columns as they were read, with a last column of labels: the fastest way
        to write.

        >>> columns = Columns.from_sequences([[["in"], ["Rome"]], [["Yes"]]])
        >>> CoNLL().encode_columns(columns, [["O", "B"], ["O"]])
        b'in O\nRome B\n\nYes O\n\n'
        """
        names: dict[str, int] = {}
        codes = np.zeros(0, dtype=np.int32)
        if labels is not None:
            check_same_lengths(columns.lengths, labels)
            flat = (
                names.setdefault(label, len(names)) for sequence in labels for label in sequence
            )
            codes = np.fromiter(flat, dtype=np.int32, count=columns.n_rows)
        for name in names:
            self._check_cell(name, "a row")
        encoded = [name.encode() for name in names]
        offsets = np.concatenate([[0], np.cumsum([len(e) for e in encoded])]).astype(np.int64)
        return _kernels.columns_join(
            columns.text,
            np.ascontiguousarray(columns.cells).reshape(-1),
            columns.n_columns,
            lengths=np.ascontiguousarray(columns.lengths),
            separator=self.separator or " ",
            names=b"".join(encoded),
            name_offsets=offsets,
            codes=codes,
        )

    def _cells(self, record: Record, t: int) -> list[str]:
        """A row with its label in its place."""
        row = record.rows[t]
        if isinstance(row, str) or not isinstance(row, Sequence):
            raise ValueError(f"token {t} must be a list of strings, got {type(row).__name__}")
        if record.labels is None or self.label is None:
            return list(row)
        k = self.label if self.label >= 0 else len(row) + 1 + self.label
        return [*row[:k], record.labels[t], *row[k:]]

    def _joined(self, rows: list[list[str]]) -> str | None:
        """The rows as text if it is plain to see that they would be read back; else None."""
        separator, n, n_columns = self.separator or " ", len(rows), len(rows[0])
        try:
            text = "\n".join(map(separator.join, rows))
        except TypeError:
            return None
        marks = [mark for mark in (self.comment, self.document) if mark]
        padded = f"\n{text}\n"
        if self.separator is None:
            blanks = ("\t", "  ", "\n ", " \n")
        else:
            blanks = ("\n\n", "\n ", "\n\t", f"\n{separator}")  # maybe an empty line
        plain = (
            all(len(row) == n_columns for row in rows)
            and text.count("\n") == n - 1
            and text.count(separator) == n * (n_columns - 1)
            and not any(c in padded for c in ("\r", "\0", "\n\n", *blanks, *marks))
        )
        return text if plain else None

    def _line(self, cells: list[str], t: int) -> str:
        """A row as it is written, if it would be read back as that row."""
        for cell in cells:
            self._check_cell(cell, f"token {t}")
        line = (self.separator or " ").join(cells)
        lost = not line.strip(" \t") or self._is_document(line) or self._is_comment(line, t)
        if lost:
            raise ValueError(
                f"token {t}, {line!r:.60}, would not be read back as a token; change the separator "
                "or the comment mark"
            )
        return line

    def _check_cell(self, cell: object, where: str) -> None:
        forbidden = "\n\r\0" + (self.separator or " \t")
        if not isinstance(cell, str):
            raise ValueError(f"the cells of {where} must be str, got {type(cell).__name__}")
        if (not cell and self.separator is None) or any(c in cell for c in forbidden):
            raise ValueError(f"{cell!r:.60} of {where} cannot be a cell: {self._rule()}")

    def _rule(self) -> str:
        if self.separator is None:
            return "cells must not be empty nor hold blanks; set separator='\\t' to allow that"
        return f"cells must not hold {self.separator!r}, line breaks or NUL"

    def _note(self, note: str) -> str:
        if any(c in note for c in "\n\r\0"):
            raise ValueError(f"a comment must be one line, got {note!r:.60}")
        if self._is_document(note):
            return note + "\n\n"
        return note + "\n" if self._is_comment(note, 0) else ""

    # The rules of kernels/columns.cpp, for one line.
    def _is_document(self, line: str) -> bool:
        mark = self.document
        if mark is None or not line.startswith(mark):
            return False
        return line[len(mark) : len(mark) + 1] in ("", " ", "\t", self.separator)

    def _is_comment(self, line: str, t: int) -> bool:
        if self.comment is None or not line.startswith(self.comment):
            return False
        if self.separator is not None and self.separator in line:
            return False
        return t == 0

    def _blocks(
        self, place: Place, size: int, eager: bool
    ) -> Iterator[tuple[Columns, dict[int, list[str]], int]]:
        """Blocks, the notes before each sequence, and the bytes of the text that a block covers."""
        n_columns = 0

        def read(block: Block) -> tuple[_Noted, Passage]:
            nonlocal n_columns
            noted, n_columns, passage = self._parsed(block, n_columns, source.name)
            return noted, passage

        with open_source(place) as source:
            for (columns, notes), covered in read_passages(source, size, eager, read):
                yield columns, notes, covered

    def _parsed(self, block: Block, n_columns: int, name: str) -> tuple[_Noted, int, Passage]:
        text, line, at_end = block
        cells, n_columns, lengths, lines, notes, consumed, n_lines, problem = _kernels.columns_read(
            text,
            -1 if self.separator is None else ord(self.separator),
            self.comment.encode() if self.comment else None,
            self.document.encode() if self.document else None,
            n_columns,
            at_end,
        )
        if problem is not None:
            at, column, what = problem
            raise FormatError(name, what + self._hint(what), line=line + at, column=column)
        found: dict[int, list[str]] = {}
        for i, begin, end in notes.reshape(-1, 3).tolist():
            if i < len(lengths):
                found.setdefault(i, []).append(text[begin:end].decode())
        shaped = cells.reshape(len(lines), n_columns, 2)
        columns = Columns.trusted(text, shaped, lengths, lines + (line + 1))
        return _Noted(columns, found), n_columns, Passage(consumed, n_lines)

    def _hint(self, what: str) -> str:
        if not what.startswith("expected"):
            return ""
        if self.comment is None and ": #" in what:
            return " (if it is a comment, set comment='#')"
        if self.separator is None and "\t" in what:
            return " (cells end at spaces and tabs; if they hold spaces, set separator='\\t')"
        return ""


def append_column(
    columns: Columns, size: int, numbers: NDArray[np.int32], texts: Sequence[str]
) -> bytes:
    """The first `size` bytes of the columns' text, row t followed by ``texts[numbers[t]]``.

    Lines that are not rows stay as they are; see `CoNLL.passages`. The texts hold the separator.
    """
    encoded = [text.encode() for text in texts]
    offsets = offsets_of([len(text) for text in encoded])
    row_ends = np.ascontiguousarray(columns.cells[:, -1, 1])
    return _kernels.column_append(columns.text, size, row_ends, numbers, b"".join(encoded), offsets)
