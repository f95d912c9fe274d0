"""What online solvers share: passes over the examples, each in a new order."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._status import Status
from chordal._validate import RandomState
from chordal.oracle import ExampleOracle, Floats, Problem
from chordal.oracle.rules import Learner, Rule
from chordal.solvers._base import Callback, Course, Solver, require_alike


class OnlineSolver(Solver):
    """Learns from one example after another; an iteration is a pass over all of them.

    The value of an iteration is the sum of the losses met during the pass, each before its example
    changed the weights. No gradient of the whole objective is computed, so that its norm is NaN;
    `n_evaluations` counts visits to examples. It has converged when the mean loss of a pass is
    below `tol`; `random_state` is the seed of the orders of examples.
    """

    asks: type = ExampleOracle
    seeded: ClassVar[bool] = True

    def __init__(
        self,
        max_iter: int = 100,
        tol: float = 1e-5,
        l1: float = 0.0,
        random_state: RandomState = None,
    ) -> None:
        super().__init__(max_iter, tol, l1)
        self.random_state = random_state

    def check(self, problem: Problem) -> None:
        """Refuse soft and partial labels, and groups of weights."""
        super().check(problem)
        require_alike(self, problem)

    @abstractmethod
    def _run(self, run: OnlineRun) -> Status:
        """Pass over the examples until a status is reached, keeping `run` up to date."""

    def course(self) -> type[Course]:
        """Passes over the examples."""
        return OnlineRun


class OnlineRun(Course):
    """One run of an online solver."""

    def __init__(
        self, oracle: ExampleOracle, start: Floats, callback: Callback | None, solver: OnlineSolver
    ) -> None:
        super().__init__(oracle, start, callback, solver)
        self.gradient_norm = float("nan")
        self.random = np.random.default_rng(solver.random_state)

    def order(self) -> NDArray[np.int64]:
        """All examples, in a new order."""
        return self.random.permutation(self.oracle.n_examples)

    def visit(self, learner: Learner, order: NDArray[np.int64]) -> float:
        """Learn from these examples in turn; the sum of the losses met on the way."""
        self.n_evaluations += len(order)
        return learner.visit(order)

    def finite(self, weights: Floats) -> Floats:
        """The weights, if they are finite."""
        if not np.isfinite(weights).all():
            raise OverflowError
        return weights


class MistakeDriven(OnlineSolver):
    """Online solvers that change the weights where the best labelling is wrong.

    Each minimises a loss of its own, `loss`, with costs that its rule defines.
    """

    loss: ClassVar[str]

    def default_objective(self) -> str:
        """The loss that the rule goes down."""
        return self.loss

    def check(self, problem: Problem) -> None:
        """Refuse another objective than the rule's own, and costs."""
        super().check(problem)
        objective = problem.objective
        if objective.name != self.loss:
            raise UnsupportedError(
                f"solver {self.name!r} minimises objective {self.loss!r}, not "
                f"{objective.name!r}; leave objective at 'auto', or use another solver"
            )
        if not objective.additive or (objective.cost and objective.cost.name != "hamming"):
            raise UnsupportedError(
                f"solver {self.name!r} counts wrong labels in its own way, and takes no cost, "
                "scaling or class_weight; use another solver, such as 'block_frank_wolfe'"
            )

    @abstractmethod
    def _rule(self) -> Rule:
        """How a mistake changes the weights."""

    def _run(self, run: OnlineRun) -> Status:
        rule = self._rule()
        learner = run.oracle.learner(rule, run.weights)
        while run.n_iter < self.max_iter:
            try:
                value = run.visit(learner, run.order())
            except KeyboardInterrupt:
                run.weights = run.finite(learner.weights())
                raise
            run.weights, run.value = run.finite(learner.weights()), value
            if run.record(run.weights, value, run.gradient_norm) is not None:
                return Status.STOPPED
            mean = value / max(run.oracle.n_examples, 1)
            # Without a mistake the last weights stay as they are; their mean still moves.
            if mean < self.tol or (mean == 0.0 and not rule.averaged):
                return Status.CONVERGED
        return Status.MAX_ITERATIONS
