"""A crew of one: tasks on parts run in this process, one after another, when their results are
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

from chordal.estimators._training import steps
from chordal.estimators._training.checkpoint import Checkpoint

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

E = TypeVar("E", bound="BaseCRF")


class Later:
    """A result that is computed when it is asked for, and again the next time unless it is kept."""

    def __init__(self, compute: Callable[[], Any], keep: bool = False) -> None:
        self._compute, self._keep = compute, keep

    def get(self) -> Any:
        """The result."""
        found = self._compute()
        if self._keep:
            self._compute = lambda: found
        return found


class LocalCrew:
    """Runs tasks here; results of parts are not kept, so memory holds about one part at a time.

    Examples
    --------
    >>> crew = LocalCrew()
    >>> parts = crew.start([lambda: [1, 2], lambda: [3]])
    >>> sums = crew.map(sum, parts)
    >>> crew.fetch(sums), crew.take(crew.join(max, sums))
    ([3, 3], 3)
    """

    def start(self, parts: Sequence[Callable[[], Any]]) -> list[Later]:
        """The parts that these functions read."""
        return [Later(own) for own in parts]

    def map(
        self,
        function: Callable[..., Any],
        parts: Sequence[Any],
        *shared: Any,
        each: Sequence[Any] | None = None,
    ) -> list[Later]:
        """`function(part, *shared)` of every part; `each` has a last argument for each part."""
        own = [()] * len(parts) if each is None else [(value,) for value in each]
        return [
            Later(lambda part=part, last=last: function(*map(result, (part, *shared, *last))))  # type: ignore[misc]
            for part, last in zip(parts, own, strict=True)
        ]

    def join(self, function: Callable[..., Any], parts: Sequence[Any], *shared: Any) -> Later:
        """`function(all parts, *shared)`, computed once."""
        return Later(lambda: function(self.fetch(parts), *map(result, shared)), keep=True)

    def tree(self, function: Callable[[Any, Any], Any], parts: Sequence[Any]) -> Later:
        """The parts joined two by two as on a cluster, computed once."""
        return Later(lambda: _folded(function, parts), keep=True)

    def share(self, value: object) -> Any:
        """The value itself."""
        return value

    def fetch(self, handles: Sequence[Any]) -> list[Any]:
        """The results, in order."""
        return [result(own) for own in handles]

    def check(self, handles: Sequence[Any], name: str = "partition") -> None:
        """Nothing: errors are raised where results are asked for."""

    def take(self, handle: Any) -> Any:
        """One result."""
        return result(handle)


def result(handle: Any) -> Any:
    """The result behind a handle, or behind each of a list; other values are themselves."""
    if isinstance(handle, list):
        return [result(own) for own in handle]
    return handle.get() if isinstance(handle, Later) else handle


def _folded(function: Callable[[Any, Any], Any], parts: Sequence[Any]) -> Any:
    """Two neighbours of one height at a time, so that few results are held."""
    found: list[tuple[int, Any]] = []
    for own in parts:
        found.append((0, result(own)))
        while len(found) > 1 and found[-2][0] == found[-1][0]:
            (height, first), (_, second) = found[-2:]
            found[-2:] = [(height + 1, function(first, second))]
    while len(found) > 1:
        (height, first), (_, second) = found[-2:]
        found[-2:] = [(height, function(first, second))]
    return found[0][1]


def train_here(
    model: E,
    parts: Sequence[Any],
    *,
    scaled: str | None = None,
    checkpoint: str | PathLike[str] | Checkpoint | None = None,
) -> E:
    """Train a CRF on parts (X, y, weight); several parts go through a temporary folder.

    The arguments are those of `steps.fit`.
    """
    options: dict[str, Any] = {"checkpoint": checkpoint, "scaled": scaled}
    options["keep"] = model._goes_on()
    if len(parts) == 1:
        return steps.fit(model, *result(parts[0]), **options)
    return steps.fit(model, (tuple(result(own)) for own in parts), None, **options)
