"""Groups of weights: penalties, scales and frozen groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_number
from chordal.features import Layout, Squares
from chordal.oracle import Flags, Oracle, PartialOracle, asks_examples
from chordal.potentials import Floats
from chordal.solvers import Callback, Iteration, Keeper, Solution, Solver

Slices = Mapping[str, slice]

DEFAULT_L2 = 1.0  # of groups of weights that a dict does not name
STAND_IN = 1e-3  # of the largest l2: for weights that have none, where a solver needs one


def check_groups(l2: object, freeze: Any, groups: Sequence[str]) -> None:
    """Raise an error for invalid penalties or unknown groups of weights.

    >>> check_groups({"nodes": 1.0}, (), ["node", "intercept"])
    Traceback (most recent call last):
    ValueError: l2 names an unknown group of weights, 'nodes'; the groups are: 'node', 'intercept'
    """
    no_names = isinstance(freeze, (str, bytes, np.ndarray)) or not isinstance(freeze, Collection)
    if no_names or not all(isinstance(name, str) for name in freeze):
        raise TypeError(f"freeze must be a tuple of names of groups of weights, got {freeze!r:.80}")
    named = l2 if isinstance(l2, Mapping) else {}
    for parameter, given in (("l2", named), ("freeze", freeze)):
        for name in given:
            if name not in groups:
                raise ValueError(
                    f"{parameter} names an unknown group of weights, {name!r}; "
                    f"the groups are: {', '.join(map(repr, groups))}"
                )
    for name, value in named.items():
        check_number(f"l2[{name!r}]", value)
    if not isinstance(l2, Mapping):
        check_number("l2", l2)


def l2_of(
    l2: float | Mapping[str, float], slices: Slices, start: Floats, without: Collection[str] = ()
) -> float | Floats:
    """The penalty of every weight: one number for all, or one per weight. Weights of −inf are not
    penalised, nor are groups in `without` that l2 does not name.

    >>> l2_of({"end": 0.0}, {"node": slice(0, 2), "end": slice(2, 3)}, np.zeros(3))
    array([1., 1., 0.])
    """
    named, default = (l2, DEFAULT_L2) if isinstance(l2, Mapping) else ({}, l2)
    forbids = start == -np.inf
    if named is not l2 and not forbids.any() and not len(members(without, slices)):
        return float(default)
    out = np.empty(len(start))
    for name, where in slices.items():
        out[where] = named.get(name, 0.0 if name in without else default)
    out[forbids] = 0.0
    return out


def scaling(
    layout: Layout,
    squares: Callable[[], Squares],
    start: Floats,
    solver: Solver,
    l2: float | Floats,
) -> tuple[Floats | None, float | Floats]:
    """Scale factors of the solver's weights, if any, and the matching l2.

    Some solvers need one l2 for all weights. Others converge faster if all numeric columns have the
    same size; `squares` computes the sizes (`Layout.column_squares`).
    """
    if solver.scales:
        scale = scale_of(l2)
        return scale, l2 if scale is None else float(np.max(l2))
    if asks_examples(solver.asks) or solver.l1 > 0.0 or not np.isfinite(start).all():
        return None, l2
    scale = layout.scale_from(squares())
    return scale, l2 if scale is None else l2 / scale**2


def scale_of(l2: float | Floats) -> Floats | None:
    """Factors that give all weights the same l2, the largest; None if they have it already.

    Weights without l2 get a small one, so that their dual is bounded.

    >>> scale_of(np.array([4.0, 1.0, 4.0]))
    array([1. , 0.5, 1. ])
    """
    largest = float(np.max(l2, initial=0.0))
    if not isinstance(l2, np.ndarray) or (l2 == largest).all():
        return None
    return np.sqrt(np.maximum(l2 / largest, STAND_IN))


def members(groups: Iterable[str], slices: Slices) -> NDArray[np.int64]:
    """The weights of these groups.

    >>> members(["end"], {"node": slice(0, 2), "end": slice(2, 4)})
    array([2, 3])
    """
    found = [np.arange(slices[name].start, slices[name].stop) for name in groups if name in slices]
    return np.concatenate([np.zeros(0, dtype=np.int64), *found])


def free_weights(freeze: Collection[str], slices: Slices, start: Floats) -> Flags | None:
    """The weights that training changes; None for all. Weights of −inf (forbidden) stay.

    >>> free_weights(("node",), {"node": slice(0, 2), "end": slice(2, 3)}, np.zeros(3))
    array([False, False,  True])
    """
    free = start > -np.inf
    for name in freeze:
        free[slices[name]] = False
    if free.all():
        return None
    if not free.any():
        raise ValueError(f"freeze={tuple(freeze)!r} leaves no weight to learn; freeze fewer groups")
    return free


def minimized(
    solver: Solver,
    oracle: object,
    start: Floats,
    callback: Callback,
    free: Flags | None,
    scaled: slice | None,
    keeper: Keeper | None = None,
) -> Solution:
    """The solution if some weights are frozen; the callback sees all weights."""
    if free is None and scaled is None:
        return solver.minimize(oracle, start, callback, keeper)
    assert isinstance(oracle, Oracle)  # `solver.check` refused to keep some weights otherwise
    part = PartialOracle(oracle, start, free, scaled)

    def told(state: Iteration) -> bool | None:
        return callback(state._replace(weights=part.whole(state.weights)))

    solution = solver.minimize(part, part.start, told, keeper)
    return replace(solution, weights=part.whole(solution.weights))
