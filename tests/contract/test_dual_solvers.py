"""Every registered solver with a duality gap on a problem whose solution is known."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from chordal._status import Status
from chordal.solvers import SOLVERS
from chordal.solvers._dual import DualSolver
from chordal.solvers.frank_wolfe import FrankWolfe
from chordal.testing import check_dual_solver

DUAL = pytest.mark.parametrize(
    "name", [s for s in SOLVERS if issubclass(SOLVERS.get(s), DualSolver)]
)


@DUAL
def test_known_solution_and_how_it_stops(name):
    solver = SOLVERS.get(name)
    check_dual_solver(partial(solver, random_state=0) if solver.seeded else solver)


def changed(**changes):
    class Wrong(FrankWolfe.__mro__[0]):
        def minimize(self, oracle, start, callback=None):
            solution = super().minimize(oracle, start, callback)
            return replace(solution, **{k: f(solution) for k, f in changes.items()})

    return Wrong


def shifted(key, by):
    return lambda s: {**s.details, key: list(np.array(s.details[key]) + by)}


class TakesL1(FrankWolfe):
    def __init__(self, max_iter=1000, tol=1e-3, l1=0.0):
        super().__init__(max_iter, tol)


class NeverStops(FrankWolfe):
    def minimize(self, oracle, start, callback=None):
        return super().minimize(oracle, start, callback and (lambda state: callback(state) and 0))


BROKEN = [
    (changed(weights=lambda s: s.weights + 0.5), "value of the weights"),
    (changed(value=lambda s: s.value + 1e-3), "value of the weights"),
    (changed(gap=lambda s: s.gap + 1.0), "too large a gap"),
    (changed(details=shifted("dual", 0.1)), "above the optimum"),
    (changed(details=shifted("primal", -1.0)), "below the optimum"),
    (changed(details=shifted("gap", 1e-3)), "gap is not primal"),
    (changed(status=lambda s: Status.STALLED), "status is"),
    (TakesL1, "l1 > 0 must be refused"),
    (NeverStops, "stopped by a callback"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN)
def test_a_broken_claim_is_caught(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_dual_solver(broken)
