"""Vectors: arrays of numbers among the attributes of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal.features._base import Input, RowFeatures, SeenRows, WeightKeys
from chordal.features.arrays import DenseFeatures
from chordal.features.batch import Ints, Rows, Vectors
from chordal.structures import offsets_of


@final
class VectorInput(Input):
    """Arrays in the dicts of tokens: those of a token side by side are its row.

    Every name has a fixed width. A token without the array counts as zeros.

    Parameters
    ----------
    widths : dict of str to int, optional
        The known names, in the order of their columns.

    Examples
    --------
    >>> source = VectorInput()
    >>> X = [[{"word": "in"}, {"word": "Paris", "vec": np.array([0.5, 2.0])}]]
    >>> source.read(X, grow=True).data
    array([[0. , 0. ],
           [0.5, 2. ]])
    >>> source.name(1)
    'vec:1'
    """

    def __init__(self, widths: Mapping[str, int] | None = None) -> None:
        self.widths = dict(widths or {})

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return sum(self.widths.values())

    def name(self, column: int) -> str:
        """What users call a column."""
        for key, width in self.widths.items():
            if column < width:
                return f"{key}:{column}"
            column -= width
        raise IndexError("there is no such column")

    def read(self, X: Sequence[Any], grow: bool) -> Rows:
        """Read a batch of sequences; `grow` lets new names in."""
        *_, lengths, blocks = _kernels.Vocabulary().read(X, grow=False)
        return self.gathered(Vectors(lengths, blocks), grow)

    def gathered(self, vectors: Vectors, grow: bool) -> Rows:
        """The arrays of a batch as rows; `grow` lets new names in."""
        for name, rows, numbers in vectors.blocks:
            if grow:
                self.widths.setdefault(name, numbers.shape[1])
            self._check(vectors, name, rows, numbers.shape[1])
        n, blocks = int(vectors.lengths.sum()), vectors.blocks
        if len(blocks) == 1 and blocks[0][2].shape == (n, self.n_columns):
            return Rows(vectors.lengths, blocks[0][2])
        narrow = all(numbers.dtype == np.float32 for _, _, numbers in blocks)
        data = np.zeros((n, self.n_columns), dtype=np.float32 if narrow else np.float64)
        first = dict(zip(self.widths, offsets_of(list(self.widths.values())), strict=False))
        for name, rows, numbers in blocks:
            data[rows, first[name] : first[name] + numbers.shape[1]] = numbers
        return Rows(vectors.lengths, data)

    def _check(self, vectors: Vectors, name: str, rows: Ints, width: int) -> None:
        if name not in self.widths:
            known = ", ".join(map(repr, self.widths))
            raise ValueError(
                f"{vectors.place(rows[0])} has the array {name!r}, which was not in the training "
                f"data: the model reads {known}"
            )
        if width != self.widths[name]:
            raise ValueError(
                f"the array {name!r} in {vectors.place(rows[0])} must have {self.widths[name]} "
                f"numbers as in training, got {width}"
            )

    def features_of(
        self,
        seen: SeenRows,
        n_outputs: int,
        pairs: str = "seen",
        min_freq: int = 0,
        known: WeightKeys | None = None,
    ) -> RowFeatures:
        """The linear map for rows with these columns."""
        return DenseFeatures(self.n_columns, n_outputs)

    def facts(self) -> dict[str, Any]:
        """What a model file keeps besides arrays."""
        return {"names": list(self.widths), "widths": list(self.widths.values())}

    @classmethod
    def from_arrays(
        cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> VectorInput:
        """What a model file holds, checked."""
        names, widths = facts["names"], facts["widths"]
        if not isinstance(names, list) or not isinstance(widths, list) or not names:
            raise ValueError("vectors must have lists of names and widths")
        if len(names) != len(widths):
            raise ValueError("vectors must have a width for every name")
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise ValueError("vectors must have names that are str and differ")
        if not all(type(width) is int and 0 < width < 2**31 for width in widths):
            raise ValueError("vectors must have widths that are whole numbers above 0")
        return cls(dict(zip(names, widths, strict=True)))
