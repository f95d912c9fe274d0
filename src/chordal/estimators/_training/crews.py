"""Crews: who runs tasks on parts of the data, in this process or elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from chordal.potentials import Floats

#: Refers to an object in another process.
Handle = Any


class Tasks(Protocol):
    """Runs tasks where the parts are; results stay there and are referred to by handles."""

    def map(
        self,
        function: Callable[..., Any],
        parts: Sequence[Handle],
        *shared: Any,
        each: Sequence[Any] | None = None,
    ) -> list[Handle]:
        """`function(part, *shared)` of every part; `each` has a last argument for each part."""

    def tree(self, function: Callable[[Any, Any], Any], parts: Sequence[Handle]) -> Handle:
        """The parts joined two by two, by their numbers."""

    def join(self, function: Callable[..., Any], parts: Sequence[Handle], *shared: Any) -> Handle:
        """`function(all parts, *shared)`."""

    def share(self, value: object) -> Handle:
        """A value for all parts."""

    def fetch(self, handles: Sequence[Handle]) -> list[Any]:
        """The results behind the handles of parts, in order; an error names the part."""

    def check(self, handles: Sequence[Handle], name: str = "partition") -> None:
        """Raise the error of the first result that has one, if they are computed elsewhere.

        The error begins with this name and the number of the result.
        """

    def take(self, handle: Handle) -> Any:
        """The result behind one handle that does not belong to a part."""


class Crew(Tasks, Protocol):
    """Also asks parts again and again, as solvers do.

    dtype : precision of gradients that are sent between processes
    """

    dtype: str

    def settle(self, parts: Sequence[Handle], sizes: Sequence[float]) -> list[Handle]:
        """The parts in a form for `total`, which asks them again and again."""

    def total(
        self,
        answer: Callable[..., Any],
        plus: Callable[[Any, Any], Any],
        settled: Sequence[Handle],
        vectors: Sequence[Floats],
        *rest: Any,
        first: int | None = None,
    ) -> Any:
        """The sum of `answer(part, vectors, *rest)` over all parts, or the `first` so many."""
