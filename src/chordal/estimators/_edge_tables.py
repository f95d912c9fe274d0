"""Edges whose features have tables of weights of several kinds: a template for each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chordal._sparse import check_sparse
from chordal._validate import check_choice, check_number, is_sparse
from chordal.features import TABLES, CliqueTemplate

#: Of each kind of tables, the columns of edge features that have it.
ColumnTables = Mapping[str, Sequence[int]]


def check_edge_tables(tables: object, column_tables: object) -> None:
    """Refuse unknown kinds of tables, and columns that are not numbers or come twice."""
    check_choice("tables", tables, TABLES)
    if column_tables is None:
        return
    if not isinstance(column_tables, Mapping):
        raise TypeError(
            "column_tables must be a dict {kind of tables: columns of edge features}, or None; got "
            f"{column_tables!r}"
        )
    seen: set[int] = set()
    for kind, columns in column_tables.items():
        check_choice("a kind in column_tables", kind, TABLES)
        where = f"column_tables[{kind!r}]"
        if isinstance(columns, (str, bytes)) or not hasattr(columns, "__len__"):
            raise TypeError(f"{where} must be a list of columns, got {columns!r}")
        for k, column in enumerate(columns):
            check_number(f"{where}[{k}]", column, integer=True)
            if int(column) in seen:
                raise ValueError(f"column_tables names column {column} twice; keep one")
            seen.add(int(column))


def edge_groups(name: str, column_tables: ColumnTables | None) -> list[str]:
    """Names of the templates of edges."""
    return [name, *(f"{name} {kind}" for kind in column_tables or ())]


def edge_templates(
    plain: CliqueTemplate, column_tables: ColumnTables | None
) -> list[CliqueTemplate]:
    """A template of edges, and one for each kind of tables, with the same cliques.

    The columns of features that are not named, and the intercept, stay with the first.
    """
    if not column_tables:
        return [plain]
    rows, name, cliques = plain.features, plain.name, plain.cliques
    assert rows is not None
    named = tuple(int(c) for columns in column_tables.values() for c in columns)
    rest = SomeColumns(rows, named, others=True)
    made = [
        CliqueTemplate(name, cliques, rest, tables=plain.tables, fit_intercept=plain.fit_intercept)
    ]
    for kind, columns in column_tables.items():
        own = SomeColumns(rows, tuple(map(int, columns)))
        own_name = f"{name} {kind}"
        made.append(CliqueTemplate(own_name, cliques, own, tables=kind, fit_intercept=False))
    return made


@dataclass(frozen=True)
class SomeColumns:
    """Some columns of the features of edges, or all others."""

    rows: Callable[[Any], Any]
    columns: tuple[int, ...]
    others: bool = False
    called = "features of edges"

    def __call__(self, x: object) -> Any:
        whole = self.rows(x)
        if is_sparse(whole):
            check_sparse(whole, self.called)
        else:
            whole = np.asarray(whole)
            if len(whole) == 0:
                return whole
            if whole.ndim != 2 or whole.dtype.kind not in "fiub":
                raise TypeError(
                    "column_tables needs features of edges with numbered columns: an array "
                    f"[n_edges, n_columns] of numbers or a sparse matrix; got {whole.dtype} of "
                    f"shape {whole.shape}"
                )
        n = whole.shape[1]
        if self.columns and max(self.columns) >= n:
            raise ValueError(
                f"column_tables names column {max(self.columns)}, and edges have {n} features, "
                "from 0 on"
            )
        chosen = list(self.columns)
        if self.others:
            chosen = [c for c in range(n) if c not in set(self.columns)]
        return whole.tocsr()[:, chosen] if is_sparse(whole) else whole[:, chosen]
