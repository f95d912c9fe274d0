"""What inference methods answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._status import Status
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure, offsets_of

Labels = NDArray[np.int32]


class Convergence(NamedTuple):
    """How an iterative method ended.

    status : Status, of the example that went worst
    n_iter : int, iterations (sweeps, rounds, …) of the example that took most
    change : float, what was to fall below the tolerance, in the example where it is largest
    """

    status: Status
    n_iter: int
    change: float


class Marginals(NamedTuple):
    """log Z of each example, and marginals in the shape of the potentials.

    Marginals of a tied table are summed over its cliques; `Potentials.untied` keeps them apart.
    `convergence` tells how an iterative method ended; None: nothing was iterated.
    """

    log_partition: Floats
    parts: Potentials
    convergence: Convergence | None = None


class Decoded(NamedTuple):
    """The best labelling found and its score in each example.

    The score is −inf where an approximate method has found no allowed labelling. `bound` is what
    no labelling exceeds (float64 [n_examples], +inf where nothing is known); None: the score
    itself, which is exact. `convergence` tells how an iterative method ended, and `found_by` which
    member of a portfolio has found the labels of each example.
    """

    labels: Labels
    score: Floats
    bound: Floats | None = None
    convergence: Convergence | None = None
    found_by: tuple[str, ...] | None = None

    @property
    def gap(self) -> Floats:
        """By how much the best labelling may be better; 0 proves that there is none."""
        if self.bound is None:
            return np.zeros_like(self.score)
        return np.maximum(self.bound - self.score, 0.0)


class Relaxed(NamedTuple):
    """The maximum over a set that is larger than that of all labellings, and where it is.

    value : float64 [n_examples], no labelling's score exceeds it
    parts : fractional indicators of labels and of clique labellings, in the shape of the
        potentials: distributions that fit each other. Their product with the potentials is the
        value, up to the method's tolerance; those of a tied table are summed over its cliques.
    convergence : how an iterative method ended
    """

    value: Floats
    parts: Potentials
    convergence: Convergence | None = None


class Ranked(NamedTuple):
    """The best labellings, best first.

    labels : int32 [k, n_variables]
    score : float64 [n_examples, k], −inf where there are fewer than k
    """

    labels: Labels
    score: Floats


class ByCost(NamedTuple):
    """The best labelling of each example at every cost k = 0, 1, ….

    offsets : int64 [n_examples + 1], where the costs of each example begin
    score : float64 [offsets[-1]], −inf where no labelling has that cost
    labels : int32, at every cost of every example, the labels of its variables
    """

    offsets: NDArray[np.int64]
    score: Floats
    labels: Labels

    def at(self, structure: Structure, cost: NDArray[np.int64]) -> Labels:
        """The labels of all variables, with this cost in each example."""
        sizes = np.diff(structure.variable_offsets)
        first = offsets_of(np.diff(self.offsets) * sizes)[:-1] + cost * sizes
        before = np.repeat(structure.variable_offsets[:-1], sizes)
        within = np.arange(structure.n_variables) - before
        return np.asarray(self.labels[np.repeat(first, sizes) + within])

    @staticmethod
    def empty(structure: Structure, price: NDArray[np.int64]) -> ByCost:
        """Room for the answer, for these prices of labels (int64 [n_states], at least 0)."""
        if price.shape != (structure.n_states,) or (len(price) and price.min() < 0):
            raise ValueError(
                f"price must be {structure.n_states} whole numbers of at least 0, one per label "
                "of every variable"
            )
        most = offsets_of(
            np.maximum.reduceat(price, structure.state_offsets[:-1])
            if structure.n_variables
            else []
        )
        levels = np.diff(most[structure.variable_offsets]) + 1
        cells = int((levels * np.diff(structure.variable_offsets)).sum())
        offsets = offsets_of(levels)
        return ByCost(offsets, np.full(offsets[-1], -np.inf), np.zeros(cells, dtype=np.int32))


@dataclass(frozen=True)
class Spans:
    """Events "the variables from `start` on have labels in these sets", one per span.

    example, start, length : int64 [n_spans]
        Which example, the first position in it, and how many positions.
    allowed : uint8
        For each position of each span, a flag per label of its variable.
    """

    example: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    allowed: NDArray[np.uint8]

    def in_order(self, structure: Structure) -> tuple[Spans, NDArray[np.int64]]:
        """The same spans by example, checked, and the place of each in this order."""
        n = np.diff(structure.variable_offsets)
        if len(self.example) and (self.example.min() < 0 or self.example.max() >= len(n)):
            raise ValueError(f"a span's example must be between 0 and {len(n) - 1}")
        inside = (self.start >= 0) & (self.length >= 1)
        inside &= self.start + self.length <= n[self.example]
        if not inside.all():
            k = int(np.argmin(inside))
            raise ValueError(
                f"span {k} covers positions {self.start[k]} to {self.start[k] + self.length[k]} "
                f"of example {self.example[k]}, which has {n[self.example[k]]}"
            )
        first = structure.variable_offsets[self.example] + self.start
        sizes = structure.state_offsets[first + self.length] - structure.state_offsets[first]
        if len(self.allowed) != sizes.sum():
            raise ValueError(f"allowed must have {sizes.sum()} flags, got {len(self.allowed)}")
        order = np.argsort(self.example, kind="stable")
        begin = offsets_of(sizes)[:-1]
        cells = [np.arange(begin[k], begin[k] + sizes[k]) for k in order]
        flags = self.allowed[np.concatenate(cells)] if cells else self.allowed
        sorted_spans = Spans(self.example[order], self.start[order], self.length[order], flags)
        return sorted_spans, order
