"""The base classes of inputs, which read rows, and of features, which give rows weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._blocks import Runner, run_in_turn
from chordal._errors import UnsupportedError
from chordal.features.batch import Floats, Ints, Rows, Vectors
from chordal.features.entries import RowEntries
from chordal.structures import offsets_of


@dataclass(frozen=True)
class WeightKeys:
    """The column (or attribute) and the output of each weight."""

    column: Ints
    output: Ints


@dataclass(frozen=True)
class SeenRows:
    """Counts of what was seen in rows: of columns, and of their outputs.

    counts : int64 [n_columns]; empty for columns that always have weights
    pairs : offsets of columns, their outputs in rising order, and their counts; None if not needed
    """

    counts: Ints
    pairs: tuple[Ints, NDArray[np.int32], NDArray[np.integer]] | None = None

    def listed(self) -> SeenList:
        """The same counts for occurring columns only, which saves memory for many parts."""
        used = np.flatnonzero(self.counts)
        seen = SeenList(len(self.counts), used, self.counts[used])
        if self.pairs is None:
            return seen
        offsets, outputs, times = self.pairs
        columns = np.repeat(np.arange(len(self.counts)), np.diff(offsets))
        return replace(seen, keys=columns << 31 | outputs, times=times.astype(np.int64))


@dataclass(frozen=True)
class SeenList:
    """`SeenRows` of a part of the data.

    columns, counts : int64, columns that occur in rising order, and how often
    keys, times : int64, column << 31 | output in rising order, and how often; None if not asked
    """

    n_columns: int
    columns: Ints
    counts: Ints
    keys: Ints | None = None
    times: Ints | None = None

    def merged(self, other: SeenList) -> SeenList:
        """The sum of both counts."""
        columns, counts = added(self.columns, self.counts, other.columns, other.counts)
        seen = SeenList(self.n_columns, columns, counts)
        if self.keys is None or self.times is None or other.keys is None or other.times is None:
            return seen
        keys, times = added(self.keys, self.times, other.keys, other.times)
        return replace(seen, keys=keys, times=times)

    def rows(self) -> SeenRows:
        """The same counts with an entry for every column."""
        counts = np.zeros(self.n_columns, dtype=np.int64)
        counts[self.columns] = self.counts
        if self.keys is None or self.times is None:
            return SeenRows(counts)
        pairs = np.bincount(self.keys >> 31, minlength=self.n_columns)
        outputs = (self.keys & (2**31 - 1)).astype(np.int32)
        return SeenRows(counts, (offsets_of(pairs), outputs, self.times))


PIECE = 1 << 17  # keys that are merged at a time, to save memory


def added(a: Ints, times: Ints, b: Ints, more: Ints) -> tuple[Ints, Ints]:
    """The merged rising keys of two lists, and the sum of their counts.

    >>> added(np.array([1, 4]), np.array([2, 1]), np.array([0, 4]), np.array([1, 5]))
    (array([0, 1, 4]), array([1, 2, 6]))
    """
    if len(a) < len(b):
        a, times, b, more = b, more, a, times
    keys, sums = (np.empty(len(a) + len(b), dtype=np.int64) for _ in range(2))
    n = 0
    cuts = [*range(0, max(len(a), 1), PIECE), len(a)]
    others = [0, *np.searchsorted(b, a[cuts[1:-1]]), len(b)]
    for (first, last), (begin, end) in zip(pairwise(cuts), pairwise(others), strict=True):
        found = np.concatenate([a[first:last], b[begin:end]])
        order = np.argsort(found, kind="stable")  # two runs that rise: merged
        found = found[order]
        new = np.flatnonzero(np.diff(found, prepend=-1))
        counts = np.concatenate([times[first:last], more[begin:end]])[order]
        keys[n : n + len(new)] = found[new]
        sums[n : n + len(new)] = np.add.reduceat(counts, new) if len(new) else counts
        n += len(new)
    keys.resize(n, refcheck=False)  # in place: a copy would take as much again
    sums.resize(n, refcheck=False)
    return keys, sums


@dataclass(frozen=True)
class Condensed:
    """A cheaper form of features for training: how to convert rows to it, and its weights back."""

    features: RowFeatures
    rows: Callable[[Rows], Rows]
    spread: Callable[[Floats], Floats]


class RowFeatures(ABC):
    """Scores of rows, linear in the weights: row t gives `n_outputs` scores.

    The map is split by rows (each shard is compiled once) and the adjoint by weights (one task per
    block). So both run in parallel without locks, and every sum has one order for any number of
    threads.
    """

    n_outputs: int
    n_weights: int

    @abstractmethod
    def compile(self, rows: Rows, first: int, last: int) -> Any:
        """Rows first..last in the form that `map` and `adjoint` take."""

    def glimpse(self, rows: Rows, first: int, last: int) -> Any:
        """Rows first..last in a form that `map` takes, for rows that are mapped once.

        Compiling pays off when they are mapped often, as in training.
        """
        return self.compile(rows, first, last)

    @abstractmethod
    def expand(self, weights: Floats, memory: Any = None, run: Runner = run_in_turn) -> Any:
        """The weights in the form that `map` takes; made once for all shards.

        `memory` is what was returned before and is no longer needed; `run` may use threads.
        """

    @abstractmethod
    def map(self, rows: Any, expanded: Any, out: Floats) -> None:
        """Set out [n_rows * n_outputs] to the scores of compiled rows."""

    @abstractmethod
    def zeros(self, memory: Any = None, run: Runner = run_in_turn) -> Any:
        """An empty gradient in the form that `adjoint` adds to."""

    @abstractmethod
    def n_blocks(self, n_jobs: int) -> int:
        """Into how many tasks the adjoint splits."""

    @abstractmethod
    def adjoint(self, rows: Any, parts: Floats, sums: Any, block: int, n_jobs: int) -> None:
        """Add the gradient of one block of weights, from parts [n_rows * n_outputs]."""

    @abstractmethod
    def collect(self, sums: Any, out: Floats, run: Runner = run_in_turn) -> None:
        """Write the finished gradient to out [n_weights]."""

    @abstractmethod
    def keys(self) -> WeightKeys:
        """Column and output of every weight."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a model file keeps, for `from_arrays`."""
        return {}

    @classmethod
    def from_arrays(
        cls, n_columns: int, n_outputs: int, arrays: Mapping[str, NDArray[Any]]
    ) -> RowFeatures:
        """The features of a model file; refuses what does not fit together."""
        raise UnsupportedError(
            f"{cls.__name__} cannot be read from a model file: fit the model again"
        )

    def condensed(self, parts: Iterable[Rows]) -> Condensed | None:
        """A cheaper form for training on rows given in parts; None if there is none.

        It preserves ‖w‖², so the path of a solver that does not depend on the axes is the same. For
        instance, columns that are equal in all rows have equal weights at the optimum. One weight
        serves k of them, with a column √k times theirs.
        """
        return None

    def entries(self, shards: Sequence[Any]) -> RowEntries:
        """All compiled rows, shard after shard, as lists of entries for online learning."""
        raise UnsupportedError(
            f"{type(self).__name__} does not support online solvers; use a solver such as 'lbfgs'"
        )


class Input(ABC):
    """Reads what users have, one kind of input each, and knows the names of its columns."""

    @abstractmethod
    def read(self, X: Sequence[Any], grow: bool) -> Rows:
        """Read a batch of sequences; `grow` adds new attributes."""

    def read_with_vectors(self, X: Sequence[Any], grow: bool) -> tuple[Rows, Vectors | None]:
        """The same, and the arrays among the attributes, if any."""
        return self.read(X, grow), None

    def seen(
        self, rows: Rows, outputs: NDArray[np.int32], n_outputs: int, pairs: str = "seen"
    ) -> SeenRows:
        """The counts that `features_of` needs from rows with these gold outputs; by default
        none.
        """
        return SeenRows(np.zeros(0, dtype=np.int64))

    @abstractmethod
    def features_of(
        self,
        seen: SeenRows,
        n_outputs: int,
        pairs: str = "seen",
        min_freq: int = 0,
        known: WeightKeys | None = None,
    ) -> RowFeatures:
        """The linear map for training rows with these counts; `known` pairs are kept."""

    def features(
        self,
        rows: Rows,
        outputs: NDArray[np.int32],
        n_outputs: int,
        pairs: str = "seen",
        min_freq: int = 0,
        known: WeightKeys | None = None,
    ) -> RowFeatures:
        """The linear map for training rows with these gold outputs."""
        seen = self.seen(rows, outputs, n_outputs, pairs)
        return self.features_of(seen, n_outputs, pairs, min_freq, known)

    @abstractmethod
    def name(self, column: int) -> str:
        """What users call a column."""

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """How many columns there are."""

    def facts(self) -> dict[str, Any]:
        """What a model file keeps besides arrays, for `from_arrays`."""
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that a model file keeps."""
        return {}

    @classmethod
    def from_arrays(cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Input:
        """The input of a model file; arrays are read-only and are not copied."""
        raise UnsupportedError(
            f"{cls.__name__} cannot be read from a model file: fit the model again"
        )
