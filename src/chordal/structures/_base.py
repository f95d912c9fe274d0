"""The structure of a batch: its variables, and the cliques that join them."""

from __future__ import annotations

import math
from abc import ABC
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal import _kernels
from chordal._validate import whole_numbers

_kernels.refuse_other_interpreters()  # here, since all that is computed has a structure

Ints = NDArray[np.int64]

HUGE = 2.0**60  # more numbers than any memory holds, and far from where int64 wraps around


def offsets_of(counts: ArrayLike) -> Ints:
    """Where each of consecutive blocks begins, and where the last one ends.

    >>> offsets_of([2, 0, 3])
    array([0, 2, 2, 5])
    """
    counts = np.asarray(counts, dtype=np.int64)
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    counts.cumsum(out=offsets[1:])
    return offsets


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view


def checked_counts(counts: ArrayLike, name: str) -> Ints:
    """A copy of counts of at least 0, as int64; an error if their sum is too large."""
    array = whole_numbers(counts, name).astype(np.int64)  # a copy
    if array.ndim != 1 or (len(array) and array.min() < 0):
        raise ValueError(f"{name} must be a 1-d array of non-negative counts")
    refuse_huge(array, f"the sum of {name}")
    return array


def refuse_huge(counts: NDArray[Any], what: str) -> None:
    """Raise an error for counts whose sum would overflow int64."""
    total = counts.sum(dtype=np.float64)
    if total >= HUGE:
        raise ValueError(f"{what} must be below 2^60, got {total:.3g}")


def counts_per_variable(n_labels: int | ArrayLike, n_variables: int) -> Ints:
    """Label counts of all variables, from one number for all or one for each."""
    counts = whole_numbers(n_labels, "n_labels").astype(np.int64, copy=False)
    return np.full(n_variables, counts) if counts.ndim == 0 else counts


def check_scopes(scopes: Ints, scope_offsets: Ints, clique_offsets: Ints, sizes: Ints) -> None:
    """Raise an error for a clique that names a missing variable, or one variable twice. Variables
    are numbered within their example.
    """
    orders = np.diff(scope_offsets)
    example = np.repeat(np.arange(len(sizes)), np.diff(clique_offsets))
    outside = (scopes < 0) | (scopes >= np.repeat(sizes[example], orders))
    if outside.any():
        k = int(np.argmax(outside))
        clique = int(np.searchsorted(scope_offsets, k, side="right")) - 1
        raise ValueError(
            f"clique {clique - clique_offsets[example[clique]]} of example {example[clique]} names "
            f"variable {scopes[k]}, but the example has {sizes[example[clique]]} variables"
        )
    k = int(_kernels.named_twice(scopes=scopes, scope_offsets=scope_offsets))
    if k >= 0:
        clique = int(np.searchsorted(scope_offsets, k, side="right")) - 1
        raise ValueError(
            f"clique {clique - clique_offsets[example[clique]]} of example {example[clique]} names "
            f"variable {scopes[k]} twice; the variables of a clique must differ"
        )


class Structure(ABC):
    """Variables and cliques of a batch of examples, as flat read-only arrays.

    A subclass compiles user data (sequences, images, graphs) into these arrays.

    Attributes
    ----------
    label_counts : int64 [n_variables]
        The number of labels of each variable.
    state_offsets : int64 [n_variables + 1]
        Where the states (variable, label) of each variable begin.
    variable_offsets, clique_offsets : int64 [n_examples + 1]
        Where the variables and cliques of each example begin.
    scopes : int64 [sum of clique orders]
        The variables of each clique, one clique after another.
    scope_offsets : int64 [n_cliques + 1]
        Where the scope of each clique begins.
    """

    _topology: _kernels.Topology | None = None
    _incidence: _kernels.Incidence | None = None

    def __init__(
        self,
        label_counts: ArrayLike,
        variable_offsets: Ints,
        scopes: Ints,
        scope_offsets: Ints,
        clique_offsets: Ints,
    ) -> None:
        counts = np.array(label_counts, dtype=np.int64)  # a copy: the caller may change its own
        if counts.ndim != 1 or (len(counts) and counts.min() < 1):
            raise ValueError("label_counts must be a 1-d array of counts of at least 1")
        if len(counts) != variable_offsets[-1]:
            raise ValueError(
                f"label_counts must have one entry per variable ({variable_offsets[-1]}), "
                f"got {len(counts)}"
            )
        refuse_huge(counts, "the sum of label_counts")
        self.label_counts = read_only(counts)
        self.state_offsets = read_only(offsets_of(counts))
        self.variable_offsets = read_only(variable_offsets)
        self.scopes = read_only(scopes)
        self.scope_offsets = read_only(scope_offsets)
        self.clique_offsets = read_only(clique_offsets)

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.variable_offsets) - 1

    @property
    def n_variables(self) -> int:
        """Number of variables of all examples."""
        return len(self.label_counts)

    @property
    def n_states(self) -> int:
        """Number of states (variable, label) of all examples."""
        return int(self.state_offsets[-1])

    @property
    def most_labellings(self) -> int:
        """Number of labellings of the example that has most; at most 2^60 is returned.

        >>> from chordal.structures import Chain
        >>> Chain([3, 2], 2).most_labellings
        8
        """
        bits = np.append(0.0, np.log2(self.label_counts).cumsum())[self.variable_offsets]
        most = float(np.diff(bits).max(initial=0.0))
        return 2**60 if most >= 60 else math.ceil(2.0**most - 1e-3)

    @property
    def n_cliques(self) -> int:
        """Number of cliques of all examples."""
        return len(self.scope_offsets) - 1

    @cached_property
    def table_sizes(self) -> Ints:
        """The number of cells of each clique's table (int64 [n_cliques]).

        Raises ValueError if the total is 2^60 or more.
        """
        if self.n_cliques == 0:
            return np.zeros(0, dtype=np.int64)
        sizes = self.label_counts[self.scopes].astype(np.float64)
        cells = np.multiply.reduceat(sizes, self.scope_offsets[:-1])  # does not wrap around
        refuse_huge(cells, "the number of cells of all tables")
        return cells.astype(np.int64)

    @cached_property
    def orders(self) -> Ints:
        """The number of variables of each clique (int64 [n_cliques])."""
        return np.diff(self.scope_offsets)

    @cached_property
    def is_pairwise(self) -> bool:
        """Whether every clique is an edge between two variables."""
        return bool((self.orders == 2).all())

    @cached_property
    def is_forest(self) -> bool:
        """Whether variables and cliques form no loop, so that message passing is exact."""
        if self.is_pairwise and self.n_cliques >= max(self.n_variables, 1):
            return False
        return _kernels.is_forest(self.topology)

    @property
    def topology(self) -> _kernels.Topology:
        """The index arrays for compiled code; cached."""
        if self._topology is None:
            self._topology = _kernels.Topology(
                state_offsets=self.state_offsets,
                variable_offsets=self.variable_offsets,
                clique_offsets=self.clique_offsets,
                scope_offsets=self.scope_offsets,
                scopes=self.scopes,
            )
        return self._topology

    @property
    def incidence(self) -> _kernels.Incidence:
        """The cliques of each variable, for compiled code; cached."""
        if self._incidence is None:
            self._incidence = _kernels.Incidence(self.topology)
        return self._incidence

    @property
    def cliques_of_variable(self) -> tuple[Ints, Ints]:
        """The cliques of each variable: offsets [n_variables + 1] and cliques."""
        return self.incidence.offsets, self.incidence.cliques

    def __getstate__(self) -> dict[str, Any]:
        # What is compiled is made again where it is needed.
        return {**vars(self), "_topology": None, "_incidence": None}

    def scope(self, clique: int) -> Ints:
        """The variables of one clique."""
        return self.scopes[self.scope_offsets[clique] : self.scope_offsets[clique + 1]]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.n_examples} examples, {self.n_variables} variables, "
            f"{self.n_cliques} cliques)"
        )
