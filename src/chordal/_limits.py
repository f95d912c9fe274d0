"""Time limits, and what threads take over from the one that starts them.

A thread has a deadline, or none. Kernels look at it as they look for Ctrl-C: a method that has
something to give back returns it, and others raise `TimeLimitError`. What runs in Python asks
`check_time`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import TypeVar

from chordal import _kernels
from chordal._kernels import StopFlag, TimeLimitError

TimeLimitError.__doc__ = "The time limit of an answer is over, and there is nothing to return yet."

T = TypeVar("T")


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """A deadline for the block, in seconds from now; None changes nothing.

    Of nested limits, the nearest deadline counts.

    >>> with time_limit(60.0), time_limit(None), time_limit(3600.0):
    ...     59.0 < seconds_left() <= 60.0
    True
    >>> seconds_left()
    inf
    """
    before = _kernels.deadline()
    mine = inf if seconds is None else _kernels.clock() + seconds
    _kernels.set_deadline(min(before, mine))
    try:
        yield
    finally:
        _kernels.set_deadline(before)


@contextmanager
def no_time_limit() -> Iterator[Callable[[], bool]]:
    """No deadline inside the block: for what has to be done after it, or is worthless in pieces.

    Yields a function that tells whether the deadline outside is past.
    """
    before = _kernels.deadline()
    _kernels.set_deadline(inf)
    try:
        yield lambda: _kernels.clock() >= before
    finally:
        _kernels.set_deadline(before)


def seconds_left() -> float:
    """Seconds to the deadline of this thread, 0 after it; inf if there is none."""
    return max(0.0, _kernels.deadline() - _kernels.clock())


def check_time() -> None:
    """Raise `TimeLimitError` after the deadline."""
    if seconds_left() == 0.0:
        raise TimeLimitError("the time limit is over")


def in_worker(task: Callable[..., T], stop: StopFlag) -> Callable[..., T]:
    """The task for another thread: with the deadline of this one, and ended by `stop.set()`.

    Python gives signals to the main thread alone. It sets the flag when it stops waiting.
    """
    deadline = _kernels.deadline()

    def run(*arguments: object) -> T:
        _kernels.set_deadline(deadline)
        _kernels.attend(stop)
        try:
            return task(*arguments)
        finally:
            _kernels.attend(None)
            _kernels.set_deadline(inf)

    return run


__all__ = [
    "StopFlag",
    "TimeLimitError",
    "check_time",
    "in_worker",
    "no_time_limit",
    "seconds_left",
    "time_limit",
]
