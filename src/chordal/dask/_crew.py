"""Workers of a Dask cluster as a crew: tasks where the data are, and sums in a tree."""

from __future__ import annotations

import time
import warnings
from asyncio import CancelledError as AsyncCancelledError
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from distributed import Client, Future, KilledWorker, default_client, wait

from chordal._container import FileError
from chordal._errors import InfeasibleError, UnsupportedError
from chordal._estimator import Estimator
from chordal._optional import installed, missing
from chordal.dask._tree import Nodes, corner, cuts, fold

T = TypeVar("T")

PAUSE = 1.0  # seconds between two looks at a cluster that works
IDLE = 5  # looks in a row at workers that have nothing to do, while results are waited for
TRIES = 20  # of an evaluation whose data went with a worker
FEW = 4  # groups that hear the vectors from the client, which adds up what they say

#: What a lost worker, a lost connection or a lost scheduler does to a call.
_LOST = (CancelledError, AsyncCancelledError, TimeoutError, OSError)

#: Kinds of errors of a task that reach the caller, with the partition's number before the text.
_KINDS = (UnsupportedError, ValueError, TypeError, NotImplementedError)


class ClusterError(RuntimeError):
    """The cluster is gone, or has had no worker for too long."""


class LostError(ClusterError):
    """Results went with their workers; if they have a recipe, another try computes them again."""


class PartError(Exception):
    """The error of a part, in terms of its number, on its way from the worker of its group."""


def client_of(given: Client | None) -> Client:
    """The given client, or the last one that was created."""
    if given is not None:
        if not isinstance(given, Client):
            raise TypeError(
                f"client must be a distributed.Client, got {type(given).__name__}; write Client(…) "
                "around the address of a scheduler or a cluster"
            )
        return given
    try:
        return default_client()
    except ValueError:
        raise ValueError(
            "chordal.dask needs a cluster: create a distributed.Client first, or give client="
        ) from None


class Group(NamedTuple):
    """Parts in a row that one worker holds as one result."""

    parts: Future  # of a list
    first: int  # the number of the first of them
    last: int  # and of the one after them

    @property
    def named(self) -> str:
        """For errors."""
        if self.last - self.first == 1:
            return f"partition {self.first}"
        return f"partitions {self.first} to {self.last - 1}"


class DaskCrew:
    """Runs tasks on the workers of a client; results stay where they were computed.

    Every result, including weights, has its recipe in Dask's graph, so the scheduler computes it
    again if its worker is lost. `Client.scatter` would keep no recipe, and with broadcast=True it
    may wait forever for a worker that dies.

    Parts that are asked repeatedly are settled first: each thread of the cluster gets a group of
    them. A question is one task per group, since every task has its latency. Up to a few groups
    get the weights of an evaluation with the question. If there are more, one worker gets them,
    and the others copy them from each other.

    Parameters
    ----------
    client : distributed.Client
    timeout : float
        Seconds to wait if there is no worker.
    dtype : {"float64", "float32"}
        Precision of gradients on their way.
    """

    def __init__(self, client: Client, timeout: float = 120.0, dtype: str = "float64") -> None:
        self.client, self.timeout, self.dtype = client, timeout, dtype
        self._answers: list[Future] = []

    def require(self, estimator: Estimator) -> None:
        """Raise an error if a worker lacks a package of the estimator: it would die."""
        for package in estimator.packages:
            found = self.client.run(installed, package, on_error="ignore")
            lacking = [worker for worker, there in found.items() if there is False]
            if lacking:
                raise missing(package, f"{type(estimator).__name__} on worker {lacking[0]}")

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

    def fetch(self, futures: Sequence[Future], first: int = 0) -> list[Any]:
        """The results, in order. An error names the partition; they begin with this number."""
        self._finish(futures)
        self._check(futures, first=first)
        try:
            return list(self.client.gather(list(futures)))
        except _LOST as error:
            raise self._gone() from error

    def check(self, futures: Sequence[Future], name: str = "partition") -> None:
        """Wait for results, and raise the error of the first one that has one."""
        self._finish(futures)
        self._check(futures, name=name)

    def take(self, future: Future) -> Any:
        """One result that is not of a partition."""
        self._finish([future])
        if future.status == "error":
            raise _named(future.exception(), "")
        return self.fetch([future])[0]

    def settle(self, parts: Sequence[Future], sizes: Sequence[float]) -> list[Group]:
        """Groups of parts for `total`, about equal in size, as many as there are threads.

        It waits until they are made.
        """
        n_threads = max(1, sum(self.workers().values()))
        name = _name(_grouped)
        groups = [
            Group(self.client.submit(_grouped, list(parts[a:b]), key=f"{name}-{a}"), a, b)
            for a, b in cuts(sizes, n_threads)
        ]
        self._finish([own.parts for own in groups])
        self._check(parts)
        self._check([own.parts for own in groups], groups)
        return groups

    def total(
        self, answer: Callable[..., Any], plus: Callable[[Any, Any], Any], groups: Sequence[Group],
        vectors: Sequence[Any], *rest: Any, first: int | None = None,
    ) -> Any:  # fmt: skip
        """The sum of answer(part, vectors, *rest), with the vectors sent to every worker once.

        With `first`, only the first `first` parts count.
        """
        n = groups[-1].last if first is None else first
        asked = [own for own in groups if own.first < n]
        for left in reversed(range(TRIES)):
            try:
                return self._asked(plus, asked, n, vectors, (answer, *rest))
            except (LostError, *_LOST) as error:
                if not left or not self._alive():
                    raise self._gone() from error
        raise AssertionError("unreachable")

    def _asked(
        self,
        plus: Callable[[Any, Any], Any],
        groups: Sequence[Group],
        n: int,
        vectors: Sequence[Any],
        question: tuple[Any, ...],
    ) -> Any:
        name = _name(question[0])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            given = vectors if len(groups) <= FEW else [self.share(own) for own in vectors]
            rows = [(own.parts, own.first, n, plus, given, *question) for own in groups]
            keys = [f"{name}-{k}" for k in range(len(groups))]
            found = self.client.map(_corner, *map(list, zip(*rows, strict=True)), key=keys)
        # The client sends a message every 10 ms at most: those about the last answers go after.
        self._answers = found
        level = found
        while len(level) > FEW:
            level = [
                self.client.submit(
                    _folded, level[k : k + FEW], n, plus, key=f"{name}-{len(level)}-{k}"
                )
                for k in range(0, len(level), FEW)
            ]
        self._finish(level)
        self._check(found, groups)
        nodes: Nodes[Any] = {}
        for own in self.fetch(level):
            nodes |= own
        (total,) = fold(nodes, n, plus).values()
        return total

    def _check(
        self,
        futures: Sequence[Future],
        groups: Sequence[Group] = (),
        first: int = 0,
        name: str = "partition",
    ) -> None:
        """Raise the error of the first part, or group of parts, that has one."""
        for k, own in enumerate(futures):
            if own.status == "error":
                where = groups[k].named if groups else f"{name} {first + k}"
                raise _named(own.exception(), f"{where}: ")

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
                    "longer timeout. Workers also die if they cannot import the modules of classes "
                    "and functions that you give"
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
            return LostError(
                "results were lost with their workers and cannot be computed again, because "
                "scattered data have no recipe: give files, bags or delayed partitions"
            )
        return ClusterError(
            "the cluster is gone: its scheduler does not answer any more; the estimator is "
            "unchanged"
        )


def _given(value: T) -> T:
    return value


def _grouped(parts: list[T]) -> list[T]:
    return parts


def _corner(
    parts: Sequence[Any], first: int, n: int, plus: Callable[[Any, Any], Any],
    vectors: Sequence[Any], answer: Callable[..., Any], *rest: Any,
) -> Nodes[Any]:  # fmt: skip
    """The part of the sum that a group has, on its worker."""

    def told(k: int, part: Any) -> Any:
        try:
            return answer(part, vectors, *rest)
        except Exception as error:
            raise PartError(_named(error, f"partition {k}: ")) from error

    return corner(parts, first, n, plus, told)


def _folded(found: Sequence[Nodes[Any]], n: int, plus: Callable[[Any, Any], Any]) -> Nodes[Any]:
    return fold({at: own for nodes in found for at, own in nodes.items()}, n, plus)


def _name(function: Callable[..., Any]) -> str:
    """The beginning of keys, which dashboards show."""
    return f"chordal_{function.__name__.strip('_')}-{uuid4().hex}"


def _named(error: BaseException, where: str) -> BaseException:
    """The error of a task in terms of its partition; solvers know some errors by their type."""
    if isinstance(error, (InfeasibleError, OverflowError)):
        return error
    if isinstance(error, PartError):
        named: BaseException = error.args[0]
        return named
    if isinstance(error, KilledWorker):
        return ClusterError(
            f"{where}several workers died while they worked on it, perhaps for lack of "
            "memory; use smaller partitions"
        )
    if not where:
        return error
    kind = next((own for own in _KINDS if isinstance(error, own)), None)
    if isinstance(error, FileError):
        named = error.prefixed(where)
    elif kind is not None:
        named = kind(f"{where}{_text(error)}")
    else:  # not an OSError, which would be that of a connection
        named = RuntimeError(where + ": ".join(filter(None, (type(error).__name__, _text(error)))))
    named.__cause__ = error
    return named


def _text(error: BaseException) -> str:
    """The text of an error. Some, such as those of decoding, lose it on their way through Dask."""
    text = str(error)
    if text in ("", "None"):
        with suppress(Exception):
            return str(type(error)(*error.args))
    return text
