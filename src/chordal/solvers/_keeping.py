"""Saving the state of a run between iterations, and resuming it in another process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from chordal._saved import Kept, Saved, State, Stateful

P = TypeVar("P", bound=Stateful)


class Keeper(Protocol):
    """Saves the state of a run, for example to a file."""

    def saved(self) -> Saved | None:
        """The state of an interrupted run to resume from."""

    def between(self, n_iter: int, state: Callable[[], State], copy: bool) -> None:
        """Called between two iterations; `state` returns the complete state.

        The state is valid until `changing`. If an iteration works in place, only a `copy` made now
        can be saved later.
        """

    def changing(self) -> None:
        """The state is about to change; it is incomplete until the next iteration."""

    def interrupted(self) -> None:
        """Ctrl-C: save the last complete state."""


class Resumable(Kept):
    """A run whose state can be saved: its own, and that of objects that a solver's loop adds.

    A solver creates its objects as for a new run and passes them to `keep`, which restores their
    state if a run is resumed. At the start of each iteration it calls `between`.
    """

    def __init__(self, keeper: Keeper | None) -> None:
        self._keeper, saved = keeper, None if keeper is None else keeper.saved()
        #: Whether this run was resumed.
        self.resumed = saved is not None
        self._parts: dict[str, Stateful] = {}
        self._left: dict[str, Saved] = {}  # of the run before, what is not taken over yet
        if saved is not None:
            parts = saved.part("parts")
            self._left = {name: parts.part(name) for name in parts.names()}
            self._left["run"] = saved.part("run")

    def resume(self) -> None:
        """Restore the state of the interrupted run."""
        self.from_state(self._left.pop("run"))

    def keep(self, name: str, part: P) -> P:
        """Save this object from now on; the first of a name is restored."""
        self._parts[name] = part
        left = self._left.pop(name, None)
        if left is not None:
            part.from_state(left)
        return part

    def between(self, n_iter: int, copy: bool = False) -> None:
        """The state of the run is complete: a checkpoint may be written."""
        if self._keeper is not None:
            self._keeper.between(n_iter, self._whole, copy)

    def changing(self) -> None:
        """An iteration begins to change the state."""
        if self._keeper is not None:
            self._keeper.changing()

    def interrupted(self) -> None:
        """Ctrl-C: save the last complete state."""
        if self._keeper is not None:
            self._keeper.interrupted()

    def _whole(self) -> State:
        parts = {name: part.to_state() for name, part in self._parts.items()}
        return {"run": self.to_state(), "parts": parts}


class LoopState(Kept):
    """A dataclass of the values that a loop carries from one iteration to the next."""

    def __init_subclass__(cls) -> None:
        cls.kept = tuple(cls.__annotations__)
