"""List columns of Arrow: tokens and labels of sequences, read and written some rows at a time."""

from __future__ import annotations

import io
import os
import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from chordal._errors import FormatError
from chordal._optional import needed
from chordal.formats._base import Format, Record, check_labels
from chordal.formats._files import MAX_GROWTH, SMALL, Place, name_of, open_target

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 2000  # sequences that are read at a time, and written as a group

#: Sequences, and their labels if there are any.
Batch = tuple[list[list[Any]], list[list[str]] | None, list[float] | None]


class ArrowFormat(Format):
    """Rows of a table are sequences: a list column of tokens, and one of labels.

    Tokens are ``list<string>`` (rows of one column), ``list<list<string>>`` (columns, or
    attributes) or ``list<map<string, double>>`` (attributes with values). Labels are
    ``list<string>``; a column of numbers holds the weights of sequences.

    Parameters
    ----------
    tokens : str
        The column of tokens.
    labels, weight : str or None
        The columns of labels and of weights; None ignores them. A table may lack those that have
        these default names.
    """

    def __init__(
        self, tokens: str = "tokens", labels: str | None = "labels", weight: str | None = "weight"
    ) -> None:
        self.tokens, self.labels, self.weight = tokens, labels, weight

    @abstractmethod
    def _tables(self, source: Place, size: int) -> Iterator[pa.RecordBatch]:
        """Record batches of an opened source, of at most `size` rows."""

    @abstractmethod
    def _writer(self, file: IO[bytes], schema: pa.Schema) -> pa.RecordBatchWriter:
        """What writes record batches to a file."""

    def batches(self, source: Place, size: int = ROWS) -> Iterator[Batch]:
        """Sequences, labels and weights of some rows at a time: what `fit` and `prepare` take.

        Parameters
        ----------
        source : path, binary stream, "-", `pyarrow.Table` or `pyarrow.RecordBatchReader`
        """
        name, first = _name(source), 0
        for table in self._opened(source, size, name):
            columns = table.schema.names
            self._check_columns(columns, name)
            try:
                rows = _tokens(table.column(self.tokens), self.tokens, first)
                labels = weights = None
                if self.labels in columns:
                    labels = _labels(table.column(self.labels), self.labels, rows, first)
                if self.weight in columns:
                    weights = _weights(table.column(self.weight), self.weight, first)
            except ValueError as error:
                raise FormatError(name, str(error)) from None
            first += table.num_rows
            yield rows, labels, weights

    def _check_columns(self, columns: Sequence[str], name: str) -> None:
        """Raise an error if a column that was asked for is not there, or there twice."""
        there = ", ".join(columns) or "none"
        for own, default in ((self.tokens, ""), (self.labels, "labels"), (self.weight, "weight")):
            if own not in (None, default, *columns):
                raise FormatError(name, f"there is no column {own!r}; there are: {there}")
            if own is not None and columns.count(own) > 1:
                raise FormatError(name, f"there are several columns {own!r}: rename all but one")

    def read(self, source: Place) -> Iterator[Record]:
        """Records, one for each row."""
        for rows, labels, weights in self.batches(source):
            for i, own in enumerate(rows):
                yield Record(
                    own, None if labels is None else labels[i],
                    weight=1.0 if weights is None else weights[i],
                )  # fmt: skip

    def encode(self, record: Record) -> str:
        """Refuses: tables are not text."""
        raise ValueError(f"{self.name} files are not text: use write with a file")

    def write(self, records: Iterable[Record], target: Place) -> int:
        """Write to a path or a binary stream; returns the number of records.

        The first record says whether tokens are lists of strings or attributes with values.
        """
        rest, n = iter(records), 0
        with open_target(target) as file:
            writer, schema = None, None
            try:
                while some := list(islice(rest, ROWS)):
                    try:
                        table = self.table(some, schema)
                    except (ValueError, TypeError, OverflowError) as error:
                        where = f"records {n + 1} to {n + len(some)}"
                        raise ValueError(f"cannot write {where}: {error}") from None
                    schema = table.schema
                    writer = writer or self._writer(file, schema)
                    writer.write_table(table)
                    n += len(some)
                writer = writer or self._writer(file, self.table([]).schema)
            finally:
                if writer is not None:
                    writer.close()
        return n

    def table(self, records: Sequence[Record], schema: pa.Schema | None = None) -> pa.Table:
        """Records as a table."""
        pa = _pyarrow(f"the format {self.name!r}")
        given = [check_labels(record) for record in records]
        if schema is None:
            first: Any = next((row for record in records for row in record.rows), [])
            kind = pa.map_(pa.string(), pa.float64())
            if not isinstance(first, dict):
                kind = pa.list_(pa.string())
            fields = [(self.tokens, pa.list_(kind))]
            if any(labels is not None for labels in given):
                fields.append((self.labels or "labels", pa.list_(pa.string())))
            if any(record.weight != 1.0 for record in records):
                fields.append((self.weight or "weight", pa.float64()))
            schema = pa.schema(fields)
        mapped = pa.types.is_map(schema.field(self.tokens).type.value_type)
        rows = [[_cell(row, mapped) for row in record.rows] for record in records]
        columns = [rows, given, [float(record.weight) for record in records]]
        names = [self.tokens, self.labels or "labels", self.weight or "weight"]
        for name, there in (
            (names[1], any(own is not None for own in given)),
            (names[2], any(record.weight != 1.0 for record in records)),
        ):
            if there and name not in schema.names:
                raise ValueError(f"some have {name}, and the first {ROWS} records have none")
        if names[1] in schema.names and None in given:
            raise ValueError(
                f"number {given.index(None) + 1} of these has no {names[1]}, but others have; give "
                "labels to all of them, or to none"
            )
        kept = [columns[names.index(name)] for name in schema.names]
        arrays = [pa.array(own, schema.field(k).type) for k, own in enumerate(kept)]
        return pa.Table.from_arrays(arrays, schema=schema)

    def _opened(self, source: Place, size: int, name: str) -> Iterator[pa.RecordBatch]:
        pa = _pyarrow(f"reading {name}")
        if isinstance(source, pa.Table):
            yield from source.to_batches(max_chunksize=size)
            return
        if isinstance(source, (pa.RecordBatch, pa.RecordBatchReader)):
            for batch in [source] if isinstance(source, pa.RecordBatch) else source:
                yield from pa.Table.from_batches([batch]).to_batches(max_chunksize=size)
            return
        if not (isinstance(source, (str, os.PathLike)) or hasattr(source, "read")):
            raise TypeError(
                "a table must be a path, a binary stream, a pyarrow.Table, a RecordBatch or a "
                f"RecordBatchReader, got {type(source).__name__}; of pandas: Table.from_pandas(…)"
            )
        if source == "-":
            source = io.BytesIO(sys.stdin.buffer.read())
        try:
            for batch in self._tables(source, size):
                batch.validate(full=True)  # offsets of a hostile file may lead anywhere
                yield batch
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the file, not of what is in it
            what = str(error).partition("\n")[0]
            if what == "Not an Arrow file":
                what += "; if it is a stream, give batches(pyarrow.ipc.open_stream(path)) instead"
            raise FormatError(name, f"not a file of {self.name} that can be read: {what}") from None


def size_of(source: Place) -> int:
    """Bytes of a file or of a stream that can be read from its beginning again."""
    if isinstance(source, (str, os.PathLike)):
        return os.path.getsize(source)
    here = source.tell()
    end = source.seek(0, os.SEEK_END)
    source.seek(here)
    return end


def check_growth(name: str, what: str, n: int, size: int) -> None:
    """Raise an error if a small file holds too many values or bytes, decompressed."""
    if n > max(SMALL, MAX_GROWTH * size):
        raise FormatError(
            name,
            f"a file of {size} bytes with {n} {what}, more than {MAX_GROWTH} times as many; "
            "write it again without compression if you trust it",
        )


def _pyarrow(what: str) -> Any:
    with needed("pyarrow", what):
        import pyarrow

    return pyarrow


def _name(source: Place) -> str:
    try:
        return name_of(source)
    except (TypeError, AttributeError):
        return "<table>"


def _lists(column: pa.Array, name: str, first: int) -> list[list[Any]]:
    """The lists of a column; an error if it has no lists or one is missing."""
    if not _is_list(column.type):
        raise ValueError(f"column {name!r} must have lists, but has {column.type}")
    if column.null_count:
        raise ValueError(f"column {name!r} has no list in row {first + _null(column)}")
    found: list[list[Any]] = column.to_pylist()
    return found


def _is_list(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists, in whatever form."""
    outer = str(kind).partition("<")[0]
    return outer in ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")


def _is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds strings, in whatever form."""
    if str(kind).startswith("dictionary<"):
        kind = kind.value_type
    return str(kind) in ("string", "large_string", "string_view")


def _null(column: pa.Array) -> int:
    return int(column.is_null().to_pylist().index(True))


def _tokens(column: pa.Array, name: str, first: int) -> list[list[Any]]:
    lists = _lists(column, name, first)
    kind = column.type.value_type
    text, mapped = _is_text(kind), str(kind).startswith("map<") and _is_text(kind.key_type)
    nested = _is_list(kind) and _is_text(kind.value_type)
    if not (text or nested or mapped):
        raise ValueError(
            f"column {name!r} must hold lists of strings, of lists of strings or of maps from "
            f"strings to numbers, and holds {column.type}"
        )
    for i, tokens in enumerate(lists):
        for t, token in enumerate(tokens):
            cells = token if nested else [token] if text or token is None else [k for k, _ in token]
            if token is None or None in cells:
                raise ValueError(f"token {t} of row {first + i} of column {name!r} is missing")
            if mapped and len(set(cells)) < len(cells):
                raise ValueError(
                    f"token {t} of row {first + i} of column {name!r} has an attribute twice"
                )
    if text:
        return [[[token] for token in tokens] for tokens in lists]
    return [list(map(dict, tokens)) for tokens in lists] if mapped else lists


def _labels(
    column: pa.Array, name: str | None, rows: list[list[Any]], first: int
) -> list[list[str]]:
    lists = _lists(column, str(name), first)
    if not _is_text(column.type.value_type):
        raise ValueError(f"column {name!r} must have lists of strings, but has {column.type}")
    for i, (labels, tokens) in enumerate(zip(lists, rows, strict=True)):
        if len(labels) != len(tokens):
            raise ValueError(
                f"there are {len(tokens)} tokens and {len(labels)} labels in row {first + i}"
            )
        if None in labels:
            raise ValueError(f"label {labels.index(None)} of row {first + i} is missing")
    return lists


def _weights(column: pa.Array, name: str | None, first: int) -> list[float]:
    pa = _pyarrow("a table")
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise ValueError(f"column {name!r} must have numbers, but has {column.type}")
    if column.null_count:
        raise ValueError(f"column {name!r} has no number in row {first + _null(column)}")
    return [float(value) for value in column.to_pylist()]


def _cell(row: Any, mapped: bool) -> Any:
    """A token as its column holds it."""
    if mapped:
        if not isinstance(row, dict):
            row = dict.fromkeys(row, 1.0)
        odd = [value for value in row.values() if not isinstance(value, (int, float))]
        if odd:
            raise ValueError(f"values of attributes must be numbers, got {odd[0]!r:.60}")
        return [(name, float(value)) for name, value in row.items()]
    if isinstance(row, dict) or not all(isinstance(cell, str) for cell in row):
        raise ValueError(f"tokens must be lists of strings as the first one is, got {row!r:.60}")
    return list(row)
