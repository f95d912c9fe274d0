"""The base classes of online solvers: passes over the examples in a new order each."""

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
from chordal.solvers._base import Course, Solver, number, require_alike
from chordal.solvers._keeping import Keeper
from chordal.solvers._solution import Callback


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
        """All examples, in a new order: if they lie in blocks, one block after another."""
        limits, blocks = self.oracle.limits, np.arange(len(self.oracle.limits) - 1)
        if len(blocks) > 1:
            blocks = self.random.permutation(blocks)
        sizes = np.diff(limits)
        return np.concatenate([limits[k] + self.random.permutation(sizes[k]) for k in blocks])

    def visit(self, learner: Learner, order: NDArray[np.int64]) -> float:
        """Update on these examples in turn; returns the sum of their losses."""
        self.n_evaluations += len(order)
        return learner.visit(order)

    def go(
        self, learner: Learner, order: NDArray[np.int64], keep: bool = True
    ) -> tuple[Floats, float]:
        """A pass over these examples: the weights after it, and the sum of losses.

        If the pass is interrupted, its updates stay; without `keep`, only in the first pass.
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
    """Updates the weights after each example; an iteration is a pass over all examples.

    The value of an iteration is the sum of the losses during the pass, each before the update. The
    gradient norm is NaN, because the whole gradient is not computed. `n_evaluations` counts
    updates.

    Parameters
    ----------
    max_iter : int, default=100
        Maximum number of passes over the examples.
    tol : float
        The run converges when the mean loss of a pass is below this.
    random_state : int, Generator or None, default=None
        Seed of the order of examples.
    """

    max_iter: int = number(100, minimum=1)
    random_state: RandomState = None

    asks: ClassVar[type] = ExampleOracle
    course: ClassVar[type[Course]] = OnlineRun
    seeded: ClassVar[bool] = True

    @property
    def mixes(self) -> bool:
        """Whether it takes examples in a random order."""
        return True

    def check(self, problem: Problem) -> None:
        """Raise an error for soft or partial labels and for groups of weights."""
        super().check(problem)
        require_alike(self, problem)

    @abstractmethod
    def _run(self, run: OnlineRun) -> Status:
        """Pass over the examples until the run has a status; `run` is updated."""


class MistakeDriven(OnlineSolver):
    """Online solvers that update the weights if the best labelling is wrong.

    Each minimises its own loss, the first of `objectives`, with the costs of its rule; `l2` is not
    used.
    """

    def check(self, problem: Problem) -> None:
        """Raise an error for costs and for objectives other than the rule's own."""
        super().check(problem)
        objective = problem.objective
        if not objective.additive or (objective.cost and objective.cost.name != "hamming"):
            raise UnsupportedError(
                f"solver {self.name!r} has its own cost of wrong labels and does not support cost, "
                "scaling or class_weight; use another solver, such as 'block_frank_wolfe'"
            )

    @abstractmethod
    def _rule(self) -> Rule:
        """The update rule."""

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
