"""Progress of commands: how much is shown, how much of a file is read, how a search goes."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from chordal.progress import Progress

if TYPE_CHECKING:
    from chordal.inference import Inference
    from chordal.inference.portfolio import Progress as State


def level(quiet: bool, verbose: bool) -> int:
    """How much progress is shown, as `chordal.progress.Progress` counts it.

    >>> level(True, False), level(False, False), level(False, True)
    (0, 1, 2)
    """
    return 0 if quiet else 2 if verbose else 1


class BytesRead:
    """Files that are read one after another, and how much of them is read."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.total = sum(map(_size, paths))
        self._open: list[IO[bytes]] = []

    def __enter__(self) -> BytesRead:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._open:
            file.close()

    def opened(self, path: str) -> IO[bytes] | str:
        """The open file; a path that is not a file on disk is returned unchanged."""
        if not _size(path):
            return path
        self._open.append(open(path, "rb"))  # noqa: SIM115
        return self._open[-1]

    @property
    def done(self) -> int:
        """Bytes read so far, counted as on disk, before decompression."""
        # Not `tell`, which waits for a thread that reads.
        return sum(os.lseek(file.fileno(), 0, os.SEEK_CUR) for file in self._open)

    @property
    def share(self) -> float | None:
        """The share of all files that was read; None if their size is unknown."""
        return self.done / self.total if self.total else None


def _size(path: str) -> int:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return 0  # the reader says what is wrong
    return found.st_size if path != "-" and stat.S_ISREG(found.st_mode) else 0


def counted(batches: Iterator[Any], progress: Progress, read: BytesRead) -> Iterator[Any]:
    """The batches (X, y, …) of a file, with a line that says how many tokens were read."""
    tokens = 0
    for batch in batches:
        yield batch
        tokens += int(sum(map(len, batch[1])))
        pace = tokens / max(progress.elapsed, 1e-3)
        progress.update(tokens, f"{pace:,.0f} tokens/s", share=read.share)


def written(pieces: Iterator[bytes], progress: Progress, read: BytesRead) -> Iterator[bytes]:
    """The pieces of an output, with a line that says how much of the input was read."""
    for piece in pieces:
        yield piece
        done = read.done / 1e3
        pace = done / max(progress.elapsed, 1e-3)
        progress.update(done, f"{pace:,.0f} kB/s", share=read.share)


def talks(output: str) -> bool:
    """Whether a line on standard error would mix with output on the same terminal."""
    return output == "-" and sys.stdout.isatty()


@contextmanager
def watched(inference: Inference, task: str, verbose: int) -> Iterator[None]:
    """Show the method and the time that is left; of a search best score, bound, gap, member."""
    from chordal.inference.portfolio import PortfolioInference

    limit = inference.time_limit
    with Progress(task, verbose=verbose, pace=1.0, ticks=True) as progress:

        def left() -> float | None:
            return None if limit is None else max(0.0, limit - progress.elapsed)

        progress.update(None, inference.name, left=left())
        if not isinstance(inference, PortfolioInference):
            yield
            return

        def show(state: State) -> None:
            figures = [f"{state.member:<14}", f"score {state.score:<12.6g}"]
            figures += [f"bound {state.bound:<12.6g}", f"gap {state.bound - state.score:<10.4g}"]
            progress.update(None, *figures, left=left())

        inference.watch = show
        try:
            yield
        finally:
            inference.watch = None
