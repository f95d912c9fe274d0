"""Which labellings of a clique share a weight."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_choice

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Ways of sharing: a weight per labelling; one for all orders of the same labels; one in all, for
#: equal labels; of one variable with two labels, one for the second.
TABLES = ("full", "symmetric", "potts", "relative")

MAX_BYTES = 1e9  # of a table


class TableLayout:
    """The cells of a table over m variables with L labels each, and the outputs that fill them.

    Parameters
    ----------
    n_labels, order : int
        L and m.
    kind : {"full", "symmetric", "potts", "relative"}

    Attributes
    ----------
    n_cells, n_outputs : int
    output_of_cell : int64 [n_cells]
        Which output a cell takes; −1: it stays 0.

    Examples
    --------
    >>> layout = TableLayout(2, 2, "symmetric")
    >>> layout.output_of_cell
    array([0, 1, 1, 2])
    >>> layout.filled(np.array([[5.0, 6.0, 7.0]]))
    array([[5., 6., 6., 7.]])
    >>> layout.gathered(np.array([[1.0, 2.0, 3.0, 4.0]]))
    array([[1., 5., 4.]])
    """

    def __init__(self, n_labels: int, order: int, kind: str) -> None:
        check_choice("tables", kind, TABLES)
        if order == 1 and kind == "potts":
            raise ValueError("tables='potts' compares labels: give it cliques of two or more")
        self.n_labels, self.order, self.kind = n_labels, order, kind
        self.n_cells = n_labels**order
        if 8 * self.n_cells * (order if kind == "symmetric" else 1) > MAX_BYTES:
            raise ValueError(
                f"a table over {order} variables with {n_labels} labels each would need "
                f"{8e-9 * self.n_cells:.3g} GB ({n_labels}^{order} scores); use smaller cliques"
            )
        if kind == "relative" and order == 1 and n_labels == 2:
            self.output_of_cell, self.n_outputs = np.array([-1, 0]), 1
            return
        if kind in ("full", "relative") or order == 1:
            self.kind = "full"
            self.output_of_cell, self.n_outputs = np.arange(self.n_cells), self.n_cells
            return
        if kind == "potts":
            self.output_of_cell, self.n_outputs = np.full(self.n_cells, -1), 1
            self.output_of_cell[:: sum(n_labels**k for k in range(order))] = 0
            return
        labels = np.stack(np.unravel_index(np.arange(self.n_cells), (n_labels,) * order))
        same = np.ravel_multi_index(tuple(np.sort(labels, axis=0)), (n_labels,) * order)
        representative, self.output_of_cell = np.unique(same, return_inverse=True)
        self.n_outputs = len(representative)

    @property
    def is_full(self) -> bool:
        """Whether outputs are the cells themselves."""
        return self.kind == "full"

    @cached_property
    def cell_of_output(self) -> Ints:
        """One cell that takes each output."""
        cells = np.zeros(self.n_outputs, dtype=np.int64)
        used = np.flatnonzero(self.output_of_cell >= 0)[::-1]
        cells[self.output_of_cell[used]] = used
        return cells

    def filled(self, outputs: Floats) -> Floats:
        """Tables [n, n_cells] from outputs [n, n_outputs]."""
        if self.is_full:
            return outputs
        cells = outputs[:, np.maximum(self.output_of_cell, 0)]
        return cells if self.kind == "symmetric" else cells * (self.output_of_cell >= 0)

    def gathered(self, tables: Floats) -> Floats:
        """The adjoint: sums [n, n_outputs] over the cells [n, n_cells] of each output."""
        if self.is_full:
            return tables
        order, starts = self._runs
        return np.asarray(np.add.reduceat(tables[:, order], starts, axis=1))

    @cached_property
    def _runs(self) -> tuple[Ints, Ints]:
        """Cells by their output, and where each output's begin."""
        used = np.flatnonzero(self.output_of_cell >= 0)
        order = used[np.argsort(self.output_of_cell[used], kind="stable")]
        return order, np.searchsorted(self.output_of_cell[order], np.arange(self.n_outputs))

    def renumbered(self, outputs: Ints, wider: TableLayout) -> Ints:
        """The same outputs in a layout of the same kind with more labels."""
        labels = np.unravel_index(self.cell_of_output[outputs], (self.n_labels,) * self.order)
        cells = np.ravel_multi_index(labels, (wider.n_labels,) * self.order)
        return np.asarray(wider.output_of_cell[cells])
