"""Factor graphs in libDAI's format."""

from __future__ import annotations

from bisect import bisect_right
from math import prod

import numpy as np

from chordal.formats._files import Place, open_target
from chordal.formats.uai._functions import (
    Function,
    assemble,
    exponential,
    functions_of,
)
from chordal.formats.uai._tokens import MOST, Tokens, product_up_to
from chordal.potentials import Potentials


def read_fg(place: Place) -> Potentials:
    """The factor graph of a libDAI file, one example.

    Values that the file leaves out are 0, that is −inf. A number that no factor uses for a
    variable becomes one with a single label. Lines that begin with # are comments.

    Raises
    ------
    FormatError
        Naming line and column of what is wrong.

    Examples
    --------
    >>> import io
    >>> p = read_fg(io.BytesIO(b"1  2  0 1  2 3  2  0 1.0  3 2.0"))
    >>> np.exp(p.table(0))  # the first variable changes fastest in the file
    array([[1., 0., 0.],
           [0., 2., 0.]])
    """
    tokens = Tokens(place, comments=True)
    n_factors = tokens.integer("the number of factors", 1)
    tokens.need(2 * n_factors, "two or more for each factor")
    counts: dict[int, int] = {}
    n_cells = 0
    factors: list[tuple[list[int], list[int], list[int]]] = []
    places: list[int] = []
    ends = [0]
    for k in range(n_factors):
        scope, shape = _scope(tokens, counts, k)
        n_cells += product_up_to(shape, tokens.allowance)
        if n_cells > tokens.allowance:
            raise tokens.error(
                f"the tables up to factor {k} have more than {tokens.allowance:,} cells, too many "
                "for a file of this size"
            )
        cells = _cells(tokens, prod(shape), k)
        factors.append((scope, shape, cells))
        places.extend(range(tokens.at - 2 * len(cells) + 1, tokens.at, 2))
        ends.append(len(places))
    tokens.end()
    if not counts:
        raise tokens.error("the factors have no variables")
    _check_states(tokens, counts)
    logs = tokens.logs(places, lambda i: f"a value of factor {bisect_right(ends, i) - 1}")
    functions: list[Function] = []
    for k, (scope, shape, cells) in enumerate(factors):
        table = np.full(prod(shape), -np.inf)
        table[cells] = logs[ends[k] : ends[k + 1]]
        functions.append((scope, table.reshape(shape, order="F").ravel()))
    return assemble([counts.get(v, 1) for v in range(max(counts) + 1)], functions)


def _check_states(tokens: Tokens, counts: dict[int, int]) -> None:
    """Refuse variables, with those between that no factor names, that a small file cannot need."""
    n_states = max(counts) + 1 - len(counts) + sum(counts.values())
    if n_states > tokens.allowance:
        raise tokens.error(
            f"the variables up to {max(counts)} have {n_states:,} labels, more than "
            f"{tokens.allowance:,}, too many for a file of this size"
        )


def _scope(tokens: Tokens, counts: dict[int, int], k: int) -> tuple[list[int], list[int]]:
    size = tokens.integer(f"the number of variables of factor {k}")
    scope = tokens.integers(size, f"a variable of factor {k}", 0, MOST)
    if len(set(scope)) < size:
        raise tokens.error(f"factor {k} names a variable twice")
    shape = tokens.integers(size, f"the labels of a variable of factor {k}", 1, MOST)
    for variable, count in zip(scope, shape, strict=True):
        if counts.setdefault(variable, count) != count:
            raise tokens.error(
                f"variable {variable} has {count} labels in factor {k}, but "
                f"{counts[variable]} before"
            )
    return scope, shape


def _cells(tokens: Tokens, size: int, k: int) -> list[int]:
    """The indices of a factor's values; the values stand between them."""
    n_values = tokens.integer(f"the number of values of factor {k}", 0, size)
    tokens.need(2 * n_values, f"index and value of {n_values:,} cells of factor {k}")
    cells = []
    for _ in range(n_values):
        cells.append(tokens.integer(f"an index of factor {k}", 0, size - 1))
        tokens.at += 1
    if len(set(cells)) < n_values:
        ordered = np.sort(cells)
        again = ordered[1:][ordered[1:] == ordered[:-1]]
        raise tokens.error(f"factor {k} has index {again[0]} twice")
    return cells


def write_fg(potentials: Potentials, place: Place) -> None:
    """Write one example as a libDAI factor graph; rows of `unary` that are all 0 are left out,
    but for variables that no clique holds.

    Examples
    --------
    >>> import io
    >>> from chordal.structures import Chain
    >>> file = io.BytesIO()
    >>> write_fg(Potentials(Chain([2], 2), np.zeros(4), [0, -np.inf, 1, 0]), file)
    >>> print(file.getvalue().decode().strip())
    1
    <BLANKLINE>
    2
    0 1
    2 2
    3
    0 1
    1 2.718281828459045
    3 1
    """
    counts = potentials.structure.label_counts
    functions = list(functions_of(potentials))
    named = {v for scope, _ in functions for v in scope}
    functions += [([v], np.zeros(n)) for v, n in enumerate(counts.tolist()) if v not in named]
    lines = [str(len(functions))]
    for scope, logs in functions:
        shape = counts[list(scope)]
        flat = logs.reshape(shape).ravel(order="F")
        cells = np.flatnonzero(flat > -np.inf)
        lines += ["", str(len(scope)), " ".join(map(str, scope)), " ".join(map(str, shape))]
        lines.append(str(len(cells)))
        lines += [f"{cell} {exponential(flat[cell])}" for cell in cells]
    with open_target(place) as file:
        file.write(("\n".join(lines) + "\n").encode())
