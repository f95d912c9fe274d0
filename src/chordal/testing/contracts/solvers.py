"""The contract of solvers: problems whose solution is known by construction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from chordal._status import Status
from chordal.potentials import Floats
from chordal.testing.contracts._common import Iterate, require

#: Makes a solver from max_iter, tol and l1, as every solver class does.
SolverFactory = Callable[..., Any]
Function = Callable[[Floats], "tuple[float, Floats]"]


@dataclass(frozen=True)
class Problem:
    """A function to minimise, where to start, and where the minimum is."""

    name: str
    function: Function
    start: Floats
    solution: Floats
    l1: float = 0.0
    convex: bool = True
    hard: bool = False  # badly scaled, curved or with an edge: for solvers that claim `robust`
    hessian: Callable[[Floats], Floats] | None = None
    atol: float = 1e-4  # of the weights found

    def value(self, weights: Floats) -> float:
        """The objective with its l1 penalty."""
        return self.function(weights)[0] + self.l1 * float(np.abs(weights).sum())


class CountingOracle:
    """Evaluates a function, counts, and presses Ctrl-C at a given evaluation.

    It has one mini-batch, and where the problem has no Hessian, the identity.
    """

    def __init__(self, problem: Problem, interrupt_at: int | None = None) -> None:
        self.n_weights = len(problem.start)
        self.n_evaluations = self.n_products = 0
        self._function, self._hessian = problem.function, problem.hessian
        self._interrupt_at = interrupt_at

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        """The function's value and gradient."""
        self.n_evaluations += 1
        if self.n_evaluations == self._interrupt_at:
            raise KeyboardInterrupt
        return self._function(weights)

    def hess_vec(self, weights: Floats, direction: Floats) -> Floats:
        """The Hessian times the direction."""
        self.n_products += 1
        return np.asarray(self.hessian(weights) @ direction)

    def hessian(self, weights: Floats) -> Floats:
        """The matrix of second derivatives."""
        return np.eye(len(weights)) if self._hessian is None else self._hessian(weights)

    def batches(self) -> list[CountingOracle]:
        """The whole function as one mini-batch."""
        return [self]


def check_solver(make_solver: SolverFactory) -> None:
    """Check a solver on functions with known minima, and how it stops.

    Raises
    ------
    AssertionError
        Saying which claim does not hold.

    Examples
    --------
    >>> from chordal.solvers.lbfgs import LBFGS
    >>> check_solver(LBFGS)
    """
    claims = make_solver()
    for problem in smooth_problems():
        sure = problem.convex or not claims.handles_l1  # with L1, only convex ones are
        if sure and (claims.robust or not problem.hard):
            _check_solution(make_solver, problem)
    _check_l1(make_solver)
    _check_history(make_solver)
    _check_callback(make_solver)
    _check_interruption(make_solver)
    _check_limits(make_solver)


def smooth_problems() -> list[Problem]:
    """Smooth functions with known minima: well and badly scaled, curved, and with an edge."""
    centre = np.linspace(-2.0, 3.0, 12)
    round_one, long_one = _correlated(100.0), np.diag(np.geomspace(1.0, 1e4, 12))
    start, solution = np.full(3, 20.0), np.array([1.0, 0.5, 0.25])
    return [
        _quadratic_problem("quadratic", round_one, centre),
        replace(_quadratic_problem("ill-conditioned", long_one, centre), hard=True),
        Problem("barrier", _barrier, start, solution, hard=True, hessian=_barrier_hessian),
        rosenbrock(),
    ]


def rosenbrock() -> Problem:
    """A curved valley, along which every solver takes many steps."""
    return Problem(
        "Rosenbrock",
        _rosenbrock,
        np.array([-1.2, 1.0]),
        np.ones(2),
        convex=False,
        hard=True,
        hessian=_rosenbrock_hessian,
    )


def lengthy_problem(claims: Any) -> Problem:
    """A problem that a solver with these claims does not solve within a few iterations."""
    return rosenbrock() if claims.robust else smooth_problems()[0]


def l1_problems() -> list[Problem]:
    """Least squares with an L1 term.

    With an orthogonal design, soft thresholding solves it. With a correlated one, the solution w
    and a subgradient s of ‖w‖₁ are chosen first; the centre w + H⁻¹ l1 s makes them optimal.
    """
    scale = np.array([1.0, 2.0, 0.5, 4.0, 1.0, 1.0, 0.25, 3.0])
    centre = np.array([3.0, -2.0, 1.0, 0.1, -0.9, 0.0, -8.0, -0.4])
    l1 = 1.0
    soft = np.sign(centre) * np.maximum(np.abs(centre) - l1 / scale, 0.0)
    chosen = np.array([3.0, -2.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.5])
    sign = np.where(chosen != 0.0, np.sign(chosen), np.linspace(-0.9, 0.9, 12))
    hessian = _correlated(100.0)
    moved = chosen + np.linalg.solve(hessian, l1 * sign)
    return [
        Problem("lasso", _quadratic(np.diag(scale), centre), np.zeros(8), soft, l1),
        Problem("correlated lasso", _quadratic(hessian, moved), np.full(12, 2.0), chosen, l1),
    ]


def _correlated(condition: float) -> Floats:
    """A symmetric matrix with eigenvalues from 1 to `condition` and axes that are not w's own."""
    rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(12, 12)))
    return np.asarray(rotation @ np.diag(np.geomspace(1.0, condition, 12)) @ rotation.T)


def _quadratic(hessian: Floats, centre: Floats) -> Function:
    def function(w: Floats) -> tuple[float, Floats]:
        slope = hessian @ (w - centre)
        return 1.0 + 0.5 * float((w - centre) @ slope), slope

    return function


def _quadratic_problem(name: str, hessian: Floats, centre: Floats) -> Problem:
    start = np.zeros_like(centre)
    return Problem(name, _quadratic(hessian, centre), start, centre, hessian=lambda w: hessian)


def _rosenbrock(w: Floats) -> tuple[float, Floats]:
    bend = w[1] - w[0] ** 2
    value = (1.0 - w[0]) ** 2 + 100.0 * bend**2
    return float(value), np.array([-2.0 * (1.0 - w[0]) - 400.0 * w[0] * bend, 200.0 * bend])


def _rosenbrock_hessian(w: Floats) -> Floats:
    mixed = -400.0 * w[0]
    return np.array([[2.0 + 1200.0 * w[0] ** 2 - 400.0 * w[1], mixed], [mixed, 200.0]])


def _barrier_hessian(w: Floats) -> Floats:
    return np.diag(1.0 / w**2)


def _barrier(w: Floats) -> tuple[float, Floats]:
    """Σ k w_k − log w_k: infinite, with no gradient, where a weight is not positive."""
    if (w <= 0.0).any():
        return float("inf"), np.full(len(w), np.nan)
    k = np.array([1.0, 2.0, 4.0])
    return float((k * w - np.log(w)).sum()), k - 1.0 / w


def _check_solution(make_solver: SolverFactory, problem: Problem) -> Any:
    oracle, start = CountingOracle(problem), problem.start.copy()
    most = 1000 if make_solver().robust else 20_000
    penalty = {"l1": problem.l1} if problem.l1 else {}
    solver = make_solver(max_iter=most, tol=1e-10, **penalty)
    solution = solver.minimize(oracle, start)
    where = f"{problem.name}: "
    require(solution.status is Status.CONVERGED, f"{where}status is {solution.status}")
    assert_array_equal(start, problem.start, err_msg=where + "the start was written to")
    message = where + "weights"
    assert_allclose(
        solution.weights, problem.solution, rtol=0.0, atol=problem.atol, err_msg=message
    )
    _check_statistics(solution, problem, oracle, solver.monotone)
    return solution


def _check_statistics(
    solution: Any, problem: Problem, oracle: CountingOracle, monotone: bool
) -> None:
    where, history = f"{problem.name}: ", np.array(solution.history)
    if monotone:
        require((np.diff(history) <= 0.0).all(), where + "the objective went up")
    require(solution.n_iter == len(history), where + "n_iter is not the length of the history")
    require(solution.n_evaluations == oracle.n_evaluations, where + "n_evaluations is wrong")
    require(solution.n_products == oracle.n_products, where + "n_products is wrong")
    for name, numbers in solution.details.items():
        require(len(numbers) == solution.n_iter, f"{where}{name} is not one number per iteration")
    require(np.isfinite(solution.gradient_norm), where + "gradient_norm is not finite")
    require(solution.elapsed >= 0.0, where + "elapsed is below zero")
    value = problem.value(solution.weights)
    assert_allclose(solution.value, value, rtol=1e-12, err_msg=where + "value of the weights")
    if len(history):
        require(min(history) == solution.value, where + "value is not the history's lowest")
    if len(history) and monotone:
        require(history[0] <= problem.value(problem.start), where + "the first step went up")


def _check_l1(make_solver: SolverFactory) -> None:
    if not make_solver().handles_l1:
        try:
            make_solver(l1=1.0)
        except TypeError:
            return
        raise AssertionError("l1 > 0 must be refused by a solver without handles_l1")
    for problem in l1_problems():
        found = _check_solution(make_solver, problem)
        message = f"{problem.name}: which weights are zero"
        assert_array_equal(found.weights == 0.0, problem.solution == 0.0, err_msg=message)


def _check_history(make_solver: SolverFactory) -> None:
    """The callback sees every iteration once, as it is."""
    problem, seen = lengthy_problem(make_solver()), []
    solution = make_solver(max_iter=25, tol=1e-8).minimize(
        CountingOracle(problem),
        problem.start,
        lambda state: seen.append((state.iteration, state.value, problem.value(state.weights))),
    )
    require([s[0] for s in seen] == list(range(1, solution.n_iter + 1)), "iterations in order")
    assert_array_equal([s[1] for s in seen], solution.history, err_msg="values of the callback")
    values = [s[2] for s in seen]
    assert_allclose(values, solution.history, rtol=1e-12, err_msg="weights of the callback")


def _check_callback(make_solver: SolverFactory) -> None:
    """A callback that returns True ends the run at that iterate, or at a better earlier one."""
    problem = lengthy_problem(make_solver())
    kept = Kept(problem)

    def stop_at_third(state: Iterate) -> bool:
        kept.add(state)
        return bool(state.iteration == 3)

    solution = make_solver(max_iter=1000, tol=1e-8).minimize(
        CountingOracle(problem), problem.start, stop_at_third
    )
    require(solution.status is Status.STOPPED, f"stopped by a callback: {solution.status}")
    require(solution.n_iter == kept.n == 3, f"stopped at 3, went on to {solution.n_iter}")
    assert_array_equal(solution.weights, kept.best, err_msg="weights of the stopped iterate")


class Kept:
    """The iterate with the lowest value that a callback has seen, the start among them."""

    def __init__(self, problem: Problem) -> None:
        self.best, self._value, self.n = problem.start, problem.value(problem.start), 0

    def add(self, state: Iterate) -> None:
        """Look at one more."""
        self.n += 1
        if state.value < self._value:
            self.best, self._value = state.weights.copy(), state.value


def _check_interruption(make_solver: SolverFactory) -> None:
    """Ctrl-C inside an evaluation keeps the best weights so far."""
    problem = lengthy_problem(make_solver())
    for evaluation in (1, 2, 9):
        kept = Kept(problem)
        solution = make_solver(max_iter=1000, tol=1e-8).minimize(
            CountingOracle(problem, interrupt_at=evaluation), problem.start, kept.add
        )
        where = f"interrupted at evaluation {evaluation}"
        require(solution.status is Status.INTERRUPTED, f"{where}: {solution.status}")
        assert_array_equal(solution.weights, kept.best, err_msg=f"{where}: weights")
        require(solution.n_iter == kept.n, f"{where}: n_iter is {solution.n_iter}")


def _check_limits(make_solver: SolverFactory) -> None:
    problem = lengthy_problem(make_solver())
    for limit in (1, 4):
        solution = make_solver(max_iter=limit, tol=1e-8).minimize(
            CountingOracle(problem), problem.start
        )
        require(solution.status is Status.MAX_ITERATIONS, f"max_iter={limit}: {solution.status}")
        require(solution.n_iter == limit, f"max_iter={limit}: {solution.n_iter} iterations")
    oracle = CountingOracle(problem)
    solution = make_solver().minimize(oracle, problem.solution)
    require(solution.status is Status.CONVERGED, f"from the solution: {solution.status}")
    require(solution.n_iter == 0, f"from the solution: {solution.n_iter} iterations")
    require(oracle.n_evaluations == 1, f"from the solution: {oracle.n_evaluations} evaluations")
    assert_array_equal(solution.weights, problem.solution, err_msg="from the solution: weights")
