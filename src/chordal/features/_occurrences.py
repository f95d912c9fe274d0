"""Which attributes rows have: what inputs read, and features of attributes map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal.features._base import Floats, Ints
from chordal.structures import offsets_of


@dataclass(frozen=True)
class Occurrences:
    """Which attributes each row has; `values` is None when every value is 1."""

    offsets: Ints  # [n_rows + 1]
    ids: NDArray[np.int32]
    values: Floats | None

    def __getitem__(self, rows: Ints) -> Occurrences:
        """These rows, in this order; a row may occur more than once."""
        counts = np.diff(self.offsets)[rows]
        offsets = offsets_of(counts)
        cells = np.repeat(self.offsets[rows] - offsets[:-1], counts) + np.arange(offsets[-1])
        values = None if self.values is None else self.values[cells]
        return Occurrences(offsets, self.ids[cells], values)


def check_dtypes(arrays: Mapping[str, NDArray[Any]], **expected: type[np.generic]) -> None:
    """Refuse arrays of other types than these."""
    for name, dtype in expected.items():
        if arrays[name].dtype != dtype:
            raise ValueError(f"{name} must be {dtype.__name__}, got {arrays[name].dtype}")
