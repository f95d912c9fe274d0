"""Text in columns: one block of bytes, and the positions of its cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._validate import check_sequences, is_sparse, own_integers
from chordal.structures import offsets_of, read_only

Cells = NDArray[np.uint32]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Columns:
    """Sequences of rows of text cells, without a Python object per cell.

    Cell k of row t is ``text[cells[t, k, 0] : cells[t, k, 1]]``, in UTF-8. The rows of all
    sequences follow each other, so the first ``lengths[0]`` rows are the first sequence.

    Parameters
    ----------
    text : bytes
        The text that the cells refer to, less than 4 GiB.
    cells : array [n_rows, n_columns, 2] of uint32
        Where each cell begins and ends.
    lengths : array of int64
        Number of rows of each sequence.
    lines : array [n_rows] of int64, optional
        The line of the file that each row was read from, counted from 1.

    Examples
    --------
    >>> columns = Columns.from_sequences([[["in", "IN"], ["Rome", "NNP"]], [["Yes", "UH"]]])
    >>> columns
    Columns(2 sequences, 3 rows, 2 columns)
    >>> columns.column(0)
    [['in', 'Rome'], ['Yes']]
    >>> columns[1:].rows()
    [[['Yes', 'UH']]]
    >>> columns.drop(-1).rows()
    [[['in'], ['Rome']], [['Yes']]]
    """

    text: bytes
    cells: Cells
    lengths: Ints
    lines: Ints | None = None

    def __post_init__(self) -> None:
        """Check the arrays for compiled code, and keep private copies."""
        check_text("text", self.text)
        cells = own_integers("cells", self.cells, 3, np.uint32)
        if cells.shape[2] != 2:
            raise ValueError(f"cells must have shape [n_rows, n_columns, 2], got {cells.shape}")
        check_spans("cells", cells, len(self.text))
        lengths = own_integers("lengths", self.lengths)
        check_total("lengths", lengths, len(cells), "rows")
        lines = self.lines
        if lines is not None:
            lines = own_integers("lines", lines)
            if len(lines) != len(cells):
                raise ValueError(
                    f"lines must have one entry per row ({len(cells)}), got {len(lines)}"
                )
        self._hold(self.text, cells, lengths, lines)

    def _hold(self, text: bytes, cells: Cells, lengths: Ints, lines: Ints | None) -> None:
        lines = None if lines is None else read_only(lines)
        vars(self).update(
            text=text, cells=read_only(cells), lengths=read_only(lengths), lines=lines
        )

    @classmethod
    def trusted(
        cls, text: bytes, cells: Cells, lengths: Ints, lines: Ints | None = None
    ) -> Columns:
        """Columns from valid arrays that no one else uses, without checks or copies."""
        made = object.__new__(cls)
        made._hold(text, cells, lengths, lines)
        return made

    @classmethod
    def from_sequences(cls, sequences: Iterable[Sequence[Sequence[str]]]) -> Columns:
        """Columns with the cells of lists of rows of strings."""
        parts: list[bytes] = []
        lengths: list[int] = []
        n_columns = None
        for i, sequence in enumerate(sequences):
            if not _is_list(sequence):
                raise TypeError(f"X[{i}] must be a list of rows, got {type(sequence).__name__}")
            lengths.append(len(sequence))
            for t, row in enumerate(sequence):
                if not _is_list(row):
                    got = type(row).__name__
                    raise TypeError(f"X[{i}][{t}] must be a list of strings, got a {got}")
                if n_columns is None:
                    n_columns = len(row)
                if len(row) != n_columns:
                    raise ValueError(
                        f"X[{i}][{t}] must have {n_columns} columns, like the first row; "
                        f"got {len(row)}"
                    )
                parts += [_encoded(cell, i, t) for cell in row]
        limits = offsets_of([len(part) for part in parts])
        _check_size(limits[-1])
        cells = np.stack([limits[:-1], limits[1:]], axis=1).astype(np.uint32)
        shape = (sum(lengths), n_columns or 0, 2)
        sizes = np.array(lengths, dtype=np.int64)
        return cls.trusted(b"".join(parts), cells.reshape(shape), sizes)

    @classmethod
    def of(cls, X: object, name: str = "X") -> Columns:
        """X itself if it is columns, else those of a list of sequences of rows."""
        return X if isinstance(X, cls) else cls.from_sequences(check_sequences(X, name))

    def __repr__(self) -> str:
        return f"Columns({len(self)} sequences, {self.n_rows} rows, {self.n_columns} columns)"

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return self.cells.shape[1]

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.cells)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, part: slice) -> Columns:
        """The sequences of a slice; the text is shared."""
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise TypeError(f"columns can only be sliced with step 1, got {part!r}")
        first, last, _ = part.indices(len(self))
        limits = offsets_of(self.lengths)
        rows = slice(limits[first], limits[max(first, last)])
        lines = None if self.lines is None else self.lines[rows]
        return Columns.trusted(self.text, self.cells[rows], self.lengths[first:last], lines)

    def select(self, columns: slice | Sequence[int]) -> Columns:
        """Only these columns, in this order; the text is shared, and a slice copies nothing."""
        part = columns if isinstance(columns, slice) else [self._index(k) for k in columns]
        return Columns.trusted(self.text, self.cells[:, part], self.lengths, self.lines)

    def drop(self, k: int) -> Columns:
        """All columns but one."""
        k = self._index(k)
        if k == self.n_columns - 1:
            return self.select(slice(0, k))
        return self.select([j for j in range(self.n_columns) if j != k])

    def with_columns(self, *columns: Sequence[Sequence[str]]) -> Columns:
        """The same with more columns, each given as a cell for every row, sequence by sequence.

        >>> columns = Columns.from_sequences([[["in"], ["Rome"]], [["Yes"]]])
        >>> columns.with_columns([["O", "B"], ["O"]]).rows()
        [[['in', 'O'], ['Rome', 'B']], [['Yes', 'O']]]
        """
        places: dict[str, int] = {}  # where each text lies, once
        limits: list[tuple[int, int]] = []
        end, added = len(self.text), []
        for column in columns:
            if [len(cells) for cells in column] != self.lengths.tolist():
                raise ValueError("a column must have a cell for every row of every sequence")
            for i, cells in enumerate(column):
                for t, cell in enumerate(cells):
                    if cell not in places:
                        places[cell] = len(limits)
                        added.append(_encoded(cell, i, t))
                        limits.append((end, end + len(added[-1])))
                        end = limits[-1][1]
        _check_size(end)
        numbers = [places[cell] for column in columns for cells in column for cell in cells]
        table = np.array(limits, dtype=np.uint32).reshape(-1, 2)
        more = table[np.array(numbers, dtype=np.int64)].reshape(len(columns), self.n_rows, 2)
        table = np.concatenate([self.cells, more.transpose(1, 0, 2)], axis=1)
        return Columns.trusted(b"".join([self.text, *added]), table, self.lengths, self.lines)

    def codes(self, k: int) -> tuple[NDArray[np.int32], list[str]]:
        """A number per row, and the texts by number, in order of appearance.

        >>> codes, names = Columns.from_sequences([[["B"], ["I"], ["B"]]]).codes(0)
        >>> codes.tolist(), names
        ([0, 1, 0], ['B', 'I'])
        """
        cells = np.ascontiguousarray(self.cells[:, self._index(k)])
        codes, first = _kernels.columns_codes(self.text, cells.reshape(-1))
        names = [self.text[begin:end].decode() for begin, end in cells[first].tolist()]
        return codes, names

    def column(self, k: int) -> list[list[str]]:
        """One column as strings, sequence by sequence."""
        codes, names = self.codes(k)
        cells = np.array(names, dtype=object)[codes].tolist()
        return [cells[a:b] for a, b in pairwise(offsets_of(self.lengths).tolist())]

    def rows(self) -> list[list[list[str]]]:
        """All cells as strings: sequences of rows."""
        if self.n_columns == 0:
            return [[[] for _ in range(n)] for n in self.lengths.tolist()]
        columns = [self.column(k) for k in range(self.n_columns)]
        return [list(map(list, zip(*cells, strict=True))) for cells in zip(*columns, strict=True)]

    def _index(self, k: int) -> int:
        if not -self.n_columns <= k < self.n_columns:
            raise ValueError(f"there are {self.n_columns} columns, numbered from 0; got {k}")
        return k % self.n_columns


def check_text(name: str, text: object) -> None:
    """Refuse what is not bytes, or too long for the limits of cells."""
    if not isinstance(text, bytes):
        raise TypeError(f"{name} must be bytes, got {type(text).__name__}")
    _check_size(len(text))


def check_spans(name: str, spans: Cells, size: int) -> None:
    """Refuse [..., 2] limits that lie outside of a text of this size, or end before they begin."""
    if spans.size and (int(spans.max()) > size or (spans[..., 0] > spans[..., 1]).any()):
        raise ValueError(
            f"{name} must lie within the text of {size} bytes, and end after they begin"
        )


def check_total(name: str, lengths: Ints, total: int, of: str) -> None:
    """Refuse lengths, none below 0, that do not add up to the total."""
    # Floats cannot wrap around, and are exact up to 2**53, more than memory holds.
    if lengths.sum(dtype=np.float64) != total:
        raise ValueError(f"{name} must add up to the number of {of}, {total}")


def _check_size(n_bytes: int) -> None:
    if n_bytes >= 2**32:
        raise ValueError(f"the text must be smaller than 4 GiB, got {n_bytes} bytes")


def _is_list(values: object) -> bool:
    """Whether the values are a list, tuple or array, of rows or of cells."""
    listed = isinstance(values, (list, tuple)) or (
        hasattr(values, "__len__") and hasattr(values, "__getitem__") and not is_sparse(values)
    )
    return listed and not isinstance(values, (str, bytes, dict)) and getattr(values, "ndim", 1) > 0


def _encoded(cell: object, i: int, t: int) -> bytes:
    if not isinstance(cell, str):
        raise TypeError(f"the cells of X[{i}][{t}] must be str, got {type(cell).__name__}")
    try:
        return cell.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{cell!r} in X[{i}][{t}] cannot be written as UTF-8") from error
