"""The queue of requests: long ones are read in a thread, those that wait are predicted together.

Everything here except `answers` and the reading runs in the event loop, so no lock is needed. While
a batch is processed, the next one gathers: the busier the server, the larger its batches.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from chordal.serve._metrics import Metrics
from chordal.serve._predicting import Task, answers
from chordal.serve._refusal import Refusal
from chordal.serve.limits import Limits

#: Tokens and inputs that are predicted in the event loop: to wake a thread would take longer.
FEW = 256

T = TypeVar("T")

Answer = Callable[[Sequence[Task], float | None], list[bytes | Refusal]]


@dataclass(eq=False, slots=True)
class Job(Task):
    """A task, and the request that waits for it."""

    size: int
    deadline: float
    waiting: asyncio.Future[bytes] = field(repr=False)


class Queue:
    """Jobs that wait, and the threads that take them."""

    def __init__(self, limits: Limits, metrics: Metrics, answer: Answer = answers) -> None:
        self.limits, self.metrics, self._answer = limits, metrics, answer
        self._waiting: deque[Job] = deque()
        self._working: set[Job] = set()
        self._reading: set[asyncio.Future[Any]] = set()
        # One request at a time: what a long one becomes takes far more memory than its bytes.
        self._reader = ThreadPoolExecutor(1, "chordal-read")
        self._busy = 0  # threads
        self._woken = False
        self._closed = False
        self._pool: ThreadPoolExecutor | None = None

    def __len__(self) -> int:
        return len(self._reading) + len(self._waiting) + len(self._working)

    async def read(self, work: Callable[[], T], deadline: float) -> T:
        """What a thread reads from a long request; raises Refusal as `answer` does."""
        self.check_room()
        loop = asyncio.get_running_loop()
        reading = loop.run_in_executor(self._reader, work)
        self._reading.add(reading)
        self.metrics.queued(len(self))
        try:
            await asyncio.wait({reading}, timeout=deadline - loop.time())
            if reading.cancelled():
                raise stopping()
            if not reading.done():
                raise self._late()
            return reading.result()
        finally:
            reading.cancel()  # if it has not begun, it never will
            self._reading.discard(reading)
            self.metrics.queued(len(self))

    async def answer(self, task: Task, deadline: float) -> bytes:
        """Wait for the answer to a task; raises Refusal if there is no room, or no time."""
        self.check_room()
        loop = asyncio.get_running_loop()
        question = task.question
        job = Job(task.loaded, question, question.size, deadline, loop.create_future())
        self._waiting.append(job)
        self.metrics.queued(len(self))
        timer = loop.call_at(deadline, self._expire, job)
        if not self._woken:  # when all that has arrived by now has been read
            self._woken = True
            loop.call_soon(self._take)
        try:
            return await job.waiting
        finally:
            timer.cancel()

    def check_room(self) -> None:
        """Refuse a request if too many wait already, or the server is stopping."""
        if self._closed:
            raise stopping()
        if len(self) >= self.limits.max_queue:
            message = f"{len(self)} requests are waiting; try again later"
            raise Refusal(429, message, retry_after=1)

    def close(self) -> None:
        """Refuse what still waits, and all that comes."""
        self._closed = True
        for job in (*self._waiting, *self._working):
            _finish(job, stopping())
        self._waiting.clear()
        for reading in self._reading:
            reading.cancel()
        self._reader.shutdown(wait=False, cancel_futures=True)
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _expire(self, job: Job) -> None:
        _finish(job, self._late())

    def _late(self) -> Refusal:
        return Refusal(503, f"no answer within {self.limits.timeout:g} s", retry_after=1)

    def _take(self) -> None:
        """Hand out what waits, as far as threads are free."""
        self._woken = False
        while self._waiting and self._busy < self.limits.workers:
            jobs, size = self._batch()
            if not jobs:
                return
            self.metrics.batch(len(jobs), sum(job.question.n_tokens for job in jobs))
            loop = asyncio.get_running_loop()
            left = max(job.deadline for job in jobs) - loop.time()
            if size <= FEW and not self._busy:
                self._done(jobs, self._answer(jobs, left))
                continue
            self._busy += 1
            self._working.update(jobs)
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.limits.workers, "chordal-serve")
            future = loop.run_in_executor(self._pool, self._answer, jobs, left)
            future.add_done_callback(partial(self._back, jobs))

    def _batch(self) -> tuple[list[Job], int]:
        """The first jobs, one at least and not too many tokens; those given up are left out."""
        jobs: list[Job] = []
        size = 0
        while self._waiting:
            job = self._waiting[0]
            if job.waiting.done():  # out of time, or the client has gone
                self._waiting.popleft()
                continue
            if jobs and size + job.size > self.limits.batch_tokens:
                break
            jobs.append(self._waiting.popleft())
            size += job.size
        return jobs, size

    def _back(self, jobs: list[Job], done: asyncio.Future[list[bytes | Refusal]]) -> None:
        self._busy -= 1
        self._working.difference_update(jobs)
        if done.cancelled():
            self._done(jobs, [stopping() for _ in jobs])
        elif error := done.exception():
            for job in jobs:
                if not job.waiting.done():
                    job.waiting.set_exception(error)
        else:
            self._done(jobs, done.result())
        self._take()

    def _done(self, jobs: Sequence[Job], found: Sequence[bytes | Refusal]) -> None:
        for job, answer in zip(jobs, found, strict=True):
            _finish(job, answer)
        self.metrics.queued(len(self))


def _finish(job: Job, answer: bytes | Refusal) -> None:
    if job.waiting.done():
        return
    if isinstance(answer, Refusal):
        job.waiting.set_exception(answer)
    else:
        job.waiting.set_result(answer)


def stopping() -> Refusal:
    """What is said to requests that come too late."""
    return Refusal(503, "the server is stopping", retry_after=1)
