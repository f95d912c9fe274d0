"""Threads: the compiled loops release Python's lock, so they run at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar, final

from chordal._limits import StopFlag, in_worker
from chordal.execution import Execution

S = TypeVar("S")
T = TypeVar("T")


@final
class Threads(Execution):
    """A pool of `n_jobs` threads.

    >>> with Threads(n_jobs=2) as threads:
    ...     threads.map(abs, [-1, 2])
    [1, 2]
    """

    def __init__(self, n_jobs: int = 2) -> None:
        self.n_jobs = n_jobs
        self._pool = ThreadPoolExecutor(n_jobs, thread_name_prefix="chordal")

    def map(self, task: Callable[[S], T], items: Iterable[S]) -> list[T]:
        """All tasks at once, as far as there are threads; the first error ends the rest."""
        stop = StopFlag()
        run = in_worker(task, stop)
        items, futures = list(items), []
        try:
            for item in items:
                futures.append(self._pool.submit(run, item))
        except RuntimeError:  # no more threads, or the interpreter ends: this one does the rest
            return [future.result() for future in futures] + [
                task(item) for item in items[len(futures) :]
            ]
        try:
            return [future.result() for future in futures]
        except BaseException:  # Ctrl-C too: nothing may still write when the caller goes on
            stop.set()
            for future in futures:
                future.cancel()
            wait(futures)
            raise

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()
