"""Clique templates: which variables belong together, and which labellings share weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from math import comb, prod
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
    """The features of a template that reads the arrays among the attributes of another template.

    template : str, name of the other template, which must come first
    """

    template: str

    def __call__(self, x: object) -> Any:
        """Not callable: the reader of the attributes finds the arrays."""
        raise TypeError(f"the arrays of template {self.template!r} are read with its attributes")


@final
@dataclass(frozen=True)
class CliqueTemplate:
    """A kind of cliques; the weights of a template are shared by all of its cliques.

    Parameters
    ----------
    name : str
        Name of the template and of its group of weights.
    cliques : {"each", "steps", "first", "last"} or function x → int array [n, order]
        "each": every variable is a clique; the rows of `features` define their number. "steps":
        every variable with the next one. "first", "last": only that variable. A function returns
        the variable numbers of each clique, from 0.
    features : function x → rows [n, n_features], optional
        Returns a row per clique: an array, a SciPy sparse matrix or a list of attributes (dicts, or
        lists of strings). By default all cliques have the same table of weights.
    order : int, optional
        Number of variables per clique if `cliques` is a function; default 2.
    tables : {"full", "symmetric", "antisymmetric", "potts", "relative"}
        Which labellings share weights. "full": a weight per feature and labelling. "symmetric": one
        per set of labels, in any order. "antisymmetric": for pairs, one per two labels, with the
        opposite sign in the other order; equal labels score 0. "potts": one weight for equal
        labels. "relative": as "full", but of two labels the first scores 0. If columns need
        different kinds, use one template per kind with the same cliques.
    fit_intercept : bool or "seen"
        Whether labellings have constant weights besides those of features; "seen": only labellings
        that occur in training.
    labelwise : bool
        Whether the features are an array [n, n_labels, n_features] with a row for every *label* of
        each variable. Labels share the weights, and their number may differ.
    types : tuple of str, optional
        The type of each variable of a clique. Variables of a type have their own labels and their
        own numbering, from 0. Either all templates of a model have types or none. The template of
        "each" variable of a type defines their number.

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
    types: tuple[str, ...] = ()

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
        if self.types != ():
            self._check_types(of)

    def _check_types(self, of: str) -> None:
        named = isinstance(self.types, tuple) and all(isinstance(own, str) for own in self.types)
        if not named or len(self.types) != self.size:
            raise ValueError(
                f"types {of} must be a tuple of {self.size} names, one for each variable of a "
                f"clique; got {self.types!r}"
            )
        if self.labelwise or self.cliques in ("steps", "first", "last"):
            raise ValueError(f"types {of} need cliques of 'each' variable, or a function")
        if self.tables not in ("full", "relative") and len(set(self.types)) > 1:
            raise ValueError(
                f"tables={self.tables!r} {of} compares labels, but the types {self.types!r} "
                "have different labels; use tables='full'"
            )

    @property
    def size(self) -> int:
        """Variables per clique."""
        if isinstance(self.cliques, str):
            return PATTERNS[self.cliques]
        return 2 if self.order is None else self.order

    def description(self) -> dict[str, Any]:
        """The template as stored in a model file: everything except its functions."""
        return {
            "name": self.name,
            "cliques": self.cliques if isinstance(self.cliques, str) else "listed",
            "features": self.features is not None,
            "order": int(self.size),
            "tables": self.tables,
            "fit_intercept": self.fit_intercept,
            "labelwise": self.labelwise,
            "types": list(self.types),
        }


def _check_tables(kind: str, order: int, of: str = "") -> None:
    check_choice(f"tables{of}", kind, TABLES)
    if kind == "potts" and order == 1:
        raise ValueError(
            f"tables='potts'{of} compares labels: give it cliques of two variables or more"
        )
    if kind == "antisymmetric" and order != 2:
        raise ValueError(f"tables='antisymmetric'{of} needs cliques of two variables, got {order}")


def check_templates(templates: object) -> list[CliqueTemplate]:
    """Check users' templates: distinct names, weights, and one that defines the variables."""
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
    counting = [t for t in templates if t.cliques == "each" and t.features is not None]
    if not counting:
        raise ValueError(
            "one template must have features of 'each' variable (no cliques): its rows define how "
            "many variables an example has"
        )
    plain = [t.name for t in templates if not t.types]
    if 0 < len(plain) < len(templates):
        raise ValueError(f"template {plain[0]!r} must have types, because others have them")
    types = {own for t in templates for own in t.types} - {t.types[0] for t in counting if t.types}
    if types:
        raise ValueError(
            f"no template defines the variables of type {min(types)!r}: give one with features of "
            "'each' of them"
        )
    return list(templates)


def types_of(templates: Sequence[CliqueTemplate]) -> tuple[str, ...]:
    """The types of variables, in the order in which templates name them; empty without types."""
    return tuple(dict.fromkeys(own for template in templates for own in template.types))


def check_described(
    templates: Sequence[CliqueTemplate], described: Sequence[dict[str, Any]]
) -> None:
    """Raise an error for templates that differ from the model file's description."""
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
    """The cells of a table over variables with labels, and the outputs that fill them.

    Parameters
    ----------
    shape : tuple of int
        The number of labels of each variable.
    kind : {"full", "symmetric", "antisymmetric", "potts", "relative"}

    Attributes
    ----------
    n_cells, n_outputs : int

    Examples
    --------
    >>> layout = TableLayout((2, 2), "symmetric")
    >>> layout.output_of_cell
    array([0, 1, 1, 2])
    >>> layout.filled(np.array([[5.0, 6.0, 7.0]]))
    array([[5., 6., 6., 7.]])
    >>> layout.gathered(np.array([[1.0, 2.0, 3.0, 4.0]]))
    array([[1., 5., 4.]])
    >>> TableLayout((2, 2), "antisymmetric").filled(np.array([[5.0]]))
    array([[ 0.,  5., -5.,  0.]])
    """

    def __init__(self, shape: Sequence[int], kind: str) -> None:
        self.shape, self.order, self.kind = tuple(shape), len(shape), kind
        self.n_cells = prod(shape)
        n_labels, order = shape[0], len(shape)
        _check_tables(kind, order)
        if 8 * self.n_cells * (order if kind == "symmetric" else 1) > MAX_BYTES:
            each, scores = f" with {n_labels} labels each", f"{n_labels}^{order}"
            if len(set(shape)) > 1:
                each, scores = "", " × ".join(map(str, shape))
            raise ValueError(
                f"a table over {order} variables{each} would need {8e-9 * self.n_cells:.3g} GB "
                f"({scores} scores); use smaller cliques"
            )
        relative = kind == "relative" and order == 1 and n_labels == 2
        if not relative and (kind in ("full", "relative") or order == 1):
            self.kind = "full"
        outputs = {
            "full": self.n_cells,
            "symmetric": comb(n_labels + order - 1, order),
            "antisymmetric": max(comb(n_labels, 2), 1),  # one label: a weight without use
        }
        self.n_outputs = min(outputs.get(self.kind, 1), self.n_cells)

    @property
    def is_full(self) -> bool:
        """Whether outputs are the cells themselves."""
        return self.kind == "full"

    # Cells are listed where they are needed: a small file may name thousands of labels.

    @cached_property
    def output_of_cell(self) -> Ints:
        """The output of each cell; −1 if it is always 0."""
        if self.is_full:
            return np.arange(self.n_cells)
        outputs = np.full(self.n_cells, -1)
        if self.kind == "relative":
            outputs[1] = 0
        elif self.kind == "potts":
            outputs[:: sum(self.shape[0] ** k for k in range(self.order))] = 0
        else:
            labels = np.stack(np.unravel_index(np.arange(self.n_cells), self.shape))
            same = np.ravel_multi_index(tuple(np.sort(labels, axis=0)), self.shape)
            used = slice(None)
            if self.sign_of_cell is not None and self.n_cells > 1:
                used = self.sign_of_cell != 0.0
            outputs[used] = np.unique(same[used], return_inverse=True)[1]
        return outputs

    @cached_property
    def sign_of_cell(self) -> Floats | None:
        """Factor of the output; None means 1, or 0 for cells without an output."""
        if self.kind != "antisymmetric":
            return None
        labels = np.arange(self.shape[0])
        return np.sign(labels - labels[:, None]).ravel().astype(np.float64)

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
        cells = outputs if self.is_full else self.cell_of_output[outputs]
        cells = np.ravel_multi_index(np.unravel_index(cells, self.shape), wider.shape)
        # −1: that of a weight without use
        return cells if self.is_full else np.maximum(wider.output_of_cell[cells], 0)
