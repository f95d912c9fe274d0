"""Between a file's list of functions, each of some variables, and potentials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, floor, inf
from math import log as natural_log

import numpy as np

from chordal.potentials import Floats, Potentials
from chordal.structures import FactorGraph, offsets_of

_LOG_10 = natural_log(10.0)

#: The variables of a function, and the logarithms of its values in C order.
Function = tuple[Sequence[int], Floats]


def assemble(counts: Sequence[int], functions: Sequence[Function]) -> Potentials:
    """One example with these label counts, and a clique for each function of two or more.

    Functions of one variable are added to its row; constants to the row of the first variable.
    """
    offsets = offsets_of(counts)
    unary = np.zeros(offsets[-1])
    cliques, tables = [], [np.zeros(0)]
    for scope, logs in functions:
        if len(scope) > 1:
            cliques.append(scope)
            tables.append(logs)
        else:
            variable = scope[0] if scope else 0
            unary[offsets[variable] : offsets[variable + 1]] += logs
    graph = FactorGraph([len(counts)], [cliques], np.asarray(counts, dtype=np.int64))
    flat = np.concatenate(tables)
    return Potentials(graph, unary, flat, np.arange(len(cliques)), offsets_of(graph.table_sizes))


def functions_of(potentials: Potentials) -> Iterator[Function]:
    """What `assemble` makes the potentials from: rows that are not all 0, and all cliques."""
    s = potentials.structure
    if s.n_examples != 1:
        raise ValueError(f"a file holds one model, got a batch of {s.n_examples} examples")
    potentials.check()
    for variable in range(s.n_variables):
        row = potentials.unary[s.state_offsets[variable] : s.state_offsets[variable + 1]]
        if row.any():
            yield [variable], row
    for clique in range(s.n_cliques):
        yield s.scope(clique).tolist(), potentials.table(clique).ravel()


def exponential(log: float) -> str:
    """e to the power of `log` in as many digits as it takes; also beyond the range of float64.

    >>> exponential(0.0), exponential(-float("inf")), exponential(-1000.0)[:7]
    ('1', '0', '5.07595')
    """
    if abs(log) < 700.0 or log == -inf:
        return repr(exp(log)).removesuffix(".0")
    power = log / _LOG_10
    digits = floor(power)
    return f"{10.0 ** (power - digits):.12g}e{digits}"
