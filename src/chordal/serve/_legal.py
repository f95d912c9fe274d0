"""Whether labels are legal tags of a scheme, for many sequences at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from chordal._schemes import SCHEMES, split_tag

Ints = NDArray[np.int64]


class Legal:
    """Tables over the classes of a model: what may follow what, come first, and come last.

    >>> legal = Legal(["B-X", "I-X", "O"], "bio")
    >>> legal.broken(np.array([0, 1, 2, 2, 1]), np.array([0, 3, 5])).tolist()
    [1]
    """

    def __init__(self, labels: Sequence[object], scheme: str) -> None:
        allows, tags = SCHEMES[scheme].allows, [split_tag(label) for label in labels]
        self.follows = np.array([[allows(a, b) for b in tags] for a in tags])
        self.first = np.array([allows(None, b) for b in tags])
        self.last = np.array([allows(a, ("O", "")) for a in tags])

    def broken(self, codes: NDArray[np.int32], offsets: Ints) -> Ints:
        """Which sequences, none of them empty, hold a tag that is not legal there."""
        good = np.ones(len(codes), dtype=bool)
        good[1:] = self.follows[codes[:-1], codes[1:]]
        starts = offsets[:-1]
        good[starts] = self.first[codes[starts]]
        good[offsets[1:] - 1] &= self.last[codes[offsets[1:] - 1]]
        if good.all():
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(~np.logical_and.reduceat(good, starts))
