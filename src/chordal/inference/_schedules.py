"""Blocks of a Gibbs sweep (single variables, colours or trees), and chains in threads."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import final

import numpy as np

from chordal import _kernels
from chordal._limits import StopFlag, in_worker
from chordal.inference._answers import Labels
from chordal.inference._sweeps import UNIFORMS, draw, sweep
from chordal.potentials import Potentials

#: Variables below which it does not pay to split a colour between threads.
WORTH_SPLITTING = 4000


class Schedule(ABC):
    """How one chain is swept. Its random numbers do not depend on threads."""

    @abstractmethod
    def advance(
        self, labels: Labels, n_sweeps: int, rng: np.random.Generator, temperature: float = 1.0
    ) -> None:
        """Sweep n times, in place (labels: int32 [n_variables])."""


def _some(n_sweeps: int) -> Iterator[int]:
    """The sweeps in pieces, since each needs a number in memory.

    >>> list(_some(5_000_000))
    [2000000, 2000000, 1000000]
    """
    for first in range(0, n_sweeps, UNIFORMS):
        yield min(UNIFORMS, n_sweeps - first)


@final
class SingleSchedule(Schedule):
    """One variable after another, as they are numbered."""

    def __init__(self, potentials: Potentials) -> None:
        self._potentials = potentials

    def advance(
        self, labels: Labels, n_sweeps: int, rng: np.random.Generator, temperature: float = 1.0
    ) -> None:
        """Sweep over one variable after another."""
        for n in _some(n_sweeps):
            sweep(self._potentials, labels, n, rng, temperatures=np.full(n, temperature))


@final
class ChromaticSchedule(Schedule):
    """One colour after another; variables of a colour share no clique, so threads can share the
    work.
    """

    def __init__(self, potentials: Potentials, n_threads: int) -> None:
        s = potentials.structure
        colour = _kernels.greedy_colours(s.topology, s.incidence)
        self._potentials = potentials
        self._order = np.argsort(colour, kind="stable")
        ends = np.cumsum(np.bincount(colour))[:-1]
        self._colours = np.split(np.arange(len(colour)), ends)
        largest = max((len(places) for places in self._colours), default=0)
        self._n_threads = n_threads if largest >= WORTH_SPLITTING else 1

    def advance(
        self, labels: Labels, n_sweeps: int, rng: np.random.Generator, temperature: float = 1.0
    ) -> None:
        """Sweep over variables of one colour at a time, which share no clique."""
        if self._n_threads == 1:
            for n in _some(n_sweeps):
                sweep(self._potentials, labels, n, rng, self._order, np.full(n, temperature))
            return
        beta = np.full(1, 1.0 / temperature)
        with ThreadPoolExecutor(self._n_threads, thread_name_prefix="chordal") as pool:
            for _ in range(n_sweeps):
                uniform = rng.random(len(self._order))

                def visit(places: np.ndarray, uniform: np.ndarray = uniform) -> None:
                    draw(self._potentials, labels, self._order[places], uniform[places], beta)

                visit_too = in_worker(visit, StopFlag())  # one sweep is soon over
                for places in self._colours:
                    list(pool.map(visit_too, np.array_split(places, self._n_threads)))


@final
class TreeSchedule(Schedule):
    """One forest after another, each drawn jointly given all other variables."""

    def __init__(self, potentials: Potentials) -> None:
        self._potentials = potentials
        s = potentials.structure
        self._blocks = _kernels.greedy_forests(s.topology, s.incidence)

    def advance(
        self, labels: Labels, n_sweeps: int, rng: np.random.Generator, temperature: float = 1.0
    ) -> None:
        """Sweep over forests, each drawn at once."""
        p, size = self._potentials, len(self._blocks)
        at_once = max(1, UNIFORMS // max(1, size))
        scores = p.like(p.unary / temperature, p.tables / temperature).scores
        for first in range(0, n_sweeps, at_once):
            uniform = rng.random(min(at_once, n_sweeps - first) * size)
            _kernels.gibbs_forests(scores, p.structure.incidence, self._blocks, uniform, labels)


class Stopped(Exception):
    """Ends a chain early because another failed, or after Ctrl-C; not an error."""


def in_threads(task: Callable[[int, Callable[[], None]], None], n: int, n_jobs: int) -> None:
    """Call task(k, check) for k = 0 … n − 1, in threads; tasks call check() regularly.

    After Ctrl-C or an error, check() ends the tasks that still run.
    """
    if n_jobs == 1 or n <= 1:
        for k in range(n):
            task(k, lambda: None)
        return
    ended, stop = threading.Event(), StopFlag()

    def check() -> None:
        if ended.is_set():
            raise Stopped

    with ThreadPoolExecutor(min(n, n_jobs), thread_name_prefix="chordal") as pool:
        futures = [pool.submit(in_worker(task, stop), k, check) for k in range(n)]
        try:
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                future.result()
        except BaseException:
            ended.set()
            stop.set()
            wait(futures)
            raise
