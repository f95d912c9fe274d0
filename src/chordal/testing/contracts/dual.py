"""The contract of solvers with a duality gap: a max-margin problem whose solution is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._optional import needed
from chordal._status import Status
from chordal.potentials import Floats
from chordal.testing.contracts._common import Iterate, require

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Makes a solver from max_iter and tol, as every solver class does.
DualFactory = Callable[..., Any]


class _Planes(NamedTuple):
    values: Floats
    offsets: Floats
    slopes: csr_array


class Margins:
    """Σ ω_i max(0, 1 − ⟨ψ_i, w⟩) + (l2/2) ‖w − centre‖² with orthogonal ψ_i: two labellings each.

    Examples do not disturb each other, so that w* = centre + Σ α_i ψ_i / l2 with
    α_i = l2 (1 − ⟨ψ_i, centre⟩) / ‖ψ_i‖² cut to [0, ω_i]. Answers whatever a solver may ask.
    """

    def __init__(self, centred: bool = False, interrupt_at: int | None = None) -> None:
        rng = np.random.default_rng(0)
        axes, _ = np.linalg.qr(rng.normal(size=(8, 8)))
        self.psi = axes[:6] * np.geomspace(0.3, 3.0, 6)[:, None]
        self.weight = np.array([1.0, 0.5, 2.0, 1.0, 0.0, 1.5])
        self.l2, self.n_examples, self.n_weights = 0.7, 6, 8
        self.centre = rng.normal(size=8) if centred else None
        self.start = np.zeros(8) if self.centre is None else self.centre
        margin = self.l2 * (1.0 - self.psi @ self.start) / (self.psi**2).sum(axis=1)
        self.solution = self.start + np.clip(margin, 0.0, self.weight) @ self.psi / self.l2
        self.n_asked, self._interrupt_at = 0, interrupt_at

    def value(self, weights: Floats) -> float:
        """The regularised objective."""
        self._ask()
        offset = weights - self.start
        losses = self.weight * np.maximum(0.0, 1.0 - self.psi @ weights)
        return float(losses.sum()) + 0.5 * self.l2 * float(offset @ offset)

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        """The objective and a subgradient."""
        value = self.value(weights)
        wrong = self.weight * (self.psi @ weights < 1.0)
        return value, self.l2 * (weights - self.start) - wrong @ self.psi

    def planes(self, weights: Floats) -> _Planes:
        """A plane under every example's loss."""
        with needed("scipy", "chordal.testing"):
            import scipy.sparse as sp

        self._ask()
        wrong = self.weight * (self.psi @ weights < 1.0)
        slopes = sp.csr_array(-wrong[:, None] * self.psi)
        return _Planes(wrong + slopes @ weights, wrong, slopes)

    def dual_learner(self, rule: object) -> _Learner:
        """The best step for one α_i after another."""
        return _Learner(self)

    def _ask(self) -> None:
        self.n_asked += 1
        if self.n_asked == self._interrupt_at:
            raise KeyboardInterrupt


class _Learner:
    """α_i ∈ [0, ω_i] is moved to where the dual is highest."""

    def __init__(self, problem: Margins) -> None:
        self._problem, self._alpha = problem, np.zeros(problem.n_examples)

    def visit(self, order: NDArray[np.int64]) -> None:
        """Improve these examples in turn."""
        p = self._problem
        for i in order:
            loss = 1.0 - float(p.psi[i] @ self._weights())
            step = p.l2 * loss / float(p.psi[i] @ p.psi[i])
            self._alpha[i] = min(max(self._alpha[i] + step, 0.0), p.weight[i])

    def state(self) -> tuple[Floats, float]:
        """Weights and dual value."""
        p, v = self._problem, self._weights() - self._problem.start
        dual = float(self._alpha.sum()) - p.l2 * float(p.start @ v) - 0.5 * p.l2 * float(v @ v)
        return self._weights(), dual

    def _weights(self) -> Floats:
        return np.asarray(self._problem.start + self._alpha @ self._problem.psi / self._problem.l2)


def check_dual_solver(make_solver: DualFactory, tol: float = 1e-3) -> None:
    """Check a solver's bounds and weights where the solution is known, and how it stops.

    Raises
    ------
    AssertionError
        Saying which claim does not hold.

    Examples
    --------
    >>> from chordal.solvers.frank_wolfe import FrankWolfe
    >>> check_dual_solver(FrankWolfe)
    """
    _check_refusals(make_solver)
    for centred in (False, True):
        _check_bounds(make_solver, Margins(centred), tol)
    _check_callback(make_solver)
    _check_interruption(make_solver)
    _check_limits(make_solver)


def _check_refusals(make_solver: DualFactory) -> None:
    try:
        make_solver(l1=1.0)
    except TypeError:
        pass
    else:
        raise AssertionError("l1 > 0 must be refused by a solver with a dual")
    problem = Margins()
    problem.l2 = 0.0
    for oracle, error in ((problem, ValueError), (object(), UnsupportedError)):
        try:
            make_solver().minimize(oracle, problem.start)
        except error:
            continue
        raise AssertionError(f"l2 = 0 and a wrong oracle must be refused by a {error.__name__}")


def _check_bounds(make_solver: DualFactory, problem: Margins, tol: float) -> None:
    start = problem.start.copy()
    best = problem.value(problem.solution)
    solution = make_solver(max_iter=20_000, tol=tol).minimize(problem, start)
    assert_array_equal(start, problem.start, err_msg="the start was written to")
    require(solution.status is Status.CONVERGED, f"status is {solution.status}")
    require(solution.gap <= tol * abs(solution.value), "converged with too large a gap")
    primal, dual, gap = (np.array(solution.details[k]) for k in ("primal", "dual", "gap"))
    require(len(primal) == len(dual) == len(gap) == solution.n_iter, "details per iteration")
    require((primal >= best - 1e-9).all(), "a primal value below the optimum")
    require((dual <= best + 1e-9).all(), "a dual value above the optimum")
    assert_allclose(gap, primal - dual, atol=1e-12, err_msg="gap is not primal − dual")
    assert_array_equal(solution.history, primal, err_msg="history is not the primal")
    value = problem.value(solution.weights)
    assert_allclose(solution.value, value, rtol=1e-9, err_msg="value of the weights")
    away = 0.5 * problem.l2 * float(((solution.weights - problem.solution) ** 2).sum())
    require(away <= solution.gap + 1e-9, "weights are farther from the solution than the gap says")


def _check_callback(make_solver: DualFactory) -> None:
    seen: list[Any] = []

    def stop_at_second(state: Iterate) -> bool:
        seen.append((state.iteration, state.value, state.gap))
        return bool(state.iteration == 2)

    problem = Margins()
    solution = make_solver(max_iter=100, tol=0.0).minimize(problem, problem.start, stop_at_second)
    require(solution.status is Status.STOPPED, f"stopped by a callback: {solution.status}")
    require([s[0] for s in seen] == [1, 2], f"iterations in order: {seen}")
    assert_array_equal([s[1] for s in seen], solution.history, err_msg="values of the callback")
    assert_array_equal([s[2] for s in seen], solution.details["gap"], err_msg="gaps")


def _check_interruption(make_solver: DualFactory) -> None:
    for asked in (1, 3):
        problem = Margins(interrupt_at=asked)
        kept: list[Floats] = []
        solution = make_solver(max_iter=1000, tol=0.0).minimize(
            problem, problem.start, lambda state, kept=kept: kept.append(state.weights.copy())
        )
        if problem.n_asked < asked:
            continue  # it was done before
        where = f"interrupted at question {asked}"
        require(solution.status is Status.INTERRUPTED, f"{where}: {solution.status}")
        require(np.isfinite(solution.weights).all(), f"{where}: weights")
        if kept:
            assert_array_equal(solution.weights, kept[-1], err_msg=f"{where}: the best weights")


def _check_limits(make_solver: DualFactory) -> None:
    problem = Margins()
    solution = make_solver(max_iter=2, tol=-1.0).minimize(problem, problem.start)
    require(solution.status is Status.MAX_ITERATIONS, f"max_iter=2: {solution.status}")
    require(solution.n_iter == 2, f"max_iter=2: {solution.n_iter} iterations")
