"""Clique templates: which variables belong together, and which labellings share weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_choice, check_number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Ways of sharing: a weight per labelling; one for all orders of the same labels; of two variables,
#: one for two labels, its negative for these in the other order; one in all, for equal labels; of
#: one variable with two labels, one for the second.
TABLES = ("full", "symmetric", "antisymmetric", "potts", "relative")

MAX_BYTES = 1e9  # of a table

#: Cliques by name, and how many variables each has: every variable, every variable with the next
#: one, the first and the last variable of an example.
PATTERNS = {"each": 1, "steps": 2, "first": 1, "last": 1}


def itself(x: object) -> Any:
    """The features of an example that is its own list of rows."""
    return x


@final
@dataclass(frozen=True)
class Beside:
    """The features of a template that takes the arrays among the attributes of another one.

    template : str, the name of the other one, which comes before it
    """

    template: str

    def __call__(self, x: object) -> Any:
        """Not to be called: what reads the attributes finds the arrays."""
        raise TypeError(f"the arrays of template {self.template!r} are read with its attributes")


@final
@dataclass(frozen=True)
class CliqueTemplate:
    """A kind of cliques; the weights of a template are shared by all of its cliques.

    Parameters
    ----------
    name : str
        What its weights are called.
    cliques : {"each", "steps", "first", "last"} or function x → int array [n, order]
        "each": every variable is a clique; `features` tells by its rows how many there are.
        "steps": every variable with the next one. "first", "last": that variable alone. A
        function lists the numbers of the variables that belong together, from 0.
    features : function x → rows [n, n_features], optional
        An array, a SciPy sparse matrix or a list of attributes (dicts, or lists of strings): a
        row for each clique. Without it, all cliques have the same table of weights.
    order : int, optional
        Variables per clique, where a function lists them; 2 by default.
    tables : {"full", "symmetric", "antisymmetric", "potts", "relative"}
        "full": every feature has a weight for every labelling of the clique, in the order of its
        variables. "symmetric": for every set of labels, in whatever order. "antisymmetric": for
        every two labels of a pair, which counts negative where they stand the other way round, and
        equal labels score 0. "potts": one weight, for all labels being equal. "relative": as
        "full", but of two labels the first scores 0. Where columns of features need tables of
        different kinds, give each kind a template with the same cliques.
    fit_intercept : bool or "seen"
        Whether there are weights for labellings as such too, beside those of features; "seen":
        for those that occur in training.
    labelwise : bool
        The features are an array [n, n_labels, n_features] with a row for every *label* of each
        variable. Labels share the weights, and may differ in number.

    Examples
    --------
    A chain, a skip-chain edge between equal words, and triplets:

    >>> import numpy as np
    >>> def same_word(x):
    ...     pairs = [(i, j) for j in range(len(x)) for i in range(j) if x[i] == x[j]]
    ...     return np.array(pairs, dtype=int).reshape(-1, 2)
    >>> def runs(x):
    ...     return np.arange(len(x) - 2)[:, None] + np.arange(3)
    >>> words = CliqueTemplate("words", features=lambda x: [[word] for word in x])
    >>> chain = CliqueTemplate("chain", "steps")
    >>> skip = CliqueTemplate("skip", same_word, tables="potts")
    >>> triplets = CliqueTemplate("triplets", runs, order=3)
    >>> chain.size, triplets.size
    (2, 3)
    """

    name: str
    cliques: str | Callable[[Any], Any] = "each"
    features: Callable[[Any], Any] | None = None
    _: KW_ONLY
    order: int | None = None
    tables: str = "full"
    fit_intercept: bool | str = True
    labelwise: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(f"name of a clique template must be a str, got {self.name!r}")
        of = f"of template {self.name!r}"
        if isinstance(self.cliques, str):
            check_choice(f"cliques {of}", self.cliques, PATTERNS)
            if self.order not in (None, PATTERNS[self.cliques]):
                raise ValueError(
                    f"template {self.name!r} of order {self.order} must list its cliques by a "
                    f"function: those of {self.cliques!r} have {PATTERNS[self.cliques]}"
                )
        for what in ("cliques", "features"):
            given = getattr(self, what)
            if given is not None and not callable(given) and not isinstance(given, str):
                raise TypeError(f"{what} {of} must be a function of one example, got {given!r}")
        if self.order is not None:
            check_number(f"order {of}", self.order, minimum=1, integer=True)
        _check_tables(self.tables, self.size, f" {of}")
        if self.fit_intercept not in (True, False, "seen"):
            raise ValueError(
                f"fit_intercept {of} must be True, False or 'seen', got {self.fit_intercept!r}"
            )

    @property
    def size(self) -> int:
        """Variables per clique."""
        if isinstance(self.cliques, str):
            return PATTERNS[self.cliques]
        return 2 if self.order is None else self.order

    def description(self) -> dict[str, Any]:
        """What a model file says of a template: all but its functions."""
        return {
            "name": self.name,
            "cliques": self.cliques if isinstance(self.cliques, str) else "listed",
            "features": self.features is not None,
            "order": int(self.size),
            "tables": self.tables,
            "fit_intercept": self.fit_intercept,
            "labelwise": self.labelwise,
        }


def _check_tables(kind: str, order: int, of: str = "") -> None:
    check_choice(f"tables{of}", kind, TABLES)
    if kind == "potts" and order == 1:
        raise ValueError(
            f"tables='potts'{of} compares labels: give it cliques of two variables or more"
        )
    if kind == "antisymmetric" and order != 2:
        raise ValueError(
            f"tables='antisymmetric'{of} compares two ends: its cliques must have two variables, "
            f"got {order}"
        )


def check_templates(templates: object) -> list[CliqueTemplate]:
    """Users' templates: names differ, each has weights, and one counts the variables."""
    if not isinstance(templates, (list, tuple)) or not templates:
        raise TypeError(f"templates must be a list of CliqueTemplate, got {templates!r}")
    for template in templates:
        if not isinstance(template, CliqueTemplate):
            raise TypeError(f"templates must be of class CliqueTemplate, got {template!r}")
        if template.features is None and not template.fit_intercept:
            raise ValueError(
                f"template {template.name!r} has no weights: give it features, or "
                "fit_intercept=True"
            )
    names = [template.name for template in templates]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two templates have the name {twice!r}; names must differ")
    if not any(t.cliques == "each" and t.features is not None for t in templates):
        raise ValueError(
            "one of the templates must have features and no cliques: its rows tell how many "
            "variables an example has"
        )
    return list(templates)


def check_described(
    templates: Sequence[CliqueTemplate], described: Sequence[dict[str, Any]]
) -> None:
    """Refuse templates other than a model file describes; the message says what must be."""
    expected, names = [own["name"] for own in described], [template.name for template in templates]
    if names != expected:
        raise ValueError(
            f"its templates are {', '.join(map(repr, expected))}, in this order; got "
            f"{', '.join(map(repr, names))}"
        )
    for template, own in zip(templates, described, strict=True):
        for what, value in template.description().items():
            if own[what] != value:
                must = f"{what}={own[what]!r}"
                if what == "features":
                    must = "a function features" if own[what] else "no function features"
                raise ValueError(
                    f"template {template.name!r} must have {must}, as when it was fitted"
                )


class TableLayout:
    """The cells of a table over m variables with L labels each, and the outputs that fill them.

    Parameters
    ----------
    n_labels, order : int
        L and m.
    kind : {"full", "symmetric", "antisymmetric", "potts", "relative"}

    Attributes
    ----------
    n_cells, n_outputs : int
    output_of_cell : int64 [n_cells]
        Which output a cell takes; −1: it stays 0.
    sign_of_cell : float64 [n_cells] or None
        What the output is multiplied by; None: by 1, or by 0 where there is no output.

    Examples
    --------
    >>> layout = TableLayout(2, 2, "symmetric")
    >>> layout.output_of_cell
    array([0, 1, 1, 2])
    >>> layout.filled(np.array([[5.0, 6.0, 7.0]]))
    array([[5., 6., 6., 7.]])
    >>> layout.gathered(np.array([[1.0, 2.0, 3.0, 4.0]]))
    array([[1., 5., 4.]])
    >>> TableLayout(2, 2, "antisymmetric").filled(np.array([[5.0]]))
    array([[ 0.,  5., -5.,  0.]])
    """

    def __init__(self, n_labels: int, order: int, kind: str) -> None:
        _check_tables(kind, order)
        self.n_labels, self.order, self.kind = n_labels, order, kind
        self.n_cells = n_labels**order
        self.sign_of_cell: Floats | None = None
        if 8 * self.n_cells * (order if kind == "symmetric" else 1) > MAX_BYTES:
            raise ValueError(
                f"a table over {order} variables with {n_labels} labels each would need "
                f"{8e-9 * self.n_cells:.3g} GB ({n_labels}^{order} scores); use smaller cliques"
            )
        if kind == "relative" and order == 1 and n_labels == 2:
            self.output_of_cell = np.array([-1, 0])
        elif kind in ("full", "relative") or order == 1:
            self.kind, self.output_of_cell = "full", np.arange(self.n_cells)
        elif kind == "potts":
            self.output_of_cell = np.full(self.n_cells, -1)
            self.output_of_cell[:: sum(n_labels**k for k in range(order))] = 0
        else:
            labels = np.stack(np.unravel_index(np.arange(self.n_cells), (n_labels,) * order))
            same = np.ravel_multi_index(tuple(np.sort(labels, axis=0)), (n_labels,) * order)
            self.output_of_cell = np.unique(same, return_inverse=True)[1]
        if kind == "antisymmetric":
            self.sign_of_cell = np.sign(labels[1] - labels[0]).astype(np.float64)
            apart = (self.sign_of_cell != 0.0) | (n_labels == 1)  # one label: a weight without use
            self.output_of_cell = np.full(self.n_cells, -1)
            self.output_of_cell[apart] = np.unique(same[apart], return_inverse=True)[1]
        self.n_outputs = int(self.output_of_cell.max(initial=-1)) + 1

    @property
    def is_full(self) -> bool:
        """Whether outputs are the cells themselves."""
        return self.kind == "full"

    @cached_property
    def cell_of_output(self) -> Ints:
        """The first cell that takes each output."""
        order, starts = self._runs
        return order[starts]

    def filled(self, outputs: Floats) -> Floats:
        """Tables [n, n_cells] from outputs [n, n_outputs]."""
        if self.is_full:
            return outputs
        cells = outputs[:, np.maximum(self.output_of_cell, 0)]
        if self.sign_of_cell is not None:
            return cells * self.sign_of_cell
        return cells if self.kind == "symmetric" else cells * (self.output_of_cell >= 0)

    def gathered(self, tables: Floats) -> Floats:
        """The adjoint: sums [n, n_outputs] over the cells [n, n_cells] of each output."""
        if self.is_full:
            return tables
        if self.sign_of_cell is not None:
            tables = tables * self.sign_of_cell
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
        return np.maximum(wider.output_of_cell[cells], 0)  # −1: that of a weight without use
