"""The base class of formats: reading and writing of records."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from chordal.formats._files import BOM, Place, name_of, open_target


class Record(NamedTuple):
    """One sequence, in the same form for all formats.

    Attributes
    ----------
    rows : sequence
        An entry per token: a list of strings (columns, or attributes of value 1) or a dict of
        attributes.
    labels : list of str or None
        A label per token; None if there are no labels.
    comments : sequence of str
        Comment lines of the sequence, including their mark.
    weight : float
        Weight of the sequence in training.
    extras : sequence of (int, str)
        Lines that are not tokens, each with the number of tokens before it, such as ranges and
        empty nodes of CoNLL-U.
    """

    rows: Sequence[Any]
    labels: Sequence[str] | None = None
    comments: Sequence[str] = ()
    weight: float = 1.0
    extras: Sequence[tuple[int, str]] = ()


class Format(ABC):
    """Reads and writes records as streams, so a file may be larger than memory.

    `suffixes` are the ends of file names that suggest the format.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def read(self, source: Place) -> Iterator[Record]:
        """The records of a path, a binary stream or "-", compressed or not."""

    @abstractmethod
    def encode(self, record: Record) -> str:
        """The record's text; ValueError if the format cannot store it."""

    def write(self, records: Iterable[Record], target: Place) -> int:
        """Write to a path, a binary stream or "-"; returns the number of records.

        A file is written completely or not at all.
        """
        n = 0
        with open_target(target) as file:
            for n, record in enumerate(records, 1):
                try:
                    text = self.encode(record).encode()
                except UnicodeEncodeError as error:
                    what = f"{error.object[error.start : error.end]!r} has no UTF-8 form"
                    raise ValueError(
                        f"cannot write record {n} to {_target(target)}: {what}"
                    ) from None
                except ValueError as error:
                    raise ValueError(
                        f"cannot write record {n} to {_target(target)}: {error}"
                    ) from error
                if n == 1 and text.startswith(BOM):  # else it would be taken for the file's own
                    file.write(BOM)
                file.write(text)
        return n

    @property
    def name(self) -> str:
        """The name of the format: that of its file."""
        return type(self).__module__.rpartition(".")[2]


def _target(place: Place) -> str:
    return "<stdout>" if place == "-" else name_of(place)


def check_labels(record: Record) -> Sequence[str] | None:
    """The labels, which must be strings and as many as the rows."""
    labels = record.labels
    if labels is None:
        return None
    if len(labels) != len(record.rows):
        raise ValueError(f"there are {len(record.rows)} tokens and {len(labels)} labels")
    for label in labels:
        if not isinstance(label, str):
            raise ValueError(f"labels must be str, got {type(label).__name__}")
    return labels


def check_unweighted(record: Record, name: str) -> None:
    """Refuse a weight that the format would lose."""
    if record.weight != 1.0:
        raise ValueError(f"{name} cannot store weights of sequences, got {record.weight!r}")


def without_compression(path: str | os.PathLike[str]) -> str:
    """The name in lower case, without .gz, .bz2, .xz or .zst.

    >>> without_compression("data/Train.CONLLU.gz")
    'data/train.conllu'
    """
    name = os.fspath(path).lower()
    stem, suffix = os.path.splitext(name)
    return stem if suffix in (".gz", ".bz2", ".xz", ".zst") else name
