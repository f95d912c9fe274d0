"""What runs the tasks of an evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


class Execution(ABC):
    """Runs independent tasks; results come back in the order of the items."""

    n_jobs: int

    @abstractmethod
    def map(self, task: Callable[[S], T], items: Iterable[S]) -> list[T]:
        """Run task(item) for every item."""

    @abstractmethod
    def __enter__(self) -> Execution:
        """Hold what the execution needs until the block ends."""

    @abstractmethod
    def __exit__(self, *error: object) -> None:
        """Release what the execution holds."""
