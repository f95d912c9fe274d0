"""Every registered solver of smooth objectives on problems whose solution is known."""

import signal
from dataclasses import replace

import numpy as np
import pytest

from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal.oracle import Oracle
from chordal.solvers import SOLVERS
from chordal.solvers.lbfgs import LBFGS
from chordal.solvers.owlqn import OWLQN
from chordal.testing import check_solver
from chordal.testing.contracts.solvers import CountingOracle, Problem

SMOOTH = pytest.mark.parametrize(
    "name", [s for s in SOLVERS if Oracle in SOLVERS.get(s).asks.__mro__]
)


@SMOOTH
def test_known_solutions_and_how_it_stops(name):
    check_solver(SOLVERS.get(name))


@SMOOTH
def test_a_start_without_a_value_is_refused(name):
    huge = Problem("infinite", lambda w: (np.inf, w), np.ones(2), np.zeros(2))
    with pytest.raises(ValueError, match="scale them"):
        SOLVERS.get(name)().minimize(CountingOracle(huge), huge.start)


@SMOOTH
def test_an_error_of_the_oracle_is_not_swallowed(name):
    def broken(weights):
        raise RuntimeError("from the oracle")

    problem = Problem("broken", broken, np.ones(2), np.zeros(2))
    with pytest.raises(RuntimeError, match="from the oracle"):
        SOLVERS.get(name)().minimize(CountingOracle(problem), problem.start)


@SMOOTH
def test_a_gradient_of_exactly_zero_ends_the_run_whatever_tol(name):
    def give_up(*_):
        raise TimeoutError(f"{name} never ends where the gradient is exactly zero")

    flat = Problem("flat", lambda w: (1.0, np.zeros_like(w)), np.zeros(2), np.zeros(2))
    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, 2.0)
    try:
        solution = SOLVERS.get(name)(tol=0.0).minimize(CountingOracle(flat), flat.start)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert solution.status in (Status.CONVERGED, Status.STALLED)
    assert solution.n_iter == 0


@SMOOTH
def test_a_solver_says_when_no_step_helps(name):
    # A gradient that points the wrong way: no step along it lowers the value.
    liar = Problem("liar", lambda w: (float(w @ w), -2.0 * w), np.ones(2), np.zeros(2))
    solver = SOLVERS.get(name)()
    if name in ("adam", "stochastic_meta_descent"):  # no line search: they go where they are told
        with pytest.raises(ValueError, match=r"diverges.*use a"):
            solver.minimize(CountingOracle(liar), liar.start)
        return
    solution = solver.minimize(CountingOracle(liar), liar.start)
    assert solution.status is Status.STALLED
    np.testing.assert_array_equal(solution.weights, liar.start)


@SMOOTH
def test_an_oracle_that_lacks_something_is_refused_by_name(name):
    class Bare:
        n_weights = 2

    with pytest.raises(UnsupportedError, match=f"solver '{name}' needs an oracle with.*Bare"):
        SOLVERS.get(name)().minimize(Bare(), np.zeros(2))


def wrapped(base, **changes):
    """A solver whose solutions are changed afterwards."""

    class Wrong(base):
        def minimize(self, oracle, start, callback=None):
            solution = super().minimize(oracle, start, callback)
            return replace(solution, **{k: f(solution) for k, f in changes.items()})

    return Wrong


class NeverStops(LBFGS):
    def minimize(self, oracle, start, callback=None):
        return super().minimize(oracle, start, callback and (lambda state: callback(state) and 0))


class LosesWeights(LBFGS):
    def minimize(self, oracle, start, callback=None):
        solution = super().minimize(oracle, start, callback)
        return replace(solution, weights=start) if not solution.status.succeeded else solution


class WritesToTheStart(LBFGS):
    def minimize(self, oracle, start, callback=None):
        solution = super().minimize(oracle, start, callback)
        start[:] = solution.weights
        return solution


class OneMore(LBFGS):
    def __init__(self, max_iter=1000, tol=1e-5):
        super().__init__(max_iter + 1, tol)


class IgnoresL1(OWLQN):
    def __init__(self, max_iter=1000, tol=1e-5, l1=0.0):
        super().__init__(max_iter, tol)


class TakesL1(LBFGS):
    def __init__(self, max_iter=1000, tol=1e-5, l1=0.0):
        super().__init__(max_iter, tol)


class NearlyZero(OWLQN):
    def minimize(self, oracle, start, callback=None):
        solution = super().minimize(oracle, start, callback)
        if self.l1 > 0.0:
            solution.weights[solution.weights == 0.0] = 1e-17
        return solution


class Swallows(LBFGS):
    def minimize(self, oracle, start, callback=None):
        solution = super().minimize(oracle, start, callback)
        interrupted = solution.status is Status.INTERRUPTED
        return replace(solution, status=Status.CONVERGED) if interrupted else solution


BROKEN = [
    (wrapped(LBFGS, weights=lambda s: s.weights + 1e-2), "weights"),
    (wrapped(LBFGS, value=lambda s: s.value - 1e-6), "value of the weights"),
    (wrapped(LBFGS, history=lambda s: s.history[::-1]), "the objective went up"),
    (wrapped(LBFGS, n_evaluations=lambda s: s.n_iter), "n_evaluations is wrong"),
    (wrapped(LBFGS, n_iter=lambda s: s.n_iter + 1), "n_iter"),
    (wrapped(LBFGS, status=lambda s: Status.STALLED), "status is"),
    (NeverStops, "stopped by a callback"),
    (LosesWeights, "weights of the stopped iterate"),
    (Swallows, "interrupted at evaluation"),
    (WritesToTheStart, "start was written to"),
    (OneMore, "max_iter=1"),
    (IgnoresL1, "lasso"),
    (TakesL1, "must be refused"),
    (NearlyZero, "which weights are zero"),
]


@pytest.mark.parametrize(("broken", "message"), BROKEN)
def test_a_broken_claim_is_caught(broken, message):
    with pytest.raises(AssertionError, match=message):
        check_solver(broken)
