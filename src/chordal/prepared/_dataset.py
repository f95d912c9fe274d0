"""Data sets on disk: a folder with an index, a vocabulary and parts.

The index lists the other files. It is replaced as a whole when parts are added, so open data sets
do not change. All files are checked; none is a pickle.
"""

from __future__ import annotations

import errno
import json
import os
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple, final

from numpy.typing import NDArray

from chordal._bounded_json import MAX_BYTES, parsed
from chordal._container import FileError, Kind, read

Path = str | os.PathLike[str]
Facts = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

FORMAT = "chordal data set"
VERSION = 1  # raised when older versions of chordal could not read what is written
INDEX = "index.json"


class DatasetError(FileError):
    """A prepared data set cannot be used; the message says why."""


PART = Kind("part", "part of a data set", DatasetError)
VOCABULARY = Kind("vocabulary", "vocabulary of a data set", DatasetError)


class PartEntry(NamedTuple):
    """The index entry of a part."""

    file: str
    examples: int
    variables: int


@final
class Dataset:
    """Examples on disk, as an estimator has read them; `fit` and `predict` accept them.

    Create it with `prepare` of an estimator or with ``chordal prepare``. Parts are read when they
    are needed and checked each time; memory holds one of them. If a data set grows
    (``append=True``), a data set that is already open does not show the new parts.

    Parameters
    ----------
    path : str or path
        The folder.

    Attributes
    ----------
    n_examples, n_variables, n_parts : int
    generation : int
        Number of times it was written to.
    n_bytes : int
        Size of its files in bytes.

    Examples
    --------
    >>> import tempfile
    >>> from chordal import ChainCRF, Dataset
    >>> X, y = [[["w=a"], ["w=b"]], [["w=b"]]], [["A", "B"], ["B"]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = ChainCRF().prepare(f"{folder}/data", X, y)
    ...     crf = ChainCRF().fit(Dataset(f"{folder}/data"))
    >>> crf.predict(X)
    [['A', 'B'], ['B']]
    """

    def __init__(self, path: Path) -> None:
        self.path = os.fspath(path)
        for attempt in range(3):
            index = _index(self.path)
            try:
                self._take(index)
                return
            except FileNotFoundError:  # it was written to in between
                if attempt == 2:
                    raise

    def _take(self, index: Facts) -> None:
        try:
            self.id, self.generation = str(index["id"]), _count(index, "generation")
            self.facts: Facts = index["facts"]
            self.parts = [PartEntry(*_entry(own)) for own in index["parts"]]
            vocabulary = _plain_name(index["vocabulary"])
        except (KeyError, TypeError, ValueError) as error:
            raise DatasetError(self.path, f"its index is not valid: {error}") from error
        if not isinstance(self.facts, dict) or not self.parts:
            raise DatasetError(self.path, "its index is not valid: it names no parts")
        path = os.path.join(self.path, vocabulary)
        facts, self.vocabulary = read(path, VOCABULARY)
        if facts.get("dataset") != self.id:
            raise DatasetError(path, "is not of this data set: it belongs to another one")
        self._held: tuple[int, Facts, Arrays] | None = None

    @property
    def n_parts(self) -> int:
        """How many files hold the examples."""
        return len(self.parts)

    @property
    def n_examples(self) -> int:
        """How many examples there are."""
        return sum(own.examples for own in self.parts)

    @property
    def n_variables(self) -> int:
        """How many variables they have: of sequences, tokens."""
        return sum(own.variables for own in self.parts)

    @property
    def n_bytes(self) -> int:
        """Size of the part files in bytes."""
        return sum(os.path.getsize(os.path.join(self.path, own.file)) for own in self.parts)

    def __len__(self) -> int:
        return self.n_examples

    def __repr__(self) -> str:
        return (
            f"Dataset({self.path!r}: {self.n_examples} examples, {self.n_variables} variables, "
            f"{self.n_parts} parts)"
        )

    def part(self, k: int) -> tuple[Facts, Arrays]:
        """Facts and arrays of a part, read and checked; it is held until another one is read."""
        held = self._held
        if held is not None and held[0] == k:
            return held[1:]
        self._held = held = None  # before the next one takes memory
        path = os.path.join(self.path, self.parts[k].file)
        try:
            facts, arrays = read(path, PART)
        except FileNotFoundError:
            raise DatasetError(self.path, f"part {k}, {self.parts[k].file}, is missing") from None
        if facts.get("dataset") != self.id or facts.get("file") != self.parts[k].file:
            raise DatasetError(path, f"is not part {k} of this data set: it belongs to another one")
        self._held = (k, facts, arrays)
        return facts, arrays

    def release(self, k: int) -> None:
        """Release the memory of a part; it is read again when it is needed."""
        if self._held is not None and self._held[0] == k:
            self._held = None

    def verify(self) -> None:
        """Read all parts; raise an error if one is damaged."""
        for k in range(self.n_parts):
            self.release(k)
            self.part(k)
            self.release(k)


def is_dataset(path: Path) -> bool:
    """Whether there is a prepared data set, sound or not."""
    return os.path.isfile(os.path.join(path, INDEX))


def _index(folder: str) -> Facts:
    """The index of a data set, checked."""
    if not os.path.exists(folder):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
    if not is_dataset(folder):
        raise DatasetError(folder, f"is not a prepared data set: it has no {INDEX}")
    with open(os.path.join(folder, INDEX), "rb") as file:
        raw = file.read(MAX_BYTES + 1)
    try:
        index = parsed(raw)
    except ValueError as error:
        raise DatasetError(folder, f"its index cannot be read: {error}") from error
    if not isinstance(index, dict) or index.get("format") != FORMAT:
        raise DatasetError(folder, f"its {INDEX} is not that of a chordal data set")
    version = index.get("version")
    if type(version) is not int or version < 1:
        raise DatasetError(folder, f"its version must be a number of at least 1, got {version!r}")
    if version > VERSION:
        raise DatasetError(
            folder,
            f"written by a newer chordal (format {version}; this one reads up to {VERSION}); "
            "upgrade chordal, or prepare the data again with the older one",
        )
    if index.pop("checksum", None) != checksum(index):
        raise DatasetError(folder, "the checksum of its index is wrong: it was damaged or changed")
    return index


def checksum(index: Mapping[str, Any]) -> str:
    """Of an index without its checksum."""
    return f"{zlib.crc32(json.dumps(index, sort_keys=True).encode()):08x}"


def _entry(given: Mapping[str, Any]) -> tuple[str, int, int]:
    return _plain_name(given["file"]), _count(given, "examples"), _count(given, "variables")


def _count(given: Mapping[str, Any], name: str) -> int:
    number = given[name]
    if type(number) is not int or not 0 <= number < 2**48:
        raise ValueError(f"{name} must be a whole number of at least 0, got {number!r:.60}")
    return number


def _plain_name(name: object) -> str:
    """A file of the folder itself: nothing above it."""
    if not isinstance(name, str) or not name or os.path.basename(name) != name or name[0] == ".":
        raise ValueError(f"a file of the data set cannot be called {name!r}")
    return name
