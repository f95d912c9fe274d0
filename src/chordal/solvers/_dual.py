"""What solvers with a duality gap share: bounds from both sides, and when they are close enough."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal.oracle import DualOracle, Floats
from chordal.solvers._base import Callback, Course, Solution, Solver


class DualSolver(Solver):
    """Bounds the optimum of a convex loss + (l2/2) ‖w − centre‖² from both sides.

    The primal value of the weights is an upper bound, the dual value a lower one; their difference,
    the gap, says how far the weights are from the best at most. `details` holds "primal",
    "dual" and "gap", the best so far, after each iteration. No gradient norm is computed.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    tol : float
        Converged when gap ≤ tol · |primal|.
    l1 : float
        Must be 0.
    """

    dual: ClassVar[bool] = True
    asks: ClassVar[type]  # the protocol of its oracle

    def __init__(self, max_iter: int = 1000, tol: float = 1e-3, l1: float = 0.0) -> None:
        super().__init__(max_iter, tol, l1)

    @abstractmethod
    def _run(self, run: DualRun) -> Status:
        """Iterate until a status is reached, keeping `run` up to date."""

    def minimize(self, oracle: Any, start: Floats, callback: Callback | None = None) -> Solution:
        """Minimise. Ctrl-C ends the run with the best weights so far."""
        if not _fits(oracle, self.asks):
            members = [n for n in protocol_members(self.asks) if not hasattr(oracle, n)]
            raise UnsupportedError(
                f"solver {self.name!r} needs an oracle with {', '.join(sorted(members))}, which "
                f"{type(oracle).__name__} does not have"
            )
        if not oracle.l2 > 0.0:
            raise ValueError(
                f"solver {self.name!r} needs l2 > 0, got {oracle.l2}: without it there is no dual"
            )
        run = DualRun(oracle, np.array(start, dtype=np.float64), callback, self)
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
                status = self._run(run)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except OverflowError:
            raise ValueError(
                f"solver {self.name!r} diverges: weights or scores are no longer finite; the "
                "features are too large: scale them"
            ) from None
        return run.solution(status)


def _fits(oracle: Any, protocol: type) -> bool:
    return isinstance(oracle, protocol)


def protocol_members(protocol: type) -> list[str]:
    """Fields and methods that a protocol asks for."""
    return [n for n in {**protocol.__annotations__, **vars(protocol)} if not n.startswith("_")]


class DualRun(Course):
    """One run: the best weights by their primal value, and the best dual value."""

    def __init__(
        self, oracle: Any, start: Floats, callback: Callback | None, solver: DualSolver
    ) -> None:
        super().__init__(start, callback, solver)
        self.oracle = oracle
        self.centre = np.zeros(len(start)) if oracle.centre is None else oracle.centre
        self.gradient_norm = float("nan")
        self.lower = -float("inf")
        self.details = {"primal": [], "dual": [], "gap": []}

    def improve(self, weights: Floats, primal: float, dual: float) -> None:
        """Keep the weights if they are the best so far, and the higher of the dual values."""
        if not np.isfinite(primal) or not np.isfinite(weights).all():
            raise OverflowError
        if primal < self.value:
            self.weights, self.value = weights, primal
        self.lower = max(self.lower, dual)
        self.gap = max(self.value - self.lower, 0.0)  # rounding may leave −1e-16

    def finish(self) -> Status | None:
        """Count an iteration; returns a status when the run should end."""
        for name, value in (("primal", self.value), ("dual", self.lower), ("gap", self.gap)):
            self.details[name].append(value)
        if self.record(self.weights, self.value, self.gradient_norm) is not None:
            return Status.STOPPED
        if self.gap <= self.solver.tol * abs(self.value):
            return Status.CONVERGED
        return Status.MAX_ITERATIONS if self.n_iter >= self.solver.max_iter else None


class Bundle:
    """Asks a `RegularisedOracle` for planes under its loss, in terms of v = w − centre."""

    def __init__(self, run: DualRun) -> None:
        self._run = run

    def plane(self, weights: Floats) -> tuple[float, float, Floats]:
        """The objective, and offset and slope: loss(centre + v) ≥ offset + ⟨slope, v⟩."""
        run, oracle = self._run, self._run.oracle
        run.n_evaluations += 1
        value, gradient = oracle.value_grad(weights)
        if not np.isfinite(value) or not np.isfinite(gradient @ gradient):
            raise OverflowError
        v = weights - run.centre
        slope = gradient - oracle.l2 * v
        loss = value - 0.5 * oracle.l2 * float(v @ v)
        return value, loss - float(slope @ v), slope


class BlockSolver(DualSolver):
    """Improves the dual variables of one example after another; an iteration is a pass.

    The first weights are the regularisation's centre, where the dual variables are known; other
    starts are refused.

    Parameters
    ----------
    max_iter : int
        Most passes over the examples.
    tol : float
        Converged when gap ≤ tol · |primal|.
    l1 : float
        Must be 0.
    random_state : int, Generator or None
        Seed of the orders of examples; the same seed gives the same weights.
    """

    blocks: ClassVar[bool] = True
    seeded: ClassVar[bool] = True
    asks: ClassVar[type] = DualOracle
    rule: ClassVar[str]

    def __init__(
        self, max_iter: int = 1000, tol: float = 1e-3, l1: float = 0.0, random_state: Any = None
    ) -> None:
        super().__init__(max_iter, tol, l1)
        self.random_state = random_state

    def _run(self, run: DualRun) -> Status:
        if not np.array_equal(run.weights, run.centre):
            raise UnsupportedError(
                f"solver {self.name!r} cannot start from given weights, for which it knows no dual "
                "variables: leave warm_start at False, or use another solver, such as 'one_slack'"
            )
        random = np.random.default_rng(self.random_state)
        oracle, learner = run.oracle, run.oracle.dual_learner(self.rule)
        status = None
        while status is None:
            run.n_evaluations += oracle.n_examples
            try:
                learner.visit(random.permutation(oracle.n_examples))
            except KeyboardInterrupt:
                if run.n_iter == 0:  # else the best weights so far stand
                    run.weights = learner.state()[0]
                raise
            weights, dual = learner.state()
            run.n_evaluations += oracle.n_examples
            run.improve(weights, oracle.value(weights), dual)
            status = run.finish()
        return status
