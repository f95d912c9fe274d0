"""Writing data sets: parts first, then the index that names them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, final

from chordal._atomic import atomic_write
from chordal._bounded_json import check_size
from chordal._container import write
from chordal.prepared._dataset import (
    FORMAT,
    INDEX,
    PART,
    VERSION,
    VOCABULARY,
    Arrays,
    Dataset,
    DatasetError,
    Facts,
    Path,
    checksum,
    is_dataset,
)

#: Names of the files of a data set besides its index, and of temporary ones.
_OWN = re.compile(r"(part-\d+|vocabulary)-\d+\.chordal|\.chordal-.*\.tmp")


@final
class Writer:
    """Writes a data set, or adds parts to one, within a ``with`` block.

    If anything fails, including a full disk or Ctrl-C, the new files are removed; the existing data
    set stays valid. The next writer removes what a killed one left.
    """

    def __init__(self, path: Path, append: bool = False) -> None:
        self.path, self._append = os.fspath(path), append
        self.old: Dataset | None = None
        self._new_folder = not os.path.exists(self.path)
        self._refuse_to_replace()
        if not (is_dataset(self.path) or self._new_folder or _is_unfinished(self.path)):
            raise FileExistsError(f"{self.path} exists and is not a data set: give another path")
        self._written: list[str] = []
        self._entries: list[dict[str, Any]] = []

    def __enter__(self) -> Writer:
        os.makedirs(self.path, exist_ok=True)
        self._lock = _locked(self.path)
        try:
            self._begin()
        except BaseException:
            self._unlock()
            raise
        return self

    def _begin(self) -> None:
        self._refuse_to_replace()  # another writer may have ended meanwhile
        if self._append and is_dataset(self.path):
            self.old = Dataset(self.path)
            self._entries = [own._asdict() for own in self.old.parts]
        if self._lock is not None:
            _remove_unfinished(self.path, {own["file"] for own in self._entries})
        self.id = os.urandom(8).hex() if self.old is None else self.old.id
        self.generation = 1 if self.old is None else self.old.generation + 1

    def _refuse_to_replace(self) -> None:
        if is_dataset(self.path) and not self._append:
            raise FileExistsError(
                f"{self.path} already has a data set: use append=True, or remove it first"
            )

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)

    def add(self, facts: Facts, arrays: Arrays, examples: int, variables: int) -> None:
        """Write a part."""
        name = f"part-{len(self._entries):05d}-{self.generation}.chordal"
        path = os.path.join(self.path, name)
        self._written.append(path)
        write(path, {**facts, "dataset": self.id, "file": name}, arrays, PART)
        self._entries.append({"file": name, "examples": examples, "variables": variables})

    def finish(self, facts: Mapping[str, Any], vocabulary: Arrays) -> None:
        """Write the vocabulary and the index: from now on the parts are there."""
        if not self._entries:
            raise ValueError("nothing to prepare: X is empty")
        name = f"vocabulary-{self.generation}.chordal"
        path = os.path.join(self.path, name)
        self._written.append(path)
        write(path, {"dataset": self.id}, vocabulary, VOCABULARY)
        index = {
            "format": FORMAT,
            "version": VERSION,
            "id": self.id,
            "generation": self.generation,
            "facts": dict(facts),
            "vocabulary": name,
            "parts": self._entries,
        }
        try:
            index = json.loads(json.dumps(index))
            check_size(json.dumps(index))
        except (TypeError, ValueError) as error:
            raise DatasetError(
                self.path, f"cannot hold these labels, or so many parts: {error}"
            ) from None
        with atomic_write(os.path.join(self.path, INDEX)) as file:
            file.write(json.dumps({**index, "checksum": checksum(index)}).encode())
        self._written = []
        with suppress(OSError):  # the last one stays for those who are just opening the old index
            os.unlink(os.path.join(self.path, f"vocabulary-{self.generation - 2}.chordal"))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for path in self._written:
            with suppress(OSError):
                os.unlink(path)
        self._unlock()
        if self._new_folder:
            with suppress(OSError):
                os.rmdir(self.path)  # if nothing is in it


def _is_unfinished(folder: str) -> bool:
    """Whether a folder is empty, or has only what a killed writer left."""
    return os.path.isdir(folder) and all(map(_OWN.fullmatch, os.listdir(folder)))


def _remove_unfinished(folder: str, known: Collection[str]) -> None:
    """Remove the parts that no index names; the folder must be locked."""
    for name in os.listdir(folder):
        if _OWN.fullmatch(name) and not name.startswith("vocabulary") and name not in known:
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))


def _locked(folder: str) -> int | None:
    """Hold a folder against other writers until the file is closed, where the system can."""
    try:
        import fcntl
    except ImportError:
        return None
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise DatasetError(folder, "another process is writing to it; wait for it") from None
    except OSError:  # a file system without locks
        os.close(descriptor)
        return None
    return descriptor
