"""The weights of one template: layout, scores and gradient."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from chordal import _kernels
from chordal.features._base import RowFeatures, WeightKeys
from chordal.features.batch import Floats, Ints
from chordal.features.clique_template import TableLayout


@dataclass(frozen=True)
class TemplateLayout:
    """The weights of one template: of its observations, then intercepts of some outputs.

    name : str
    tables : TableLayout, which labellings share a weight
    rows : RowFeatures or None
    kept : int64, the outputs that have an intercept, in rising order
    """

    name: str
    tables: TableLayout
    rows: RowFeatures | None
    kept: Ints

    @property
    def order(self) -> int:
        """Variables per clique."""
        return self.tables.order

    @property
    def n_row_weights(self) -> int:
        """The weights of observations."""
        return 0 if self.rows is None else self.rows.n_weights

    @cached_property
    def every_output(self) -> bool:
        """Whether all outputs have an intercept."""
        return len(self.kept) == self.tables.n_outputs

    def table(self, intercepts: Floats) -> Floats | None:
        """The table that these intercepts fill; None for a template of observations alone."""
        if len(self.kept) == 0 and (self.rows is not None or self.order == 1):
            return None
        outputs = intercepts
        if not self.every_output:
            outputs = np.zeros(self.tables.n_outputs)
            outputs[self.kept] = intercepts
        return self.tables.filled(outputs[None])[0]

    def score(
        self, rows: object, w: tuple[Any, Floats | None], out: Floats, at: Ints | None, add: bool
    ) -> None:
        """Set `out` to the scores of compiled rows, or add them; `at` names the rows of `out`."""
        tables, table = self.tables, w[1]
        scores = out.reshape(-1, tables.n_cells)
        if self.rows is not None and tables.is_full and at is None and not add:
            self.rows.map(rows, w[0], out)
            add = True
        elif self.rows is not None:
            n = len(scores) if at is None else len(at)
            outputs = np.empty(n * tables.n_outputs)
            self.rows.map(rows, w[0], outputs)
            _put(scores, tables.filled(outputs.reshape(n, tables.n_outputs)), at, add)
            add = True
        if table is not None and at is None and add:
            _kernels.intercept_map(row=table, out=out)
        elif table is not None:
            _put(scores, table, at, add)

    def n_blocks(self, n_jobs: int) -> int:
        """Tasks of the adjoint of rows; one where parts have to be gathered first."""
        if self.rows is None or not self.tables.is_full:
            return int(self.rows is not None)
        return self.rows.n_blocks(n_jobs)

    def adjoint(self, rows: object, parts: Floats, sums: object, block: int, n_jobs: int) -> None:
        """Add one block of the gradient of rows, from parts [n, n_cells]."""
        if self.rows is not None:
            gathered, full = self.tables.gathered(parts).ravel(), self.tables.is_full
            for b in [block] if full else range(self.rows.n_blocks(n_jobs)):
                self.rows.adjoint(rows, gathered, sums, b, n_jobs)

    def keys_in(self, wider: TableLayout) -> WeightKeys | None:
        """Column and output of the weights of observations, in a layout with more labels."""
        if self.rows is None:
            return None
        keys = self.rows.keys()
        return WeightKeys(keys.column, self.tables.renumbered(keys.output, wider))


def _put(scores: Floats, values: Floats, at: Ints | None, add: bool) -> None:
    """Set scores to values, or add these; to some rows, which may be named more than once."""
    if at is not None and (np.diff(at) > 0).all():
        scores[at] += values
    elif at is not None:
        np.add.at(scores, at, values)
    elif add:
        scores += values
    else:
        scores[:] = values
