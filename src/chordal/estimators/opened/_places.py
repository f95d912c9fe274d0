"""How users name the variables of an example: a position, a pixel, a type and a number, a label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chordal.estimators._crf import BaseCRF
from chordal.features import Batch

#: What names a variable: a number; a pixel's coordinates; (type, number); the name of a label.
Place = Any


@dataclass(frozen=True)
class Places:
    """The variables of one example by the names that users have for them.

    word : what a variable is called, such as "position"
    shape : of an image; else empty
    names : of the variables, where they have names: labels, or pairs (type, number)
    """

    word: str
    n: int
    shape: tuple[int, ...] = ()
    names: Sequence[Any] = ()

    @classmethod
    def of(cls, model: BaseCRF, batch: Batch, x: Any, rows: bool) -> Places:
        """Those of the one example of a batch; `rows` is whether examples are rows of a table."""
        n = int(batch.sizes[0])
        if batch.kinds is not None:
            types, kinds = model.labels_.types, batch.kinds
            first = np.searchsorted(kinds, np.arange(len(types)))  # they stand type after type
            pairs = [(types[kind], v - int(first[kind])) for v, kind in enumerate(kinds)]
            return cls("node", n, names=pairs)
        if hasattr(model, "label_names_"):
            return cls("label", n, names=model.label_names_.tolist())
        if hasattr(model, "neighbours"):
            return cls("pixel", n, shape=np.shape(x)[:-1])
        if rows:
            return cls("row", n)
        return cls("position" if batch.is_chain else "node", n)

    def name(self, variable: int) -> Place:
        """What users call a variable."""
        if self.shape:
            return tuple(int(k) for k in np.unravel_index(variable, self.shape))
        return self.names[variable] if len(self.names) else variable

    def number(self, at: Place) -> int:
        """The number of the variable that users call this; negative numbers count from the end."""
        if len(self.names):
            given = tuple(at) if isinstance(at, list) else at
            if getattr(given, "ndim", 0) or given not in self.names:
                some = ", ".join(map(repr, list(self.names)[:10]))
                more = ", …" if len(self.names) > 10 else ""
                raise ValueError(f"at must be one of {some}{more}; got {at!r}")
            return list(self.names).index(given)
        if self.shape:
            return int(np.ravel_multi_index(self._pixel(at), self.shape))
        if isinstance(at, (bool, np.bool_)) or not isinstance(at, (int, np.integer)):
            raise TypeError(f"at must be the number of a {self.word}, got {at!r}")
        if not -self.n <= at < self.n:
            raise IndexError(
                f"at must be the number of a {self.word} from 0 to {self.n - 1}, got {at}"
            )
        return int(at) % self.n

    def _pixel(self, at: Place) -> tuple[int, ...]:
        axes = len(self.shape)
        whole = isinstance(at, (tuple, list)) and all(isinstance(k, (int, np.integer)) for k in at)
        if not whole or len(at) != axes:
            raise TypeError(f"at must be the {axes} coordinates of a pixel, got {at!r}")
        if not all(-n <= k < n for k, n in zip(at, self.shape, strict=True)):
            raise IndexError(f"at must be a pixel of an image of shape {self.shape}, got {at!r}")
        return tuple(int(k) % n for k, n in zip(at, self.shape, strict=True))
