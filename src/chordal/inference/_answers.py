"""The results of inference methods."""

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

    status : Status, of the example that ended worst
    n_iter : int, iterations (sweeps, rounds, …) of the example that took most
    change : float, the largest remaining change over all examples, which is compared with the
    tolerance
    """

    status: Status
    n_iter: int
    change: float


class Marginals(NamedTuple):
    """log Z of each example, and marginals in the shape of the potentials.

    Marginals of a tied table are summed over its cliques; use `Potentials.untied` to separate them.
    `convergence` tells how an iterative method ended; None if it does not iterate.
    """

    log_partition: Floats
    parts: Potentials
    convergence: Convergence | None = None


class Decoded(NamedTuple):
    """The best labelling found and its score in each example.

    The score is −inf if an approximate method found no allowed labelling. `bound` is an upper bound
    of all scores (float64 [n_examples], +inf if unknown); None means that the score is exact.
    `convergence` tells how an iterative method ended. `found_by` is the member of a portfolio that
    found the labels of each example.
    """

    labels: Labels
    score: Floats
    bound: Floats | None = None
    convergence: Convergence | None = None
    found_by: tuple[str, ...] | None = None

    @property
    def gap(self) -> Floats:
        """How much better another labelling can be at most; 0 proves that this is the best."""
        if self.bound is None:
            return np.zeros_like(self.score)
        return np.maximum(self.bound - self.score, 0.0)


class Relaxed(NamedTuple):
    """The maximum over a relaxation, a set that contains all labellings, and its location.

    value : float64 [n_examples], an upper bound of all scores
    parts : fractional indicators of labels and of clique labellings, in the shape of the
        potentials: locally consistent distributions. Their product with the potentials is the
        value, up to the method's tolerance. Those of a tied table are summed over its cliques.
    convergence : how an iterative method ended
    """

    value: Floats
    parts: Potentials
    convergence: Convergence | None = None


class Ranked(NamedTuple):
    """The best labellings, best first.

    labels : int32 [k, n_variables]
    score : float64 [n_examples, k], −inf if there are fewer than k
    """

    labels: Labels
    score: Floats


class ByCost(NamedTuple):
    """The best labelling of each example at every cost k = 0, 1, ….

    offsets : int64 [n_examples + 1], where the costs of each example begin
    score : float64 [offsets[-1]], −inf if no labelling has that cost
    labels : int32, the labels of the variables, at every cost of every example
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
        """Empty arrays for the answer, for these costs of labels (int64 [n_states], at least 0)."""
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
        The example, its first position and the number of positions.
    allowed : uint8
        For each position of each span, a flag per label of its variable.
    """

    example: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    allowed: NDArray[np.uint8]

    def in_order(self, structure: Structure) -> tuple[Spans, NDArray[np.int64]]:
        """The same spans sorted by example and checked, with the place of each in this order."""
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
