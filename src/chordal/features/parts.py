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
    size_of,
)
from chordal.features.spilling import Spilled
from chordal.structures import offsets_of
from chordal.targets import Target

WINDOW = 300_000  # variables that are gathered at a time, where examples are mixed
BLOCK = 8_000_000  # numbers in the rows of a block, where examples are visited one by one


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
    size : int
        How many numbers all rows hold.
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
        self.size = sum(own.size for own in heads)
        self.in_memory = False

    @classmethod
    def of(cls, batch: Batch, gold: Target) -> Parts:
        """One part that is in memory."""
        made = object.__new__(cls)
        made._load, made._n, made._release = lambda k: Part(batch, gold), 1, None
        made._held, made.outline, made.in_memory = (0, Part(batch, gold)), batch, True
        made.offsets, made.size = np.array([0, len(batch.sizes)]), size_of(batch)
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
            made = Parts.of(change(batch), gold)
            made.size = self.size
            return made
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

    @property
    def n_blocks(self) -> int:
        """How many blocks `blocks` makes at most."""
        return max(1, min(-(-self.size // BLOCK), self.n_examples))

    def blocks(self, order: Ints) -> list[tuple[int, int]]:
        """Runs of the examples in this order whose rows hold about BLOCK numbers each."""
        ends, n = np.cumsum(self.outline.sizes[order]), self.n_blocks
        cuts = np.searchsorted(ends, ends[-1] * np.arange(1, n) // n, side="left") + 1
        return list(pairwise(np.unique([0, *cuts, len(ends)]).tolist()))

    def mixed(self, order: Ints, limits: Sequence[tuple[int, int]]) -> Iterator[Piece]:
        """For each run of the examples in this order, a batch that holds it.

        A window of them is gathered at a time. Parts are read once: what each has for the windows
        lies in a file meanwhile.
        """
        ends = np.array([end for _, end in limits], dtype=np.int64)
        total = offsets_of(self.outline.sizes[order])
        windows, at = [0], 0
        while at < len(limits):
            full = np.searchsorted(total, total[limits[at][0]] + WINDOW, side="right") - 1
            at = max(int(np.searchsorted(ends, full, side="right")), at + 1)
            windows.append(at)
        wanted = [order[limits[a][0] : limits[b - 1][1]] for a, b in pairwise(windows)]
        for (a, b), (batch, gold) in zip(pairwise(windows), self._each(wanted), strict=True):
            for begin, end in limits[a:b]:
                yield Piece(batch, gold, limits[a][0], begin, end)

    def _each(self, wanted: Sequence[Ints]) -> Iterator[Part]:
        """What `gathered` gives for each of these lists of examples, which have none in common."""
        if self._n == 1 or len(wanted) < 2:
            yield from map(self.gathered, wanted)
            return
        list_of = np.full(self.n_examples, -1)
        for k, examples in enumerate(wanted):
            list_of[examples] = k
        places: list[list[int]] = [[] for _ in wanted]  # of the pieces of each list

        def pieces() -> Iterator[Part]:
            n = 0
            for k, (a, b) in enumerate(pairwise(self.offsets.tolist())):
                batch, gold = self[k]
                own = list_of[a:b]
                rising = np.argsort(own, kind="stable")
                found, cuts = np.unique(own[rising], return_index=True)
                for name, some in zip(found.tolist(), np.split(rising, cuts)[1:], strict=True):
                    if name >= 0:
                        places[name].append(n)
                        n += 1
                        yield Part(batch.reordered(some), gold[batch.positions(some)])

        spilled = Spilled.of(pieces())
        for examples, own in zip(wanted, places, strict=True):
            for n in own:
                spilled[n : n + 1].fetch()
            yield _in_order([spilled[n] for n in own], np.argsort(examples, kind="stable"))
            for n in own:
                spilled[n : n + 1].release()

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
        return _in_order(found, order)


def _in_order(parts: Sequence[Part], order: Ints) -> Part:
    """All examples of these parts, where those at `order` stand one after another in them."""
    batch = joined_batches([part.batch for part in parts])
    gold = joined_targets([part.gold for part in parts])
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
