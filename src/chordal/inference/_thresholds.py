"""Labellings without any bad cell, by forbidding bad cells and propagating constraints."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chordal.inference._answers import Labels
from chordal.inference._cliques import allowed_labels
from chordal.potentials import Floats, Potentials

#: Thresholds that are tried.
MAX_TRIES = 12


def by_thresholds(potentials: Potentials, offer: Callable[[Labels], object]) -> None:
    """Offer labellings of one example with the best possible worst cell, found by search.

    The regret of a cell is its distance from the best cell of its table. All cells with a regret
    above a threshold are forbidden, and a search looks for an allowed labelling. If it finds one,
    the threshold is lowered, else raised, by bisection over the regrets. This suits models with
    few, large costs, such as soft constraints.
    """
    p = potentials
    unary, tables = (
        _regrets(p.unary, p.structure.state_offsets),
        _regrets(p.tables, p.table_offsets),
    )
    levels = np.unique(np.concatenate([unary, tables]))
    levels = levels[levels < np.inf]
    low, high = 0, len(levels) - 1
    for _ in range(MAX_TRIES):
        if low > high:
            break
        middle = (low + high) // 2
        found = _allowed(p, unary <= levels[middle], tables <= levels[middle])
        if found is None:
            low = middle + 1
        else:
            offer(found)
            high = middle - 1


def _allowed(p: Potentials, unary: np.ndarray, tables: np.ndarray) -> Labels | None:
    model = p.like(np.where(unary, p.unary, -np.inf), np.where(tables, p.tables, -np.inf))
    labels, outcome = allowed_labels(model, np.ones(1, dtype=bool))
    return labels if outcome[0] == 1 else None


def _regrets(scores: Floats, offsets: np.ndarray) -> Floats:
    """How far each score is below the best of its block."""
    sizes = np.diff(offsets)
    filled = np.flatnonzero(sizes)
    if len(filled) == 0:
        return np.zeros(0)
    best = np.maximum.reduceat(scores, offsets[filled])
    with np.errstate(invalid="ignore"):
        regrets = np.repeat(best, sizes[filled]) - scores
    return np.where(np.isnan(regrets), np.inf, regrets)
