"""The contract of solvers: problems whose solution is known by construction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from chordal._status import Status
from chordal.potentials import Floats
from chordal.testing.contracts._common import require

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
    atol: float = 1e-4  # of the weights found

    def value(self, weights: Floats) -> float:
        return self.function(weights)[0] + self.l1 * float(np.abs(weights).sum())


class CountingOracle:
    """Evaluates a function, counts, and presses Ctrl-C at a given evaluation."""

    def __init__(self, problem: Problem, interrupt_at: int | None = None) -> None:
        self.n_weights = len(problem.start)
        self.n_evaluations = 0
        self._function, self._interrupt_at = problem.function, interrupt_at

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        """The function's value and gradient."""
        self.n_evaluations += 1
        if self.n_evaluations == self._interrupt_at:
            raise KeyboardInterrupt
        return self._function(weights)


def check_solver(make_solver: SolverFactory) -> None:
    """Check a solver on functions with known minima, and how it stops.

    Raises
    ------
    AssertionError
        Saying which claim does not hold.

    Examples
    --------
    >>> from chordal.solvers.lbfgs import Lbfgs
    >>> check_solver(Lbfgs)
    """
    for problem in smooth_problems():
        if problem.convex or not make_solver().handles_l1:  # with L1, only convex ones are sure
            _check_solution(make_solver, problem)
    _check_l1(make_solver)
    _check_history(make_solver)
    _check_callback(make_solver)
    _check_interruption(make_solver)
    _check_limits(make_solver)


def smooth_problems() -> list[Problem]:
    """Smooth functions with known minima: well and badly scaled, curved, and with an edge."""
    centre = np.linspace(-2.0, 3.0, 12)
    return [
        Problem("quadratic", _quadratic(_correlated(100.0), centre), np.zeros(12), centre),
        Problem("ill-conditioned", *_ill_conditioned(centre)),
        Problem("barrier", _barrier, np.full(3, 20.0), np.array([1.0, 0.5, 0.25])),
        Problem("Rosenbrock", _rosenbrock, np.array([-1.2, 1.0]), np.ones(2), convex=False),
    ]


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


def _ill_conditioned(centre: Floats) -> tuple[Function, Floats, Floats]:
    hessian = np.diag(np.geomspace(1.0, 1e4, len(centre)))
    return _quadratic(hessian, centre), np.zeros_like(centre), centre


def _rosenbrock(w: Floats) -> tuple[float, Floats]:
    bend = w[1] - w[0] ** 2
    value = (1.0 - w[0]) ** 2 + 100.0 * bend**2
    return float(value), np.array([-2.0 * (1.0 - w[0]) - 400.0 * w[0] * bend, 200.0 * bend])


def _barrier(w: Floats) -> tuple[float, Floats]:
    """Σ k w_k − log w_k: infinite, with no gradient, where a weight is not positive."""
    if (w <= 0.0).any():
        return float("inf"), np.full(len(w), np.nan)
    k = np.array([1.0, 2.0, 4.0])
    return float((k * w - np.log(w)).sum()), k - 1.0 / w


def _check_solution(make_solver: SolverFactory, problem: Problem) -> Any:
    oracle, start = CountingOracle(problem), problem.start.copy()
    solver = make_solver(max_iter=1000, tol=1e-10, l1=problem.l1)
    solution = solver.minimize(oracle, start)
    where = f"{problem.name}: "
    require(solution.status is Status.CONVERGED, f"{where}status is {solution.status}")
    assert_array_equal(start, problem.start, err_msg=where + "the start was written to")
    message = where + "weights"
    assert_allclose(
        solution.weights, problem.solution, rtol=0.0, atol=problem.atol, err_msg=message
    )
    _check_statistics(solution, problem, oracle)
    return solution


def _check_statistics(solution: Any, problem: Problem, oracle: CountingOracle) -> None:
    where, history = f"{problem.name}: ", np.array(solution.history)
    require((np.diff(history) <= 0.0).all(), where + "the objective went up")
    require(solution.n_iter == len(history), where + "n_iter is not the length of the history")
    require(solution.n_evaluations == oracle.n_evaluations, where + "n_evaluations is wrong")
    require(np.isfinite(solution.gradient_norm), where + "gradient_norm is not finite")
    require(solution.elapsed >= 0.0, where + "elapsed is below zero")
    value = problem.value(solution.weights)
    assert_allclose(solution.value, value, rtol=1e-12, err_msg=where + "value of the weights")
    if len(history):
        require(history[-1] == solution.value, where + "value is not the history's last")
        require(history[0] <= problem.value(problem.start), where + "the first step went up")


def _check_l1(make_solver: SolverFactory) -> None:
    if not make_solver().handles_l1:
        try:
            make_solver(l1=1.0)
        except ValueError:
            return
        raise AssertionError("l1 > 0 must be refused by a solver without handles_l1")
    for problem in l1_problems():
        found = _check_solution(make_solver, problem)
        message = f"{problem.name}: which weights are zero"
        assert_array_equal(found.weights == 0.0, problem.solution == 0.0, err_msg=message)


def _check_history(make_solver: SolverFactory) -> None:
    """The callback sees every iteration once, as it is."""
    problem, seen = smooth_problems()[1], []
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
    """A callback that returns True ends the run at that iterate."""
    problem, kept = smooth_problems()[1], []

    def stop_at_third(state: Any) -> bool:
        kept.append(state.weights.copy())
        return bool(state.iteration == 3)

    solution = make_solver(max_iter=1000, tol=1e-8).minimize(
        CountingOracle(problem), problem.start, stop_at_third
    )
    require(solution.status is Status.STOPPED, f"stopped by a callback: {solution.status}")
    require(solution.n_iter == len(kept) == 3, f"stopped at 3, went on to {solution.n_iter}")
    assert_array_equal(solution.weights, kept[-1], err_msg="weights of the stopped iterate")


def _check_interruption(make_solver: SolverFactory) -> None:
    """Ctrl-C inside an evaluation keeps the best weights so far."""
    problem = smooth_problems()[1]
    for evaluation in (1, 2, 9):
        kept = [problem.start]
        solution = make_solver(max_iter=1000, tol=1e-8).minimize(
            CountingOracle(problem, interrupt_at=evaluation),
            problem.start,
            lambda state, kept=kept: kept.append(state.weights.copy()),
        )
        where = f"interrupted at evaluation {evaluation}"
        require(solution.status is Status.INTERRUPTED, f"{where}: {solution.status}")
        assert_array_equal(solution.weights, kept[-1], err_msg=f"{where}: weights")
        require(solution.n_iter == len(kept) - 1, f"{where}: n_iter is {solution.n_iter}")


def _check_limits(make_solver: SolverFactory) -> None:
    problem = smooth_problems()[1]
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
