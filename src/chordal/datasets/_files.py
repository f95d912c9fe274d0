"""Finding data files: at a given path, in $CHORDAL_DATA, in the user's cache, or online."""

from __future__ import annotations

import gzip
import hashlib
import os
import urllib.request
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from chordal._atomic import atomic_write

MOST_BYTES = 1 << 28
TIMEOUT = 30.0  # seconds without an answer


@dataclass(frozen=True)
class Official:
    """Where a file is distributed, and the digest of its content, unpacked.

    The digest is SHA-256; or, of 40 digits, what git calls the content.
    """

    url: str
    digest: str

    def is_of(self, content: bytes) -> bool:
        """Whether the content is what was expected."""
        if len(self.digest) == 40:
            named = b"blob %d\0" % len(content) + content
            return hashlib.sha1(named, usedforsecurity=False).hexdigest() == self.digest
        return hashlib.sha256(content).hexdigest() == self.digest


def found(
    path: str | PathLike[str] | None,
    folder: str,
    names: Sequence[str],
    source: str,
    official: Mapping[str, Official] | None = None,
) -> Path:
    """The first of these files that exists.

    It searches `path`, the folder $CHORDAL_DATA/`folder`, the user's cache, and last the official
    address, if known, from which the file is downloaded into the cache.

    Parameters
    ----------
    path : str, Path or None
        A file, or a folder that contains one of `names`; None: search elsewhere.
    source : str
        Where the file can be downloaded, for the error message if it is missing.
    official : dict by name of Official, optional
    """
    root = os.environ.get("CHORDAL_DATA")
    if path is not None:
        place = Path(path)
        if place.is_file():
            return place
        places = [place]
    else:
        places = [Path(root) / folder] if root else []
        places.append(cache() / folder)
    for place in places:
        for name in names:
            if (place / name).exists():
                return place / name
    if path is not None:
        raise FileNotFoundError(f"there is no {_either(names)} in {place}: put it there ({source})")
    problem = ""
    for name, known in (official or {}).items():
        try:
            return _downloaded(known, cache() / folder / name)
        except OSError as error:
            problem = f", and {known.url} could not be read ({error})"
    where = f"into {places[0]}"
    if not root:
        where = f"into a folder {folder!r}, and set CHORDAL_DATA to the folder that holds it"
    raise FileNotFoundError(
        f"there is no {_either(names)}{problem}: put it ({source}) {where}; or give path"
    )


def cache() -> Path:
    """The user's folder of data files that were downloaded."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "chordal"


def _downloaded(known: Official, place: Path) -> Path:
    """Download a file to its place, if its content is the expected one."""
    with urllib.request.urlopen(known.url, timeout=TIMEOUT) as answer:
        data: bytes = answer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(f"it holds more than {MOST_BYTES} bytes")
    if not known.is_of(_unpacked(data)):
        raise OSError("its content is not what was expected: the file there has changed")
    place.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(place) as file:
        file.write(data)
    return place


def _unpacked(data: bytes) -> bytes:
    """The content of a file, which may be gzipped."""
    if data[:2] != b"\x1f\x8b":
        return data
    unpack = zlib.decompressobj(wbits=31)
    try:
        content = unpack.decompress(data, MOST_BYTES)
    except zlib.error as error:
        raise OSError(f"it is damaged: {error}") from None
    if not unpack.eof:
        raise OSError("it is damaged: cut off, or far too large")
    return content


def text_of(file: Path) -> str:
    """The text of a file, plain or gzipped; not more than could be."""
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            data: bytes = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ValueError(f"it holds more than {MOST_BYTES} bytes")
        return data.decode("utf-8")
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError) as error:
        raise ValueError(f"{file} is not such a text, or is damaged: {error}") from None


def sentences_of(
    file: Path, n_columns: int, separator: str | None = None, comment: str | None = None
) -> list[list[list[str]]]:
    """The rows of every sentence of a file of columns; blank lines between sentences.

    Lines that begin with `comment` are skipped.
    """
    sentences: list[list[list[str]]] = [[]]
    for number, line in enumerate(text_of(file).split("\n"), start=1):
        row = line.rstrip("\r").split(separator)
        if not line.strip():
            sentences.append([])
        elif comment is not None and line.startswith(comment):
            continue
        elif len(row) != n_columns:
            what = f"must have {n_columns} columns, has {len(row)}"
            raise ValueError(f"{file}, line {number}: {what}")
        else:
            sentences[-1].append(row)
    return [sentence for sentence in sentences if sentence]


def _either(names: Sequence[str]) -> str:
    return " or ".join(names)
