"""Groups of weights, by the names that the features give them: penalties and what is frozen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_number
from chordal.oracle import Flags, Floats, Oracle, PartialOracle
from chordal.solvers import Callback, Iteration, Solution, Solver

Slices = Mapping[str, slice]
Ints = NDArray[np.int64]

DEFAULT_L2 = 1.0  # of groups that a dict does not name


def check_l2(l2: object, groups: Iterable[str]) -> None:
    """A number, or numbers by group.

    >>> check_l2({"nodes": 1.0}, ["node", "bias"])
    Traceback (most recent call last):
    ValueError: l2 names the group 'nodes' of weights; there are: 'node', 'bias'
    """
    if not isinstance(l2, Mapping):
        check_number("l2", l2)
        return
    _check_names("l2", l2, groups)
    for name, value in l2.items():
        check_number(f"l2[{name!r}]", value)


def check_freeze(freeze: object, groups: Iterable[str]) -> None:
    """Names of groups."""
    if isinstance(freeze, (str, bytes)) or not isinstance(freeze, Collection):
        raise TypeError(f"freeze must be a tuple of groups of weights, got {freeze!r}")
    _check_names("freeze", freeze, groups)


def _check_names(parameter: str, given: Iterable[Any], groups: Iterable[str]) -> None:
    known = list(groups)
    for name in given:
        if name not in known:
            raise ValueError(
                f"{parameter} names the group {name!r} of weights; "
                f"there are: {', '.join(map(repr, known))}"
            )


def l2_of(
    l2: float | Mapping[str, float], slices: Slices, start: Floats, without: Collection[str] = ()
) -> float | Floats:
    """The penalty of every weight: one number, or one each. Weights of −inf have none, nor have
    those of groups in `without` that l2 does not name.

    >>> l2_of({"bias": 0.0}, {"node": slice(0, 2), "bias": slice(2, 3)}, np.zeros(3))
    array([1., 1., 0.])
    """
    forbids, free = start == -np.inf, members(without, slices)
    if not isinstance(l2, Mapping) and not forbids.any() and not len(free):
        return float(l2)
    out = np.empty(len(start))
    for name, where in slices.items():
        default = 0.0 if name in without else DEFAULT_L2
        out[where] = l2.get(name, default) if isinstance(l2, Mapping) else l2
    if not isinstance(l2, Mapping):
        out[free] = 0.0
    out[forbids] = 0.0
    return out


def members(groups: Iterable[str], slices: Slices) -> Ints:
    """The weights of these groups.

    >>> members(["bias"], {"node": slice(0, 2), "bias": slice(2, 4)})
    array([2, 3])
    """
    found = [np.arange(slices[name].start, slices[name].stop) for name in groups if name in slices]
    return np.concatenate([np.zeros(0, dtype=np.int64), *found])


def free_weights(freeze: Collection[str], slices: Slices, start: Floats) -> Flags | None:
    """Which weights move; None for all. Those that start at −inf forbid something, and stay.

    >>> free_weights(("node",), {"node": slice(0, 2), "bias": slice(2, 3)}, np.zeros(3))
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
    free: Flags | None = None,
    scaled: slice | None = None,
) -> Solution:
    """The solver's solution, where only some weights move; the callback sees all of them."""
    if free is None and scaled is None:
        return solver.minimize(oracle, start, callback)
    part = PartialOracle(_whole(oracle), start, free, scaled)

    def told(state: Iteration) -> bool | None:
        return callback(state._replace(weights=part.whole(state.weights)))

    solution = solver.minimize(part, part.start, told)
    return replace(solution, weights=part.whole(solution.weights))


def _whole(oracle: object) -> Oracle:
    if not isinstance(oracle, Oracle):
        raise TypeError(f"{type(oracle).__name__} has no value_grad to take a part of")
    return oracle
