"""Weighted constraint satisfaction problems: toulbar2's format .wcsp."""

from __future__ import annotations

from math import prod

import numpy as np

from chordal.formats._files import Place
from chordal.formats.uai._costs import from_costs
from chordal.formats.uai._functions import Function
from chordal.formats.uai._tokens import Tokens, product_up_to
from chordal.potentials import Floats, Potentials


def read_wcsp(place: Place) -> Potentials:
    """The cost function network of a .wcsp file, one example; scores are minus costs.

    The best labelling has the least cost, minus its score. Costs that reach the file's upper bound
    are forbidden, −inf. Functions are tables, with a default cost or without; global ones, which
    are given by name, are refused.

    Raises
    ------
    FormatError
        Naming line and column of what is wrong.

    Examples
    --------
    Two variables; the second function forbids equal labels, which cost the upper bound of 10:

    >>> import io
    >>> text = b"tiny 2 2 2 10  2 2   1 0 0 1  1 3   2 0 1 0 2  0 0 10  1 1 10"
    >>> p = read_wcsp(io.BytesIO(text))
    >>> p.unary, p.table(0)
    (array([ 0., -3.,  0.,  0.]), array([[-inf,   0.],
           [  0., -inf]]))
    """
    tokens = Tokens(place)
    tokens.word("the name of the problem")
    n_variables = tokens.integer("the number of variables", 1)
    largest = tokens.integer("the largest number of labels", 1)
    n_functions = tokens.integer("the number of cost functions")
    top = float(tokens.numbers(1, "the upper bound")[0])
    counts = tokens.integers(n_variables, "labels of a variable", 1, largest)
    tokens.check_states(counts)
    tokens.need(3 * n_functions, "three or more for each cost function")
    functions: list[Function] = []
    n_cells = 0
    for k in range(n_functions):
        scope = _scope(tokens, n_variables, k)
        shape = [counts[v] for v in scope]
        n_cells += product_up_to(shape, tokens.allowance)
        if n_cells > tokens.allowance:
            raise tokens.error(
                f"the tables up to cost function {k} have more than {tokens.allowance:,} cells, "
                "too many for a file of this size"
            )
        functions.append((scope, _table(tokens, shape, k)))
    tokens.end()
    return from_costs(counts, functions, top)


def _scope(tokens: Tokens, n_variables: int, k: int) -> list[int]:
    what = f"the number of variables of cost function {k}"
    if tokens.left and tokens.words[tokens.at].startswith(b"-"):
        raise tokens.error(f"{what} must not be negative: shared functions are not supported")
    size = tokens.integer(what)
    scope = tokens.integers(size, f"a variable of cost function {k}", 0, n_variables - 1)
    if len(set(scope)) < size:
        raise tokens.error(f"cost function {k} names a variable twice")
    return scope


def _table(tokens: Tokens, shape: list[int], k: int) -> Floats:
    """The costs of all labellings: the default, and what is given for some."""
    default = float(tokens.numbers(1, f"the default cost of cost function {k}")[0])
    name = tokens.words[tokens.at].decode("utf-8", "replace") if tokens.left else "0"
    if default == -1.0 and not name.isdigit():
        raise tokens.error(
            f"cost function {k} is the global one {name[:40]!r}; only tables are supported: let "
            "toulbar2 decompose it, or list its costs"
        )
    n = tokens.integer(f"the number of costs of cost function {k}", 0)
    width = len(shape) + 1
    tokens.need(n * width, f"labels and costs of cost function {k}")
    begin = tokens.at
    table = np.full(prod(shape), default)
    cells = np.zeros(n, dtype=np.int64)
    for t in range(n):
        tokens.at = begin + t * width
        for count in shape:
            label = tokens.integer(f"a label of cost function {k}", 0, count - 1)
            cells[t] = cells[t] * count + label
    places = range(begin + width - 1, begin + n * width, width)
    table[cells] = tokens.numbers_at(places, lambda _: f"a cost of cost function {k}")
    tokens.at = begin + n * width
    return table
