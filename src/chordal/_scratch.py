"""Temporary files and folders whose errors say what to do when the disk is full."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from chordal._atomic import FULL

PREFIX = "chordal-"


@contextmanager
def scratch_file(what: str) -> Iterator[IO[bytes]]:
    """A temporary file without a name; `what` says what is kept there."""
    # The last bytes may be written only when the file is closed.
    with _advice(what, ""), tempfile.TemporaryFile(prefix=PREFIX) as file:
        yield file


@contextmanager
def scratch_folder(what: str) -> Iterator[str]:
    """A temporary folder; `what` says what is kept there."""
    with tempfile.TemporaryDirectory(prefix=PREFIX) as folder, _advice(what, folder):
        yield folder


@contextmanager
def _advice(what: str, folder: str) -> Iterator[None]:
    """Errors of a full disk, about a file in the folder or without a name, say what to do."""
    try:
        yield
    except OSError as error:
        own = error.filename is None or (folder and os.fspath(error.filename).startswith(folder))
        advised = "TMPDIR" in str(error.strerror)  # of a file in a folder of this kind
        if error.errno not in FULL or not own or advised:
            raise
        raise OSError(
            error.errno,
            f"cannot keep {what} in {tempfile.gettempdir()}: {error.strerror}; set TMPDIR to a "
            "folder on a disk with more space",
        ) from error
