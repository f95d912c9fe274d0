"""Models in the UAI format: Markov and Bayesian networks."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from chordal._validate import check_choice
from chordal.formats._files import Place, open_target
from chordal.formats.uai._functions import (
    Function,
    assemble,
    exponential,
    functions_of,
)
from chordal.formats.uai._tokens import Tokens, product_up_to
from chordal.potentials import Potentials

KINDS = ("MARKOV", "BAYES")


def read_uai(place: Place) -> Potentials:
    """The model of a UAI file, one example of a factor graph.

    Parameters
    ----------
    place : path, binary stream or "-"
        Compressed or not; a Markov or a Bayesian network.

    Returns
    -------
    potentials : Potentials
        Logarithms of the functions' values, 0 as −inf. Functions of one variable are in `unary`,
        constants in the first variable's row.

    Raises
    ------
    FormatError
        The message gives line and column: a truncated file, a table of the wrong size, a negative
        value, an unknown variable, …

    Examples
    --------
    >>> import io
    >>> text = b"MARKOV 2  2 2  2  1 0  2 0 1   2  1 3   4  5 1 1 0"
    >>> p = read_uai(io.BytesIO(text))
    >>> np.exp(p.unary), np.exp(p.tables)
    (array([1., 3., 1., 1.]), array([5., 1., 1., 0.]))
    """
    tokens = Tokens(place)
    kind = tokens.word("MARKOV or BAYES")
    if kind.upper() not in KINDS:
        tokens.at -= 1
        raise tokens.error(f"a model begins with MARKOV or BAYES, got {kind[:40]!r}")
    n_variables = tokens.integer("the number of variables", 1)
    counts = tokens.integers(n_variables, "labels of a variable", 1)
    tokens.check_states(counts)
    n_functions = tokens.integer("the number of functions")
    tokens.need(2 * n_functions, "two or more for each function")
    scopes = [_scope(tokens, n_variables, k) for k in range(n_functions)]
    functions = _tables(tokens, scopes, counts)
    tokens.end()
    return assemble(counts, functions)


def _scope(tokens: Tokens, n_variables: int, k: int) -> list[int]:
    size = tokens.integer(f"the number of variables of function {k}")
    scope = tokens.integers(size, f"a variable of function {k}", 0, n_variables - 1)
    if len(set(scope)) < size:
        raise tokens.error(f"function {k} names a variable twice")
    return scope


def _tables(tokens: Tokens, scopes: list[list[int]], counts: list[int]) -> list[Function]:
    """The functions' values; numbers are read when all sizes are known to be right."""
    places: list[int] = []
    ends: list[int] = []
    for k, scope in enumerate(scopes):
        size = tokens.integer(f"the number of values of function {k}")
        expected = product_up_to((counts[v] for v in scope), len(tokens.words))
        if size != expected:
            tokens.at -= 1
            shape = " x ".join(str(counts[v]) for v in scope[:20]) or "1"
            more = " x …" if len(scope) > 20 else ""
            least = "more than " if expected > len(tokens.words) else ""
            raise tokens.error(
                f"function {k} must have {least}{expected - bool(least)} values, one for each "
                f"labelling of its variables ({shape}{more}), got {size}"
            )
        tokens.need(size, f"a value of function {k}")
        places.extend(range(tokens.at, tokens.at + size))
        ends.append(len(places))
        tokens.at += size
    end = tokens.at
    logs = tokens.logs(places, lambda k: f"a value of function {bisect_right(ends, k)}")
    tokens.at = end
    starts = [0, *ends]
    return [(scope, logs[starts[k] : ends[k]]) for k, scope in enumerate(scopes)]


def write_uai(potentials: Potentials, place: Place, kind: str = "MARKOV") -> None:
    """Write one example as a UAI file.

    Rows of `unary` that are all 0 are left out. Values beyond the range of float64 are written
    all the same (1e-435); other programs may take them for 0.

    Parameters
    ----------
    potentials : Potentials
        Of a single example.
    place : path, binary stream or "-"
    kind : {"MARKOV", "BAYES"}
        "BAYES" needs a conditional distribution for each variable, the last of its function.

    Examples
    --------
    >>> from chordal.structures import Chain
    >>> import sys
    >>> p = Potentials(Chain([2], n_labels=2), np.log([1, 3, 1, 1]), np.log([5, 1, 1, 2]))
    >>> write_uai(p, "-")  # doctest: +SKIP
    MARKOV
    2
    2 2
    2
    1 0
    2 0 1
    <BLANKLINE>
    2
     1 3
    4
     5 1
     1 2
    """
    check_choice("kind", kind, KINDS)
    functions = list(functions_of(potentials))
    counts = potentials.structure.label_counts.tolist()
    if kind == "BAYES":
        functions = _conditional(functions, counts)
    lines = [kind, str(len(counts)), " ".join(map(str, counts)), str(len(functions))]
    lines += [" ".join(map(str, [len(scope), *scope])) for scope, _ in functions]
    for scope, logs in functions:
        lines += ["", str(len(logs))]
        rows = logs.reshape(-1, counts[scope[-1]])
        lines += [" " + " ".join(map(exponential, row)) for row in rows.tolist()]
    with open_target(place) as file:
        file.write(("\n".join(lines) + "\n").encode())


def _conditional(functions: list[Function], counts: list[int]) -> list[Function]:
    """The functions by the variable that each is the distribution of; others are refused."""
    of_variable: dict[int, Function] = {}
    for scope, logs in functions:
        sums = np.exp(logs).reshape(-1, counts[scope[-1]]).sum(axis=1)
        if scope[-1] in of_variable or np.abs(sums - 1.0).max() > 1e-6:
            raise ValueError(
                f"kind 'BAYES' needs one distribution of each variable given others, but the "
                f"function of variables {tuple(scope)} is none of variable {scope[-1]}, or not "
                "the first; use kind 'MARKOV'"
            )
        of_variable[scope[-1]] = scope, logs
    for variable, count in enumerate(counts):
        if count == 1:
            of_variable.setdefault(variable, ([variable], np.zeros(1)))
        if variable not in of_variable:
            raise ValueError(
                f"kind 'BAYES' needs a distribution of each variable, but variable {variable} has "
                "none; use kind 'MARKOV'"
            )
    return [of_variable[variable] for variable in range(len(counts))]
