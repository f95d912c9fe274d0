"""Our side: a fit whose evaluations and iterations are timed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from chordal import ChainCRF
from chordal._blocks import run_in_turn
from chordal.oracle import DataOracle, Floats
from chordal.solvers import SOLVERS, Callback, Iteration, Solution, Solver


@dataclass
class Times:
    """Seconds of a fit's parts."""

    n_weights: int = 0
    evaluations: list[float] = field(default_factory=list)  # value_grad alone
    iterations: list[float] = field(default_factory=list)  # with the solver's part, per evaluation


class _TimedOracle:
    def __init__(self, oracle: DataOracle, seconds: list[float]) -> None:
        self._oracle, self._seconds = oracle, seconds
        self.n_weights, self.run = oracle.n_weights, run_in_turn
        self.noisy, self.without_l1 = oracle.noisy, oracle.without_l1

    def value_grad(self, weights: Floats) -> tuple[float, Floats]:
        start = time.perf_counter()
        answer = self._oracle.value_grad(weights)
        self._seconds.append(time.perf_counter() - start)
        return answer

    def recycle(self, vector: Floats) -> None:
        self._oracle.recycle(vector)


class _TimedSolver(Solver):
    """Another solver, with a clock around each evaluation."""

    def __init__(self, inner: Solver, seconds: list[float]) -> None:
        super().__init__(inner.max_iter, inner.tol)
        self._inner, self._seconds = inner, seconds

    def minimize(
        self, oracle: Any, start: Floats, callback: Callback | None = None, keeper: Any = None
    ) -> Solution:
        return self._inner.minimize(_TimedOracle(oracle, self._seconds), start, callback, keeper)

    def _run(self, run: Any) -> Any:
        raise NotImplementedError  # the inner solver runs


def timed_fit(
    X: list[Any],
    y: list[list[str]],
    *,
    l2: float,
    n_jobs: int,
    max_iter: int,
    skip: int,
    objective: str = "likelihood",
) -> Times:
    """Fit for so many iterations. Of the first `skip`, only the evaluations are kept.

    All of it happens inside `fit`, which holds BLAS to one thread.
    """
    times, ended = Times(), []

    def note(state: Iteration) -> None:
        ended.append((time.perf_counter(), state.n_evaluations))

    solver = _TimedSolver(SOLVERS.resolve("lbfgs", max_iter=max_iter, tol=0.0), times.evaluations)
    crf = ChainCRF(objective, solver, l2=l2, n_jobs=n_jobs).fit(X, y, callback=note)
    times.n_weights = crf.fit_report_.n_weights
    for (before, n_before), (after, n_after) in zip(ended[skip - 1 :], ended[skip:], strict=False):
        times.iterations.append((after - before) / (n_after - n_before))
    return times
