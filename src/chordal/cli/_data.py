"""Data files as sequences and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from chordal._errors import FormatError

if TYPE_CHECKING:
    from chordal.cli._watching import BytesRead
    from chordal.formats import Format, Place, Record
    from chordal.text import Columns, FeatureTemplate


LARGEST_TEMPLATE = 1 << 28
BLOCK = 1 << 23  # bytes of items that are read at a time
RECORDS = 2000  # sequences, of other formats
#: Formats that are read from the beginning to the end.
TEXT = ("conll", "conllu", "crfsuite", "jsonl")


@dataclass(frozen=True)
class Reading:
    """How data files are to be read; as the options say."""

    format: str | None = None
    separator: str | None = None
    comment: str | None = None
    label: int | None = -1
    encoding: str | None = None
    read: BytesRead | None = None  # counts what is read

    def place(self, path: str) -> Place:
        """What is to be read: the path, the open file, or a stream of UTF-8 made of it."""
        from chordal.formats import recoded

        place: Place = path
        if self.read is not None and self.name(path) in TEXT:
            place = self.read.opened(path)
        return place if self.encoding is None else recoded(place, self.encoding)

    def name(self, path: str) -> str:
        """The format, by option or by the file's name."""
        from chordal.formats import format_of

        if self.format is not None:
            return self.format
        return "conll" if path == "-" else format_of(path)

    def with_label(self, label: int | None) -> Reading:
        """The same with labels in this column."""
        return replace(self, label=label)

    def format_for(self, path: str) -> Format:
        """What reads and writes the file."""
        from chordal.formats import FORMATS

        name = self.name(path)
        if name == "conll":
            options = {"separator": self.separator, "comment": self.comment, "label": self.label}
            return FORMATS.resolve(name, **options)
        if name == "conllu" and self.label is None:
            return FORMATS.resolve(name, label=None)
        return FORMATS.resolve(name)


@dataclass(frozen=True)
class Data:
    """Sequences with labels. X is columns of text, or a list of sequences of attributes; or it is a
    prepared data set, which has its labels: y is empty then.
    """

    path: str
    X: Any
    y: list[list[str]]
    weight: list[float] | None = None

    @property
    def n_sequences(self) -> int:
        """The number of sequences."""
        return len(self.X)

    @property
    def n_tokens(self) -> int:
        """The number of tokens."""
        return int(self.X.n_variables) if self.is_prepared else sum(map(len, self.y))

    @property
    def is_prepared(self) -> bool:
        """Whether X is a prepared data set."""
        return hasattr(self.X, "n_variables")

    @property
    def validation(self) -> Any:
        """These data as `validation_data`."""
        return self.X if self.is_prepared else (self.X, self.y)

    def weighted(self, weight: list[float]) -> Data:
        """The same with weights of sequences, of which the file may have none."""
        if self.weight is not None:
            raise FormatError(self.path, "it has its own weights: remove --weights")
        return replace(self, weight=weight)

    def part(self, chosen: Sequence[int]) -> Data:
        """Only these sequences."""
        import numpy as np

        X: Columns | list[Any]
        if isinstance(self.X, list):
            X = [self.X[i] for i in chosen]
        else:
            lengths = self.X.lengths
            wanted = np.zeros(len(lengths), dtype=bool)
            wanted[list(chosen)] = True
            rows = self.X.cells[np.repeat(wanted, lengths)]
            X = type(self.X)(self.X.text, rows, lengths[wanted])
        weight = None if self.weight is None else [self.weight[i] for i in chosen]
        return Data(self.path, X, [self.y[i] for i in chosen], weight)


def load_data(path: str, reading: Reading, template: FeatureTemplate | None) -> Data:
    """The whole file. With a template, tokens must be columns, otherwise attributes."""
    from chordal.formats.conll import CoNLL

    reader = reading.format_for(path)
    name = "<stdin>" if path == "-" else path
    if isinstance(reader, CoNLL):
        columns = reader.load(reading.place(path))
        if not len(columns):
            raise FormatError(name, "the file has no tokens")
        _check_label_column(columns, reading.label, name)
        assert reading.label is not None
        return Data(name, columns.drop(reading.label), columns.column(reading.label))
    records = list(reader.read(reading.place(path)))
    if not records:
        raise FormatError(name, "the file has no tokens")
    return Data(name, *_of_records(records, name, 0, template is not None))


def load_unlabelled(path: str, reading: Reading, template: FeatureTemplate | None) -> Data:
    """The whole file; labels that it may have are not looked at, and y is empty."""
    from chordal.formats.conll import CoNLL
    from chordal.text import Columns

    reader = reading.format_for(path)
    name = "<stdin>" if path == "-" else path
    X: Any
    if isinstance(reader, CoNLL):
        X = reader.load(reading.place(path))
    else:
        X = [list(record.rows) for record in reader.read(reading.place(path))]
        X = X if template is None or not X else Columns.from_sequences(X)
    if not len(X):
        raise FormatError(name, "there are no tokens in it")
    return Data(name, X, [])


def batches_of(
    path: str, reading: Reading, columns: bool
) -> Iterator[tuple[Any, list[list[str]], Any]]:
    """The sequences of a file, their labels and weights, a block at a time.

    With `columns`, tokens must be columns of text, otherwise attributes.
    """
    from chordal.formats.conll import CoNLL
    from chordal.formats.crfsuite import CRFsuite

    reader, place = reading.format_for(path), reading.place(path)
    name = "<stdin>" if path == "-" else path
    if isinstance(reader, CoNLL):
        assert reading.label is not None
        for block in reader.blocks(place):
            _check_label_column(block, reading.label, name)
            yield block.drop(reading.label), block.column(reading.label), None
    elif isinstance(reader, CRFsuite) and not columns:
        for items in reader.blocks(place, BLOCK):
            yield items, items.label_lists(), items.weights
    else:
        records, first = reader.read(place), 0
        while some := list(islice(records, RECORDS)):
            yield _of_records(some, name, first, columns)
            first += len(some)


def _of_records(
    records: Sequence[Record], name: str, first: int, columns: bool
) -> tuple[Any, list[list[str]], list[float] | None]:
    """Sequences, labels and weights of records, from number `first` on."""
    from chordal.text import Columns

    for i, record in enumerate(records, start=first + 1):
        if record.labels is None:
            raise FormatError(name, f"sequence {i} has no labels")
    rows = [list(record.rows) for record in records]
    weights = [record.weight for record in records]
    X: Columns | list[Any] = rows
    if columns:
        try:
            X = Columns.from_sequences(rows)
        except (TypeError, ValueError) as error:
            what = f"a template needs tokens that are columns of text: {error}"
            raise FormatError(name, what) from error
    y = [list(record.labels or ()) for record in records]
    return X, y, None if set(weights) == {1.0} else weights


def _check_label_column(columns: Columns, label: int | None, name: str) -> None:
    n = columns.n_columns
    if label is None or n == 1 or not -n <= label < n:
        raise FormatError(name, f"there is no column {label} of labels; the file has {n} columns")


def make_template(
    file: str | None, task: str | None, dialect: str, n_columns: int | None
) -> FeatureTemplate | None:
    """The template of -t or --task; None without both."""
    from chordal.text import FeatureTemplate

    if file is not None:
        return read_template(file, dialect)
    if task is None:
        return None
    from chordal.preprocessing import default_template

    return FeatureTemplate(default_template(task, n_columns or 1), dialect)


def read_template(path: str, dialect: str, encoding: str | None = None) -> FeatureTemplate:
    """A template file, compressed or not; errors name it."""
    from chordal.formats import open_source, recoded
    from chordal.text import FeatureTemplate

    with open_source(path if encoding is None else recoded(path, encoding)) as source:
        raw = source.read(LARGEST_TEMPLATE)
    try:
        return FeatureTemplate(raw.decode(), dialect)
    except UnicodeDecodeError as error:
        raise FormatError(path, f"not UTF-8 at byte {error.start + 1}") from None
    except ValueError as error:
        raise FormatError(path, str(error)) from None
