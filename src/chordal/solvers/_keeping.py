"""How a run is kept between two iterations, and gone on with in another process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from chordal._saved import Kept, Saved, State, Stateful

P = TypeVar("P", bound=Stateful)


class Keeper(Protocol):
    """Keeps the state of a run, such as in a file."""

    def saved(self) -> Saved | None:
        """What a run before left, to go on from."""

    def between(self, n_iter: int, state: Callable[[], State], copy: bool) -> None:
        """Between two iterations: `state` gives all that there is.

        It stays true until `changing`, unless an iteration works in place: then a `copy` of now
        is what a later moment could keep.
        """

    def changing(self) -> None:
        """The state is about to change, and not whole until the next iteration."""

    def interrupted(self) -> None:
        """Ctrl-C: keep the last whole state."""


class Resumable(Kept):
    """What a run keeps is its own state, and that of parts which a solver's loop adds to it.

    A solver makes its parts as for a start, and hands them to `keep`, which gives them the state of
    the run before if there is one. At the head of its loop it calls `between`.
    """

    def __init__(self, keeper: Keeper | None) -> None:
        self._keeper, saved = keeper, None if keeper is None else keeper.saved()
        #: Whether this goes on with a run before.
        self.resumed = saved is not None
        self._parts: dict[str, Stateful] = {}
        self._left: dict[str, Saved] = {}  # of the run before, what is not taken over yet
        if saved is not None:
            parts = saved.part("parts")
            self._left = {name: parts.part(name) for name in parts.names()}
            self._left["run"] = saved.part("run")

    def resume(self) -> None:
        """Take over the state of the run before."""
        self.from_state(self._left.pop("run"))

    def keep(self, name: str, part: P) -> P:
        """The part, which is kept from now on; the first of a name as the run before left it."""
        self._parts[name] = part
        left = self._left.pop(name, None)
        if left is not None:
            part.from_state(left)
        return part

    def between(self, n_iter: int, copy: bool = False) -> None:
        """All that there is stands in this run and its parts: a checkpoint may be written."""
        if self._keeper is not None:
            self._keeper.between(n_iter, self._whole, copy)

    def changing(self) -> None:
        """An iteration has what it needs, and begins to change the state."""
        if self._keeper is not None:
            self._keeper.changing()

    def interrupted(self) -> None:
        """Ctrl-C: the last whole state is kept."""
        if self._keeper is not None:
            self._keeper.interrupted()

    def _whole(self) -> State:
        parts = {name: part.to_state() for name, part in self._parts.items()}
        return {"run": self.to_state(), "parts": parts}


class LoopState(Kept):
    """Of a data class: the values that a loop carries from one iteration to the next."""

    def __init_subclass__(cls) -> None:
        cls.kept = tuple(cls.__annotations__)
