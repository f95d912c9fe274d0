"""What inputs of arrays share: columns that are numbered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from numpy.typing import NDArray

from chordal._validate import check_number
from chordal.features._base import Input

A = TypeVar("A", bound="ArrayInput")


class ArrayInput(Input):
    """Sequences given as arrays or matrices [length, n_columns]."""

    def __init__(self, n_columns: int) -> None:
        self._n_columns = n_columns

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return self._n_columns

    def name(self, column: int) -> str:
        """What users call a column."""
        return f"x{column}"

    def facts(self) -> dict[str, Any]:
        """What a model file keeps besides arrays."""
        return {"n_columns": self.n_columns}

    @classmethod
    def from_arrays(
        cls: type[A], facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> A:
        """What a model file holds, checked."""
        check_number("n_columns", facts["n_columns"], integer=True)
        return cls(facts["n_columns"])
