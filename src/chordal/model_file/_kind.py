"""What a file has to know of the models of one class."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import NDArray

Facts = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


class Kind(ABC):
    """Models of one class as facts, which JSON can hold, and arrays of one dimension; and back."""

    #: The class.
    estimator: ClassVar[type[Any]]
    #: Parameters that hold functions: a file has none, so that they are given again.
    functions: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def to_state(self, model: Any) -> tuple[Facts, Arrays]:
        """What `from_state` needs to make the same fitted model; refuses what no file can hold."""

    @abstractmethod
    def from_state(
        self,
        facts: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        functions: Mapping[str, Any],
    ) -> Any:
        """The model. Whatever a file may hold, it works or is refused: raises ValueError, KeyError
        or TypeError if the parts do not fit together.
        """


class FunctionsError(ValueError):
    """Functions that belong to a model were not given, or they do not fit it."""
