"""Examples in parts, few of which are in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from chordal.features.batch import Batch, Ints
from chordal.features.joining import (
    Head,
    fitted_to,
    head_of,
    joined_batches,
    joined_targets,
    outlined,
)
from chordal.structures import offsets_of
from chordal.targets import Target

WINDOW = 300_000  # variables that are gathered at a time, where examples are mixed


class Part(NamedTuple):
    """Some examples and their targets."""

    batch: Batch
    gold: Target


class Piece(NamedTuple):
    """Examples begin..end of all, and a batch that holds them, from example `first` on."""

    batch: Batch
    gold: Target
    first: int
    begin: int
    end: int


class Parts:
    """All examples of a fit.

    Parameters
    ----------
    load : callable
        Part k by its number.
    n : int
        How many parts there are.
    release : callable, optional
        Called when part k is not needed for a while.

    Attributes
    ----------
    outline : Batch
        All examples, but no rows and no lists of cliques; for one part in memory, its batch.
    """

    def __init__(
        self, load: Callable[[int], Part], n: int, release: Callable[[int], None] | None = None
    ) -> None:
        self._load, self._n, self._release = load, n, release
        self._held: tuple[int, Part] | None = None
        heads: list[Head] = []
        for k in range(n):
            heads.append(head_of(load(k).batch))
            self._let_go(k)
        self.outline = outlined(heads)
        self.offsets = offsets_of([len(own.sizes) for own in heads])
        self.in_memory = False

    @classmethod
    def of(cls, batch: Batch, gold: Target) -> Parts:
        """One part that is in memory."""
        made = object.__new__(cls)
        made._load, made._n, made._release = lambda k: Part(batch, gold), 1, None
        made._held, made.outline, made.in_memory = (0, Part(batch, gold)), batch, True
        made.offsets = np.array([0, len(batch.sizes)])
        return made

    @property
    def n_examples(self) -> int:
        """How many examples there are."""
        return int(self.offsets[-1])

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, k: int) -> Part:
        """Part k; the previous one is released."""
        if self._held is None or self._held[0] != k:
            if self._held is not None:
                self._let_go(self._held[0])
            part = self._load(k)
            self._held = (k, Part(fitted_to(part.batch, self.outline), part.gold))
        return self._held[1]

    def __iter__(self) -> Iterator[Part]:
        return (self[k] for k in range(self._n))

    def _let_go(self, k: int) -> None:
        if self._release is not None:
            self._release(k)

    @property
    def batches(self) -> Batches:
        """The parts without targets, for repeated passes."""
        return Batches(self)

    def changed(self, change: Callable[[Batch], Batch]) -> Parts:
        """The same examples with other rows."""
        if self.in_memory:
            batch, gold = self[0]
            return Parts.of(change(batch), gold)
        made, load = copy(self), self._load
        made._held = None

        def changed(k: int) -> Part:
            batch, gold = load(k)
            return Part(change(batch), gold)

        made._load = changed
        return made

    def gold(self) -> Target:
        """The targets of all examples."""
        return joined_targets([part.gold for part in self])

    def runs(self, limits: Iterable[tuple[int, int]]) -> Iterator[Piece]:
        """For each run of examples, begin..end, a batch that holds it."""
        for begin, end in limits:
            k = int(np.searchsorted(self.offsets, begin, side="right")) - 1
            if end <= self.offsets[k + 1]:
                yield Piece(*self[k], int(self.offsets[k]), begin, end)
            else:
                yield Piece(*self.gathered(np.arange(begin, end)), begin, begin, end)

    def mixed(self, order: Ints, limits: Sequence[tuple[int, int]]) -> Iterator[Piece]:
        """For each run of the examples in this order, a batch that holds it.

        Some are gathered at a time, in one pass over the parts from first to last.
        """
        sizes, at = self.outline.sizes[order], 0
        ends = np.array([end for _, end in limits], dtype=np.int64)
        while at < len(limits):
            first = limits[at][0]
            full = np.searchsorted(np.cumsum(sizes[first:]), WINDOW, side="right") + first
            last = len(limits) if self.in_memory else int(np.searchsorted(ends, full, "right"))
            last = max(last, at + 1)
            batch, gold = self.gathered(order[first : limits[last - 1][1]])
            for begin, end in limits[at:last]:
                yield Piece(batch, gold, first, begin, end)
            at = last

    def gathered(self, examples: Ints) -> Part:
        """These examples in this order, copied; parts are passed over from first to last."""
        if self._n == 1:
            batch, gold = self[0]
            return Part(batch.reordered(examples), gold[batch.positions(examples)])
        order = np.argsort(examples, kind="stable")
        rising = examples[order]
        cuts = np.searchsorted(rising, self.offsets)
        found: list[Part] = []
        for k, (a, b) in enumerate(pairwise(cuts.tolist())):
            if a < b:
                batch, gold = self[k]
                own = rising[a:b] - self.offsets[k]
                found.append(Part(batch.reordered(own), gold[batch.positions(own)]))
        batch = joined_batches([part.batch for part in found])
        gold = joined_targets([part.gold for part in found])
        if np.array_equal(order, np.arange(len(order))):
            return Part(batch, gold)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return Part(batch.reordered(place), gold[batch.positions(place)])


class Batches(Iterable[Batch]):
    """The batches of parts, each read when it is its turn."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def __iter__(self) -> Iterator[Batch]:
        return (part.batch for part in self._parts)
