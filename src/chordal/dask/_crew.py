"""Workers of a Dask cluster as a crew: tasks where the data are, and sums in a tree."""

from __future__ import annotations

import time
import warnings
from asyncio import CancelledError as AsyncCancelledError
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from uuid import uuid4

from distributed import Client, Future, KilledWorker, default_client, wait

from chordal._errors import InfeasibleError, UnsupportedError

T = TypeVar("T")

PAUSE = 1.0  # seconds between two looks at a cluster that works
IDLE = 5  # looks in a row at workers that have nothing to do, while results are waited for
TRIES = 20  # of an evaluation whose data went with a worker

#: What a lost worker, a lost connection or a lost scheduler does to a call.
_LOST = (CancelledError, AsyncCancelledError, TimeoutError, OSError)

#: Errors of a task that reach the caller as they are, with the partition's number before the text.
_KINDS = (ValueError, TypeError, UnsupportedError, NotImplementedError)


class ClusterError(RuntimeError):
    """The cluster is gone, or has had no worker for too long."""


def client_of(given: Client | None) -> Client:
    """The given client, or the last one that was created."""
    if given is not None:
        return given
    try:
        return default_client()
    except ValueError:
        raise ValueError(
            "chordal.dask needs a cluster: create a distributed.Client first, or give client="
        ) from None


class DaskCrew:
    """Runs tasks on the workers of a client; results stay where they were computed.

    Every result, including weights, has its recipe in Dask's graph, so the scheduler computes it
    again if its worker is lost. Weights are sent once per evaluation, and workers get them from
    each other. `Client.scatter` would keep no recipe, and with broadcast=True it may wait forever
    for a worker that dies.

    Parameters
    ----------
    client : distributed.Client
    timeout : float
        Seconds to wait if there is no worker.
    """

    def __init__(self, client: Client, timeout: float = 120.0) -> None:
        self.client, self.timeout = client, timeout

    def start(self, partitions: Sequence[Any]) -> list[Future]:
        """The partitions (Delayed), computed where the scheduler finds best.

        No worker is named: a task that prefers a worker may wait for it after it died.
        """
        return list(self.client.compute(list(partitions), optimize_graph=False))

    def map(
        self,
        function: Callable[..., Any],
        parts: Sequence[Future],
        *shared: Any,
        each: Sequence[Any] | None = None,
    ) -> list[Future]:
        """function(part, *shared) of every part, where the part is; `each` has last arguments."""
        name, own = _name(function), [()] * len(parts) if each is None else [(v,) for v in each]
        return [
            self.client.submit(function, part, *shared, *last, key=f"{name}-{k}")
            for k, (part, last) in enumerate(zip(parts, own, strict=True))
        ]

    def join(self, function: Callable[..., Any], parts: Sequence[Future], *shared: Any) -> Future:
        """function(all parts, *shared), on one worker."""
        return self.client.submit(function, list(parts), *shared, key=_name(function))

    def tree(self, function: Callable[[Any, Any], Any], parts: Sequence[Future]) -> Future:
        """The parts joined two by two, by their numbers, whatever the number of workers."""
        name, level = _name(function), list(parts)
        while len(level) > 1:
            pairs = [level[k : k + 2] for k in range(0, len(level), 2)]
            level = [
                self.client.submit(function, *own, key=f"{name}-{len(level)}-{k}")
                if len(own) == 2
                else own[0]
                for k, own in enumerate(pairs)
            ]
        return level[0]

    def share(self, value: T) -> Future:
        """A value for all workers, which the scheduler keeps."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            return self.client.submit(_given, value, key=_name(_given))

    def fetch(
        self, futures: Sequence[Future], leaves: Sequence[Future] = (), first: int = 0
    ) -> list[Any]:
        """The results, in order. An error names the partition: `leaves` are those that know it,
        and `first` is the number of the first.
        """
        self._finish(futures)
        for k, leaf in enumerate(leaves or futures, start=first):
            if leaf.status == "error":
                raise _named(leaf.exception(), f"partition {k}: ")
        try:
            return list(self.client.gather(list(futures)))
        except _LOST as error:
            raise self._gone() from error

    def take(self, future: Future) -> Any:
        """One result that is not of a partition."""
        self._finish([future])
        if future.status == "error":
            raise _named(future.exception(), "")
        return self.fetch([future])[0]

    def total(
        self, answer: Callable[..., Any], plus: Callable[[Any, Any], Any], parts: Sequence[Future],
        vectors: Sequence[Any], *rest: Any,
    ) -> Any:  # fmt: skip
        """The sum of answer(part, vectors, *rest), with the vectors sent to every worker once."""
        for left in reversed(range(TRIES)):
            try:
                held = [self.share(own) for own in vectors]
                leaves = self.map(answer, parts, held, *rest)
                return self.fetch([self.tree(plus, leaves)], leaves)[0]
            except (ClusterError, *_LOST) as error:
                if not left or not self._alive():
                    raise self._gone() from error
        raise AssertionError("unreachable")

    def _finish(self, futures: Sequence[Future]) -> None:
        """Wait until all are finished; refuse to wait for a cluster that cannot finish them."""
        alone, idle = time.monotonic(), 0
        while idle < IDLE:
            try:
                wait(list(futures), timeout=PAUSE)
                return
            except TimeoutError:
                work = self._work()
            except (CancelledError, AsyncCancelledError) as error:
                raise self._gone() from error
            if work:
                alone = time.monotonic()
            elif time.monotonic() - alone > self.timeout:
                raise ClusterError(
                    f"the cluster has had no worker for {self.timeout:g} s; start some, or give a "
                    "longer timeout"
                ) from None
            # Tasks whose data went with a worker, and have no recipe, wait without end.
            idle = idle + 1 if work and not any(work.values()) else 0
        raise self._gone()

    def _work(self) -> dict[str, Any]:
        """What each worker has to do; empty where the scheduler does not answer."""
        with suppress(*_LOST):
            return dict(self.client.processing())
        return dict.fromkeys(self.workers(), ())

    def workers(self) -> dict[str, int]:
        """The threads of every worker; empty where the scheduler does not answer."""
        with suppress(*_LOST):
            return dict(self.client.nthreads())
        if not self._alive():
            raise self._gone()
        return {}

    @contextmanager
    def talking(self) -> Iterator[None]:
        """Report errors during the loss of the cluster as a `ClusterError`."""
        try:
            yield
        except Exception as error:
            if isinstance(error, ClusterError) or self._alive():
                raise
            raise self._gone() from error

    def _alive(self) -> bool:
        return self.client.status == "running"

    def _gone(self) -> ClusterError:
        if self._alive():
            return ClusterError(
                "results were lost with their workers and cannot be computed again, because "
                "scattered "
                "data have no recipe: give files, bags or delayed partitions"
            )
        return ClusterError(
            "the cluster is gone: its scheduler does not answer any more; the estimator is "
            "unchanged"
        )


def _given(value: T) -> T:
    return value


def _name(function: Callable[..., Any]) -> str:
    """The beginning of keys, which dashboards show."""
    return f"chordal_{function.__name__.strip('_')}-{uuid4().hex}"


def _named(error: BaseException, where: str) -> BaseException:
    """The error of a task in terms of its partition; solvers know some errors by their type."""
    if isinstance(error, (InfeasibleError, OverflowError)):
        return error
    if isinstance(error, KilledWorker):
        return ClusterError(
            f"{where}several workers died while they worked on it, perhaps for lack of "
            "memory; use smaller partitions"
        )
    kind = type(error) if type(error) in _KINDS else RuntimeError
    named = kind(f"{where}{error}" if kind is not RuntimeError else f"{where}{error!r}")
    named.__cause__ = error
    return named
