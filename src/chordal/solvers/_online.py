"""What online solvers share: passes over the examples, each in a new order."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal._validate import RandomState
from chordal.oracle import Floats, Problem
from chordal.oracle.examples import ExampleOracle, Learner, Rule
from chordal.solvers._base import Callback, Course, Solver, number, require_alike
from chordal.solvers._keeping import Keeper


class OnlineRun(Course):
    """One run of an online solver."""

    kept: ClassVar[tuple[str, ...]] = (*Course.kept, "random")

    def __init__(
        self,
        oracle: ExampleOracle,
        start: Floats,
        callback: Callback | None,
        solver: Solver,
        keeper: Keeper | None = None,
    ) -> None:
        super().__init__(oracle, start, callback, solver, keeper)
        self.random = np.random.default_rng(solver.random_state)  # for the orders of examples

    def order(self) -> NDArray[np.int64]:
        """All examples, in a new order."""
        return self.random.permutation(self.oracle.n_examples)

    def visit(self, learner: Learner, order: NDArray[np.int64]) -> float:
        """Learn from these examples in turn; the sum of the losses met on the way."""
        self.n_evaluations += len(order)
        return learner.visit(order)

    def go(
        self, learner: Learner, order: NDArray[np.int64], keep: bool = True
    ) -> tuple[Floats, float]:
        """A pass over these examples: the weights after it, and the losses.

        What was learned stays if the pass is interrupted; without `keep`, in the first alone.
        """
        try:
            value = self.visit(learner, order)
        except KeyboardInterrupt:
            if keep or self.n_iter == 0:
                self.weights = _finite(learner.weights())
            raise
        return _finite(learner.weights()), value


def _finite(weights: Floats) -> Floats:
    if not np.isfinite(weights).all():
        raise OverflowError
    return weights


@dataclass(eq=False)
class OnlineSolver(Solver):
    """Learns from one example after another; an iteration is a pass over all of them.

    The value of an iteration is the sum of the losses met during the pass, each before its example
    changed the weights. No gradient of the whole objective is computed, so that its norm is NaN;
    `n_evaluations` counts visits to examples.

    Parameters
    ----------
    max_iter : int
        Most passes over the examples.
    tol : float
        Converged when the mean loss of a pass is below this.
    random_state : int, Generator or None
        Seed of the orders of examples.
    """

    max_iter: int = number(100, minimum=1)
    random_state: RandomState = None

    asks: ClassVar[type] = ExampleOracle
    course: ClassVar[type[Course]] = OnlineRun
    seeded: ClassVar[bool] = True

    def check(self, problem: Problem) -> None:
        """Refuse soft and partial labels, and groups of weights."""
        super().check(problem)
        require_alike(self, problem)

    @abstractmethod
    def _run(self, run: OnlineRun) -> Status:
        """Pass over the examples until a status is reached, keeping `run` up to date."""


class MistakeDriven(OnlineSolver):
    """Online solvers that change the weights where the best labelling is wrong.

    Each minimises a loss of its own, the first of `objectives`, with costs that its rule defines;
    `l2` has no part in it.
    """

    def check(self, problem: Problem) -> None:
        """Refuse another objective than the rule's own, and costs."""
        super().check(problem)
        objective = problem.objective
        if not objective.additive or (objective.cost and objective.cost.name != "hamming"):
            raise UnsupportedError(
                f"solver {self.name!r} counts wrong labels in its own way, and takes no cost, "
                "scaling or class_weight; use another solver, such as 'block_frank_wolfe'"
            )

    @abstractmethod
    def _rule(self) -> Rule:
        """How a mistake changes the weights."""

    def _run(self, run: OnlineRun) -> Status:
        rule, status = self._rule(), None
        learner = run.keep("learner", run.oracle.learner(rule, run.weights))
        while status is None:
            run.between(copy=True)
            run.weights, run.value = run.go(learner, run.order())
            mean = run.value / max(run.oracle.n_examples, 1)
            # Without a mistake the last weights stay as they are; their mean still moves.
            converged = mean < self.tol or (mean == 0.0 and not rule.averaged)
            status = run.record(run.weights, run.value, run.gradient_norm, converged)
        return status
