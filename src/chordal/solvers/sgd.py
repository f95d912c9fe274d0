"""Stochastic gradient descent on the likelihood, one example at a time."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from chordal._status import Status
from chordal._validate import check_number
from chordal.oracle import Floats, UpdateRule
from chordal.solvers._online import OnlineRun, OnlineSolver


@final
class Sgd(OnlineSolver):
    """Stochastic gradient descent with steps η₀ / (1 + λ η₀ t), λ = l2 / number of examples.

    The result is the weights after the pass with the lowest objective, which is estimated from the
    losses met on the way. The L2 term is applied lazily: a step costs what its example costs.

    Parameters
    ----------
    max_iter : int
        Most passes over the examples.
    tol : float
        Converged when the objective fell by less than this, relatively, in `period` passes.
    l1 : float
        Must be 0.
    random_state : int, Generator or None
        Seed of the orders of examples.
    learning_rate : float, optional
        η₀. None finds it: of the rates tried on a sample, the one that lowers the objective most.
    period : int
        See `tol`.
    first_rate, rate_factor : float
        The rates tried are first_rate · rate_factor^k, k = 0, 1, …, then −1, −2, ….
    sample_size, n_rates, max_trials : int
        Examples in the sample, rates that have to work in each direction, and most trials
        (CRFsuite's calibration.max_trials is one more than the trials it makes).

    References
    ----------
    Shalev-Shwartz, Singer and Srebro (2007), Pegasos: primal estimated sub-gradient solver for SVM;
    Bottou (2010), Large-scale machine learning with stochastic gradient descent.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> X, y = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"]]], [["D", "N", "V"], ["D", "N"]]
    >>> ChainCRF(solver=Sgd(max_iter=20, random_state=0), l2=0.1).fit(X, y).predict(X)
    [['D', 'N', 'V'], ['D', 'N']]
    """

    objective: ClassVar[str | None] = "likelihood"

    def __init__(
        self,
        max_iter: int = 1000,
        tol: float = 1e-6,
        l1: float = 0.0,
        random_state: Any = None,
        learning_rate: float | None = None,
        period: int = 10,
        first_rate: float = 0.1,
        rate_factor: float = 2.0,
        sample_size: int = 1000,
        n_rates: int = 10,
        max_trials: int = 19,
    ) -> None:
        super().__init__(max_iter, tol, l1, random_state)
        if learning_rate is not None:
            check_number("learning_rate", learning_rate, strict=True)
        check_number("first_rate", first_rate, strict=True)
        check_number("rate_factor", rate_factor, minimum=1.0, strict=True)
        counts = {
            "period": period,
            "sample_size": sample_size,
            "n_rates": n_rates,
            "max_trials": max_trials,
        }
        for name, value in counts.items():
            check_number(name, value, minimum=1, integer=True)
        self.learning_rate, self.period = learning_rate, period
        self.first_rate, self.rate_factor = first_rate, rate_factor
        self.sample_size, self.n_rates, self.max_trials = sample_size, n_rates, max_trials

    def _run(self, run: OnlineRun) -> Status:
        rate = self._calibrated(run) if self.learning_rate is None else self.learning_rate
        learner = run.oracle.learner(self._rule(run, rate), run.weights)
        while run.n_iter < self.max_iter:
            try:
                value = run.visit(learner, run.order())
            except KeyboardInterrupt:
                if run.n_iter == 0:  # else the best pass so far stands
                    run.weights = run.finite(learner.weights())
                raise
            weights = run.finite(learner.weights())
            value += run.oracle.penalty(weights)
            if value < run.value:
                run.weights, run.value = weights, value
            if run.record(weights, value, run.gradient_norm) is not None:
                return Status.STOPPED
            if run.n_iter > self.period:
                fall = run.history[-1 - self.period] - value
                if fall < self.tol * abs(value):
                    return Status.CONVERGED
        return Status.MAX_ITERATIONS

    def _rule(self, run: OnlineRun, rate: float) -> UpdateRule:
        decay = run.oracle.l2 / max(run.oracle.n_examples, 1)
        return UpdateRule("gradient", (decay, float(rate)))

    def _calibrated(self, run: OnlineRun) -> float:
        """The best of the rates that lower the objective of a sample within one pass."""
        sample = run.order()[: self.sample_size]
        before = self._trial(run, run.weights, sample, 0.0)
        rate, best_rate, best = self.first_rate, self.first_rate, float("inf")
        rising, left = True, self.n_rates
        for _ in range(self.max_trials):
            after = self._trial(run, run.weights, sample, rate)
            works = after < before
            left -= works
            if after < best:
                best, best_rate = after, rate
            if rising and not (works and left > 0):
                rising, left, rate = False, self.n_rates, self.first_rate
            elif left <= 0:
                break
            rate = rate * self.rate_factor if rising else rate / self.rate_factor
        return best_rate

    def _trial(
        self, run: OnlineRun, start: Floats, sample: NDArray[np.int64], rate: float
    ) -> float:
        """The objective of the sample during one pass over it; infinite if it diverges."""
        learner = run.oracle.learner(self._rule(run, rate), start)
        try:
            value = run.visit(learner, sample)
        except OverflowError:
            return float("inf")
        share = len(sample) / max(run.oracle.n_examples, 1)
        return value + share * run.oracle.penalty(learner.weights())
