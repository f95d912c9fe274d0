"""The base classes of solvers with a duality gap."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar, NoReturn

import numpy as np

from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal._validate import RandomState
from chordal.oracle import Floats, Problem, RegularisedOracle, asks_examples
from chordal.oracle.examples import DualOracle, DualRule
from chordal.solvers._base import Course, Solver, number, require_alike
from chordal.solvers._keeping import Keeper, LoopState
from chordal.solvers._solution import Callback, Solution

#: Objectives with a plane under the loss of every example; no loss is negative.
MARGINS = ("hinge", "crammer_singer", "one_vs_all", "one_vs_rest")


class DualRun(Course):
    """A run with the best primal value, its weights, and the best dual value."""

    kept: ClassVar[tuple[str, ...]] = (*Course.kept, "lower")

    def __init__(
        self,
        oracle: Any,
        start: Floats,
        callback: Callback | None,
        solver: Solver,
        keeper: Keeper | None = None,
    ) -> None:
        super().__init__(oracle, start, callback, solver, keeper)
        self.centre = np.zeros(len(start)) if oracle.centre is None else oracle.centre
        self.lower = -inf
        self.details = {"primal": [], "dual": [], "gap": []}

    def improve(self, weights: Floats, primal: float, dual: float) -> None:
        """Keep the weights if they are the best so far, and the higher dual value."""
        if not np.isfinite(primal) or not np.isfinite(weights).all():
            raise OverflowError
        if primal < self.value:
            self.weights, self.value = weights, primal
        self.lower = max(self.lower, dual)
        self.gap = max(self.value - self.lower, 0.0)  # rounding may leave −1e-16

    def plane(self, weights: Floats) -> tuple[float, float, Floats]:
        """The objective, and a plane under the loss with v = w − centre: offset and slope such that
        loss(centre + v) ≥ offset + ⟨slope, v⟩.
        """
        oracle, v = self.oracle, weights - self.centre
        self.n_evaluations += 1
        value, gradient = oracle.value_grad(weights)
        if not np.isfinite(value) or not np.isfinite(gradient @ gradient):
            raise OverflowError
        slope = gradient - oracle.l2 * v
        loss = value - 0.5 * oracle.l2 * float(v @ v)
        return value, loss - float(slope @ v), slope

    def finish(self) -> Status | None:
        """Count an iteration; returns a status if the run should end."""
        for name, value in (("primal", self.value), ("dual", self.lower), ("gap", self.gap)):
            self.details[name].append(value)
        close = self.gap <= self.solver.tol * abs(self.value)
        return self.record(self.weights, self.value, self.gradient_norm, close)


@dataclass
class _Order(LoopState):
    random: np.random.Generator  # for the orders of examples


@dataclass(eq=False)
class DualSolver(Solver):
    """Bounds the optimum of a convex loss + (l2/2) ‖w − centre‖² from above and below.

    The primal value is an upper bound of the minimum, the dual value a lower bound. Their
    difference, the gap, bounds the distance to the minimum. If groups of weights differ in l2, the
    solver scales the weights; a group without l2 gets a thousandth of the largest. `details` has
    the best "primal", "dual" and "gap" after each iteration. The gradient norm is not computed.

    Parameters
    ----------
    tol : float, default=1e-3
        The run converges when the duality gap is at most this fraction of the primal value.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> X, y = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"]]], [["D", "N", "V"], ["D", "N"]]
    >>> crf = ChainCRF("hinge", "block_frank_wolfe", l2=0.1, random_state=0).fit(X, y)
    >>> crf.predict(X), crf.fit_report_.gap <= 1e-3 * crf.objective_
    ([['D', 'N', 'V'], ['D', 'N']], True)
    """

    tol: float = number(1e-3, minimum=-inf)

    asks: ClassVar[type] = RegularisedOracle
    course: ClassVar[type[Course]] = DualRun
    scales: ClassVar[bool] = True

    def check(self, problem: Problem) -> None:
        """Raise an error for problems without a duality gap."""
        super().check(problem)
        objective, l2 = problem.objective, problem.l2
        if asks_examples(self.asks) and not objective.additive:
            raise UnsupportedError(
                f"solver {self.name!r} has dual variables of single labels and transitions, into "
                f"which objective {objective.name!r} ({objective!r}) does not decompose: use "
                "scaling='margin', or another solver"
            )
        if not objective.convex:
            raise UnsupportedError(
                f"solver {self.name!r} needs a convex objective, and {objective.name!r} is not "
                "convex"
            )
        require_alike(self, problem)
        if problem.exempt and not self.scales:
            raise UnsupportedError(
                f"solver {self.name!r} needs one l2 > 0 for all weights, but some are not "
                "penalised, such "
                "as intercepts; use 'one_slack' or 'lbfgs', or fit_intercept=False"
            )
        if not isinstance(l2, Mapping) and not l2 > 0.0:
            raise ValueError(
                f"l2 must be above 0 for solver {self.name!r}, whose duality gap depends on it; "
                f"got {l2!r}"
            )

    @abstractmethod
    def _run(self, run: DualRun) -> Status:
        """Iterate until a status is reached, keeping `run` up to date."""

    def require(self, oracle: Any) -> None:
        """Raise an error for an oracle without a dual."""
        super().require(oracle)
        if not oracle.l2 > 0.0:
            raise ValueError(
                f"solver {self.name!r} needs l2 > 0, got {oracle.l2}: without it there is no dual"
            )

    def minimize(
        self,
        oracle: object,
        start: Floats,
        callback: Callback | None = None,
        keeper: Keeper | None = None,
    ) -> Solution:
        """Minimise. Ctrl-C ends the run with the best weights so far."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
            return super().minimize(oracle, start, callback, keeper)


@dataclass(eq=False)
class BlockSolver(DualSolver):
    """Improves the dual variables of one example after another; an iteration is a pass.

    The run starts at the centre of the regularisation, where the dual variables are known; other
    starting weights are an error.

    Parameters
    ----------
    max_iter : int, default=1000
        Maximum number of passes over the examples.
    random_state : int, Generator or None, default=None
        Seed of the order of examples.
    """

    random_state: RandomState = None

    asks: ClassVar[type] = DualOracle
    seeded: ClassVar[bool] = True
    rule: ClassVar[DualRule]

    def check(self, problem: Problem) -> None:
        """As in `DualSolver`; also an error for given starting weights."""
        super().check(problem)
        if problem.warm:
            self._refuse_start()

    def _refuse_start(self) -> NoReturn:
        raise UnsupportedError(
            f"solver {self.name!r} cannot start from given weights, because it has no dual "
            "variables for them: set warm_start=False, or use another solver, such as 'one_slack'"
        )

    def _run(self, run: DualRun) -> Status:
        if not np.array_equal(run.start, run.centre):
            self._refuse_start()
        random = run.keep("order", _Order(np.random.default_rng(self.random_state))).random
        oracle, status = run.oracle, None
        learner = run.keep("learner", oracle.dual_learner(self.rule))
        while status is None:
            run.between(copy=True)
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
