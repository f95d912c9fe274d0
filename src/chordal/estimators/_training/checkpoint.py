"""Checkpoints: the state of a fit in a file, and how a fit resumes from it."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chordal._atomic import remove_leftovers
from chordal._container import CHECKPOINT, CheckpointError, read, write
from chordal._saved import Saved, SavedError, State, Stateful, copied, flattened, restored
from chordal._validate import check_number
from chordal.estimators._training.fingerprint import check_same_fit
from chordal.solvers import Solver

Path = str | os.PathLike[str]

INTERVAL = 10  # iterations, if nothing else is asked for


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; training continues."""


@dataclass(frozen=True)
class Checkpoint:
    """Where a fit saves its state, and how often.

    The file is replaced as a whole, so there is always a valid one. A fit with the same data and
    parameters resumes from it and reaches the same weights, bit for bit, as an uninterrupted fit.

    Parameters
    ----------
    path : str or path
        The file to write.
    interval : int, optional
        Write every this many iterations; default 10, unless `minutes` is given.
    minutes : float, optional
        Write after the first iteration that ends this many minutes after the last write. With both,
        whichever comes first.

    Examples
    --------
    >>> import os, tempfile
    >>> from chordal import ChainCRF
    >>> X, y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", "N"]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = Checkpoint(os.path.join(folder, "run.checkpoint"), interval=2)
    ...     first = ChainCRF(max_iter=5, tol=0).fit(X, y, checkpoint=kept)
    ...     longer = ChainCRF(max_iter=9, tol=0).fit(X, y, checkpoint=kept)  # goes on
    >>> bool((longer.weights_ == ChainCRF(max_iter=9, tol=0).fit(X, y).weights_).all())
    True
    """

    path: Path
    interval: int | None = None
    minutes: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.path, (str, os.PathLike)):
            raise TypeError(f"checkpoint must be a path or a Checkpoint, got {self.path!r}")
        if self.interval is not None:
            check_number("interval", self.interval, minimum=1, integer=True)
        if self.minutes is not None:
            check_number("minutes", self.minutes)


class CheckpointFile:
    """The file of a checkpoint: checked before the fit, and written when it is due."""

    def __init__(self, asked: Path | Checkpoint, interval: int = INTERVAL) -> None:
        self._asked = asked if isinstance(asked, Checkpoint) else Checkpoint(asked)
        if self._asked.interval is None and self._asked.minutes is None:
            self._asked = replace(self._asked, interval=interval)
        self.path = os.fspath(self._asked.path)
        if not self.path:
            raise ValueError("checkpoint must be the path of a file, got an empty one")
        if os.path.isdir(self.path):
            raise IsADirectoryError(f"checkpoint must be a file, but {self.path} is a folder")
        if self.exists and not os.path.isfile(self.path):
            raise ValueError(f"checkpoint must be a file, but {self.path} is a pipe or a device")
        folder = os.path.dirname(os.path.abspath(self.path))
        if not os.path.isdir(folder):
            raise FileNotFoundError(
                f"the folder of checkpoint {self.path} does not exist: create it"
            )
        remove_leftovers(self.path)  # of a fit that was killed while it wrote
        self.written(0)

    @property
    def exists(self) -> bool:
        """Whether an earlier fit has left it."""
        return os.path.exists(self.path)

    def written(self, n_iter: int) -> None:
        """Note that the state after this iteration is in the file."""
        self._written, self._at = n_iter, time.monotonic()

    def is_due(self, n_iter: int) -> bool:
        """Whether to write the state after this iteration."""
        every, minutes = self._asked.interval, self._asked.minutes
        due = every is not None and n_iter - self._written >= every
        return due or (minutes is not None and time.monotonic() - self._at >= 60.0 * minutes)

    def write(self, n_iter: int, write: Callable[[str], None]) -> None:
        """Let a function write the state after this iteration; warn if it cannot."""
        try:
            write(self.path)
        except OSError as error:
            there = "the one before is" if self.exists else "none is"
            warnings.warn(
                f"the checkpoint of iteration {n_iter} was not written ({error}); "
                f"training continues, and {there} there",
                CheckpointWarning,
                stacklevel=3,
            )
        self.written(n_iter)  # after a failure, too: a full disk is not tried again each time


class Checkpointer:
    """Writes the state of a fit between iterations, and reads that of an interrupted fit.

    The solver's run reports to it. `parts` are the other objects with state: the monitor of the
    fit, and inference methods that start from their last result.
    """

    def __init__(self, asked: Path | Checkpoint) -> None:
        self._file = CheckpointFile(asked)
        self.path = self._file.path
        self.parts: dict[str, Stateful] = {}
        self.urgent = False  # write before the next iteration
        self._in_place = False  # parts change in the course of an iteration
        self._seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        self._fingerprint: State = {}
        self._left: Saved | None = None  # what the fit before left
        if self._file.exists:
            self._open()
        self._file.written(self._iteration)
        self._state: Callable[[], State] | None = None  # of now, or as long as nothing changes
        self._copy: State | None = None

    _iteration = 0

    def _open(self) -> None:
        facts, arrays = read(self.path, CHECKPOINT)
        try:
            known = Saved(facts)
            self._seed, self._iteration = known.integer("seed"), known.integer("iteration")
            self._before: Mapping[str, Any] = facts["fingerprint"]
            if not isinstance(self._before, dict):
                raise SavedError("fingerprint must have named values")
            self._left = Saved(restored(facts.get("state"), arrays))
        except (SavedError, KeyError, RecursionError) as error:
            raise CheckpointError(self.path, f"not a valid checkpoint: {error}") from error

    @property
    def iteration(self) -> int | None:
        """The iteration after which the file was written; None for a new fit."""
        return None if self._left is None else self._iteration

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Name the file in errors of a fit that cannot resume."""
        try:
            yield
        except SavedError as error:
            raise CheckpointError(self.path, f"a fit cannot resume from it: {error}") from error

    def seeded(self, solver: Solver) -> Solver:
        """The solver with the seed of the file, if the user gave none."""
        if not solver.seeded:
            return solver
        made = copy(solver)
        made.random_state = self.generator()
        return made

    def generator(self) -> np.random.Generator:
        """A generator with the seed of the file."""
        return np.random.default_rng(self._seed)

    def check(self, fingerprint: State) -> None:
        """Raise an error for a checkpoint of other data or settings; it says what differs."""
        self._fingerprint = fingerprint
        if self._left is None:
            return
        check_same_fit(self.path, self._before, fingerprint)

    def keep(self, name: str, part: Stateful, in_place: bool = False) -> None:
        """Also save the state of this object, and restore it from the file.

        An object that works `in_place` changes during an iteration.
        """
        self.parts[name], self._in_place = part, self._in_place or in_place
        left = self.part_of_before(name)
        if left is not None:
            part.from_state(left)

    def part_of_before(self, name: str) -> Saved | None:
        """A part of the stored state, if the file has it."""
        if self._left is None or name not in self._left.names():
            return None
        return self._left.part(name)

    # What solvers ask.

    def saved(self) -> Saved | None:
        """The stored run, from which the first run of this fit resumes."""
        found = self.part_of_before("solver")
        self._left = None
        return found

    def between(self, n_iter: int, state: Callable[[], State], copy: bool) -> None:
        """Write the file if it is due."""
        self._iteration, self._copy, self._state = n_iter, None, state
        if self._file.is_due(n_iter) or self.urgent:
            self._write(self._all(state))
            self._state = None  # what is in the file
        elif copy or self._in_place:
            self._copy, self._state = copied(self._all(state)), None

    def changing(self) -> None:
        """The state is incomplete until the next iteration."""
        self._state = None

    def interrupted(self) -> None:
        """Ctrl-C: write the last complete state, unless the file already has it."""
        if self._state is not None:
            self._write(self._all(self._state))
        elif self._copy is not None:
            self._write(self._copy)
        self._state = self._copy = None

    def _all(self, state: Callable[[], State]) -> State:
        parts = {name: part.to_state() for name, part in self.parts.items()}
        return {"solver": state(), **parts}

    def _write(self, state: State) -> None:
        facts, arrays = flattened(state)
        about = {"fingerprint": self._fingerprint, "seed": self._seed}
        about |= {"iteration": self._iteration, "state": facts}
        self._file.write(self._iteration, lambda path: write(path, about, arrays, CHECKPOINT))
        self.urgent = False
