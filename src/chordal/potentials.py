"""Scores on a structure, and derivatives by them, in the same container."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal import _kernels
from chordal._errors import InfeasibleError
from chordal._validate import check_listed, check_weight, numbers, whole_numbers
from chordal.structures import FactorGraph, Matching, Structure, offsets_of, read_only

Floats = NDArray[np.float64]

LARGEST_SUM = 1e307  # in size, of scores that are not −inf: methods add up a few such sums


class Potentials:
    """Scores of labels and of clique labellings, in log space.

    Parameters
    ----------
    structure : Structure
    unary : float64 [n_states]
        The score of every label of every variable, variable by variable.
    tables : float64 [cells]
        Score tables of cliques one after another, each in C order over its clique's variables.
    table_of_clique : int32 [n_cliques], optional
        The table of each clique; a tied table is stored once. By default all cliques share one
        table if there are only cells for one; else each clique has its own.
    table_offsets : int64 [n_tables + 1], optional
        Where each table begins; needed only if tables are tied and differ in size.

    Notes
    -----
    Scores may be −inf (forbidden), but not NaN or +inf. The sum of one score per variable and
    clique must not exceed 1e307. As *parts* (the derivative of an objective by the potentials), the
    same arrays hold sums over the cliques of a tied table.

    Arrays of float64 are not copied: if you change them later, the scores change too. Indices are.

    Examples
    --------
    >>> from chordal.structures import Chain
    >>> chain = Chain([3], n_labels=2)
    >>> p = Potentials(chain, unary=[0, 1, 0, 0, 2, 0], tables=[1, 0, 0, 1])
    >>> p.score([1, 0, 0])
    array([4.])
    """

    _frame: _kernels.Frame | None = None

    def __init__(
        self,
        structure: Structure,
        unary: ArrayLike,
        tables: ArrayLike,
        table_of_clique: ArrayLike | None = None,
        table_offsets: ArrayLike | None = None,
    ) -> None:
        self.structure = structure
        self.unary = _flat(unary, "unary", structure.n_states)
        self.tables = _flat(tables, "tables", None)
        sizes = structure.table_sizes
        n_cliques = structure.n_cliques
        if table_of_clique is None:
            tied = n_cliques > 0 and len(self.tables) == sizes[0]
            table_of_clique = np.zeros(n_cliques) if tied else np.arange(n_cliques)
        # Copies: the caller may change its own arrays later.
        index = whole_numbers(table_of_clique, "table_of_clique").astype(np.int64)
        if index.shape != (n_cliques,):
            raise ValueError(
                f"table_of_clique must have one entry per clique ({n_cliques}), "
                f"got shape {index.shape}"
            )
        if table_offsets is None:
            if index.max(initial=-1) >= n_cliques:
                raise ValueError(
                    f"table_of_clique must be between 0 and {n_cliques - 1} without table_offsets, "
                    f"got {index.max()}"
                )
            of_table = np.zeros(max(0, int(index.max(initial=-1)) + 1), dtype=np.int64)
            named = index >= 0
            of_table[index[named]] = sizes[named]
            table_offsets = offsets_of(of_table)
        offsets = whole_numbers(table_offsets, "table_offsets").astype(np.int64)
        _check_tables(index, offsets, sizes, len(self.tables))
        _check_shapes(index, structure)
        self.table_of_clique = read_only(index.astype(np.int32))
        self.table_offsets = read_only(offsets)
        self.check()

    def like(self, unary: Floats, tables: Floats) -> Potentials:
        """The same structure and tying with other numbers; shapes are trusted."""
        made = Potentials.trusted(
            self.structure, unary, tables, self.table_of_clique, self.table_offsets
        )
        made._frame = self.frame
        return made

    @staticmethod
    def trusted(
        structure: Structure,
        unary: Floats,
        tables: Floats,
        table_of_clique: NDArray[np.int32],
        table_offsets: NDArray[np.int64],
    ) -> Potentials:
        """Potentials from valid arrays, without checks."""
        made = object.__new__(Potentials)
        made.structure, made.unary, made.tables = structure, unary, tables
        made.table_of_clique, made.table_offsets = table_of_clique, table_offsets
        return made

    @property
    def frame(self) -> _kernels.Frame:
        """Structure and tying for compiled code; shared by all copies from `like`."""
        if self._frame is None:
            topology = self.structure.topology
            self._frame = _kernels.Frame(topology, self.table_offsets, self.table_of_clique)
        return self._frame

    @property
    def scores(self) -> _kernels.Scores:
        """All scores, for compiled code to read."""
        return _kernels.Scores(self.frame, unary=self.unary, tables=self.tables)

    @property
    def writable(self) -> _kernels.Parts:
        """The same numbers as parts, for compiled code to write."""
        return _kernels.Parts(self.frame, unary=self.unary, tables=self.tables)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_frame": None}  # made again where it is needed

    def zeros(self) -> Potentials:
        """The same container, filled with zeros."""
        # Memory that is touched when it is used: np.zeros_like would do so at once.
        return self.like(np.zeros(len(self.unary)), np.zeros(len(self.tables)))

    def untied(self) -> Potentials:
        """An equal model with a separate table per clique."""
        starts = self.table_offsets[self.table_of_clique]
        sizes = self.structure.table_sizes
        cells = np.repeat(starts - offsets_of(sizes)[:-1], sizes) + np.arange(sizes.sum())
        return Potentials(
            self.structure, self.unary, self.tables[cells], np.arange(len(sizes)), offsets_of(sizes)
        )

    def tied_as(self, frame: Potentials) -> Potentials:
        """The same numbers tied as in `frame`, a coarser tying: shared tables are summed.

        For parts, this is the derivative by the potentials of `frame`.
        """
        if self.table_of_clique is frame.table_of_clique:
            return self
        tables = np.zeros(len(frame.tables))
        np.add.at(tables, _cells_of(self, frame), self.tables)
        return frame.like(self.unary, tables)

    def untied_as(self, finer: Potentials) -> Potentials:
        """The same scores with the tables of `finer`, a finer tying."""
        if self.table_of_clique is finer.table_of_clique:
            return self
        return finer.like(self.unary, self.tables[_cells_of(finer, self)])

    def given(self, labels: ArrayLike, fixed: NDArray[np.bool_]) -> Potentials:
        """The same model in which each fixed variable has a single label, its number 0.

        Labellings that agree with the fixed labels keep their scores; every clique has a separate
        table.

        Examples
        --------
        >>> from chordal.structures import Chain
        >>> p = Potentials(Chain([2], n_labels=2), [1, 2, 3, 4], [5, 6, 7, 8])
        >>> smaller = p.given([0, 1], np.array([False, True]))
        >>> smaller.structure.label_counts, smaller.unary, smaller.tables
        (array([2, 1]), array([1., 2., 4.]), array([6., 8.]))
        """
        s, labels, whole = self.structure, self.checked_labels(labels), self.untied()
        if fixed.shape != labels.shape or fixed.dtype != bool:
            raise ValueError(
                f"fixed must be bool, one per variable ({len(labels)}), got {fixed.dtype} of shape "
                f"{fixed.shape}"
            )
        variable = np.repeat(np.arange(s.n_variables), s.label_counts)
        label = np.arange(s.n_states) - s.state_offsets[variable]
        states = ~fixed[variable] | (label == labels[variable])
        clique = np.repeat(np.arange(s.n_cliques), s.table_sizes)
        cell = np.arange(len(clique)) - whole.table_offsets[clique]
        cells = np.ones(len(clique), dtype=bool)
        for axis in range(1, int(s.orders.max(initial=0)) + 1):  # from the last one
            there = np.flatnonzero(s.orders[clique] >= axis)
            variable = s.scopes[s.scope_offsets[clique[there] + 1] - axis]
            cell[there], label = np.divmod(cell[there], s.label_counts[variable])
            cells[there] &= ~fixed[variable] | (label == labels[variable])
        graph = FactorGraph.from_arrays(
            np.diff(s.variable_offsets),
            s.scopes,
            s.orders,
            np.diff(s.clique_offsets),
            np.where(fixed, 1, s.label_counts),
        )
        return Potentials.trusted(
            graph,
            self.unary[states],
            whole.tables[cells],
            whole.table_of_clique,
            offsets_of(graph.table_sizes),
        )

    def table(self, clique: int) -> Floats:
        """The table of one clique, with one axis per variable."""
        start = self.table_offsets[self.table_of_clique[clique]]
        shape = self.structure.label_counts[self.structure.scope(clique)]
        return self.tables[start : start + np.prod(shape)].reshape(shape)

    def score(self, labels: ArrayLike) -> Floats:
        """The score of one labelling of each example (float64 [n_examples])."""
        out = np.empty(self.structure.n_examples)
        _kernels.labelling_score(self.scores, self.checked_labels(labels), out)
        return out

    def bound(self) -> Floats:
        """An upper bound of the score of all labellings (float64 [n_examples]), in one pass.

        The scores of a variable are divided evenly among its cliques, and each clique takes its own
        best labels. −inf proves that no labelling is allowed. `trw_s` and others have tighter
        bounds.
        """
        out = np.empty(self.structure.n_examples)
        _kernels.labelling_bound(self.scores, out)
        return out

    def add_indicators(
        self, labels: ArrayLike, scale: float = 1.0, weight: Floats | None = None
    ) -> None:
        """Add `scale` times each example's weight at the labels, in place."""
        labels = self.checked_labels(labels)
        check_weight(weight, self.structure.n_examples)
        _kernels.labelling_add_indicators(self.writable, labels, weight, float(scale))

    def check(self) -> Potentials:
        """Raise an error for NaN, +inf and scores whose sums could overflow; returns self."""
        largest = LARGEST_SUM / max(1, self.structure.n_variables + self.structure.n_cliques)
        for name, scores in (("unary", self.unary), ("tables", self.tables)):
            good = (scores <= largest) & ((scores >= -largest) | (scores == -np.inf))
            if good.all():
                continue
            where = int(np.argmin(good))
            rule = "finite or -inf"
            if np.isfinite(scores[where]):
                rule = f"at most {largest:.3g} in size or -inf, or their sums could overflow"
            raise ValueError(f"potentials must be {rule}, got {scores[where]} in {name}[{where}]")
        return self

    def checked_labels(self, labels: ArrayLike) -> NDArray[np.int32]:
        """Check that there is one label per variable; returns int32."""
        s, given = self.structure, whole_numbers(labels, "labels")
        if given.shape != (s.n_variables,):
            raise ValueError(
                f"labels must have one entry per variable ({s.n_variables}), got {given.shape}"
            )
        # Before they become int32, where large ones would wrap around.
        if len(given) and (given.min() < 0 or (given >= s.label_counts).any()):
            raise ValueError("labels must be between 0 and the variable's label count - 1")
        return np.ascontiguousarray(given, dtype=np.int32)


def matching_potentials(
    scores: Sequence[ArrayLike], no_target: Sequence[ArrayLike] | None = None
) -> Potentials:
    """Potentials of matchings.

    Parameters
    ----------
    scores : list of arrays [n_source, n_target]
        The score of every pair of each example.
    no_target : list of arrays [n_source], optional
        The score of leaving each source item without a target; 0 by default.

    Examples
    --------
    >>> p = matching_potentials([[[1.0, 2.0], [3.0, 4.0]]])
    >>> p.score([1, 2])  # the first takes the last target, the second none
    array([2.])
    >>> p.score([1, 1])
    array([-inf])
    """
    check_listed(scores, "scores")
    pairs = [numbers(of_example, f"scores[{i}]") for i, of_example in enumerate(scores)]
    for i, array in enumerate(pairs):
        if array.ndim != 2:
            raise ValueError(
                f"scores[{i}] must be an array [n_source, n_target], got {array.shape}"
            )
    if no_target is None:
        no_target = [np.zeros(len(array)) for array in pairs]
    check_listed(no_target, "no_target")
    if len(no_target) != len(pairs):
        raise ValueError(
            f"no_target must have an entry per example ({len(pairs)}), got {len(no_target)}"
        )
    rows = [np.zeros(0)]
    for i, (array, alone) in enumerate(zip(pairs, no_target, strict=True)):
        column = numbers(alone, f"no_target[{i}]")
        if column.shape != array.shape[:1]:
            raise ValueError(
                f"no_target[{i}] must have a score per source item ({len(array)}), "
                f"got shape {column.shape}"
            )
        rows.append(np.column_stack([array, column]).ravel())
    structure = Matching(*np.array([a.shape for a in pairs], dtype=np.int64).reshape(-1, 2).T)
    tables = structure.exclusion_tables, structure.table_of_clique, structure.table_offsets
    return Potentials.trusted(structure, np.concatenate(rows), *tables).check()


def refuse_infeasible(log_partition: Floats) -> None:
    """Raise if some example has no labelling with a finite score."""
    if len(log_partition) and log_partition.min() == -np.inf:
        raise InfeasibleError(int(np.argmin(log_partition)))


def refuse_other_shape(potentials: Potentials, direction: Potentials) -> None:
    """Raise if a direction does not have the shape of the scores."""
    for name in ("unary", "tables"):
        expected, got = getattr(potentials, name).shape, getattr(direction, name).shape
        if got != expected:
            raise ValueError(f"the direction's {name} must have shape {expected}, got {got}")


def _cells_of(finer: Potentials, coarser: Potentials) -> NDArray[np.int64]:
    """The cells of a coarser tying for each cell of a finer one."""
    table = np.zeros(len(finer.table_offsets) - 1, dtype=np.int64)
    table[finer.table_of_clique] = coarser.table_of_clique
    shift = coarser.table_offsets[table] - finer.table_offsets[:-1]
    return np.repeat(shift, np.diff(finer.table_offsets)) + np.arange(len(finer.tables))


def _flat(values: ArrayLike, name: str, size: int | None) -> Floats:
    array = np.ascontiguousarray(numbers(values, name))
    if array.ndim != 1:
        array = array.ravel()
    if size is not None and len(array) != size:
        raise ValueError(f"{name} must have {size} scores, got {len(array)}")
    return array


def _check_tables(
    index: NDArray[Any], offsets: NDArray[Any], sizes: NDArray[Any], n_cells: int
) -> None:
    if len(offsets) and len(index) and (index.min() < 0 or index.max() >= len(offsets) - 1):
        raise ValueError(f"table_of_clique must be between 0 and {max(0, len(offsets) - 2)}")
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != n_cells:
        raise ValueError(
            f"tables must have {offsets[-1] if len(offsets) else 0} cells for this structure, "
            f"got {n_cells}"
        )
    cells = np.diff(offsets)
    if (cells < 0).any():
        raise ValueError("table_offsets must not decrease")
    wrong = np.flatnonzero(cells[index] != sizes)
    if len(wrong):
        raise ValueError(
            f"the table of clique {wrong[0]} must have {sizes[wrong[0]]} cells, "
            f"got {cells[index[wrong[0]]]}"
        )


def _check_shapes(index: NDArray[Any], structure: Structure) -> None:
    """Check that cliques with a shared table have the same label counts."""
    counts = structure.label_counts
    if len(index) == 0 or (counts == counts[0]).all():
        return
    _, first, table = np.unique(index, return_index=True, return_inverse=True)
    other = first[table]  # the first clique with the same table; orders may differ
    orders, scopes, offsets = structure.orders, structure.scopes, structure.scope_offsets
    place = np.arange(len(scopes)) - np.repeat(offsets[:-1], orders)
    same = np.repeat(orders == orders[other], orders)
    twin = np.repeat(offsets[other], orders) + np.where(same, place, 0)
    differs = ~same | (counts[scopes] != counts[scopes[twin]])
    if differs.any():
        clique = int(np.searchsorted(offsets, np.argmax(differs), side="right")) - 1
        shape, expected = (counts[structure.scope(int(c))] for c in (clique, other[clique]))
        raise ValueError(
            f"cliques {other[clique]} and {clique} share a table, but have "
            f"{tuple(expected.tolist())} and {tuple(shape.tolist())} labels"
        )
