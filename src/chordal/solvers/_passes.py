"""Solvers that take a step per mini-batch, and runs whose value may rise."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import ClassVar, Protocol

import numpy as np

from chordal._saved import Stateful
from chordal._status import Status
from chordal._validate import RandomState
from chordal.oracle import BatchOracle, Floats, Oracle
from chordal.solvers._base import Course, Run, Solver, number
from chordal.solvers._keeping import Keeper, LoopState
from chordal.solvers._solution import Callback
from chordal.solvers._stopping import fallen

GROWTH = 1e6  # of the objective: no noise either
RISES = 10  # so many in a row, and above where the run began: no noise
SLOWEST = 0.5**10  # the least rate of steps, before a run is taken for converged

STRETCH = 25  # the first passes whose mean is taken, where values are noisy
ENOUGH = 100  # passes of a stretch whose mean may be compared with the next
SAME = 0.1  # of the weights: how much means of stretches may differ at the end


class Steps(Stateful, Protocol):
    """Turns gradients into steps, with memory of earlier steps."""

    def step(self, batch: Oracle, weights: Floats, gradient: Floats, rate: float) -> Floats:
        """New weights from a mini-batch, the old weights, the gradient there and a rate, which
        decreases from 1 during a run.
        """


@dataclass
class _Passing(LoopState):
    """The state that passes over mini-batches carry, besides their steps."""

    weights: Floats
    random: np.random.Generator


@dataclass
class _Averaging(LoopState):
    mean: Floats  # of the weights after the passes of this stretch
    before: Floats  # that of the stretch before
    n: int = 0  # passes of this stretch
    length: int = 0  # passes of the one before


@dataclass
class _Whole(LoopState):
    weights: Floats
    gradient: Floats


class WatchedRun(Run):
    """A run whose value may rise: it keeps the best iterate and detects divergence.

    The result is the weights with the lowest value so far, including the start. The run raises an
    error if the value is not finite, is a million times the first, or rises ten times in a row to
    above the first.
    """

    kept: ClassVar[tuple[str, ...]] = (
        *Run.kept,
        *("first", "_last", "_rises", "_bests", "rate", "_wait"),
    )

    def __init__(
        self,
        oracle: Oracle,
        start: Floats,
        callback: Callback | None,
        solver: Solver,
        keeper: Keeper | None = None,
    ) -> None:
        super().__init__(oracle, start, callback, solver, keeper)
        self.first = self._last = nan  # values
        self._rises, self._bests = 0, list[float]()
        self.rate, self._wait = 1.0, 0  # of steps, and iterations since it changed

    def begin(self) -> Status | None:
        """Evaluate the starting weights."""
        status = super().begin()
        self.first = self._last = self.value
        self._bests = [self.value]
        return status

    def refuse_growth(self, value: float, weights: Floats) -> None:
        """Raise an error if the value shows that steps are too large."""
        far = GROWTH * max(1.0, abs(self.first))
        if not value < self.first + far or not np.isfinite(weights).all():
            self._refuse(f"the objective went from {self.first:.6g} to {value:.6g}")

    def follow(
        self, weights: Floats, value: float, gradient: Floats | None = None
    ) -> Status | None:
        """Count an iteration of any value; returns a status if the run should end."""
        self.refuse_growth(value, weights)
        self._rises = self._rises + 1 if value > self._last else 0
        self._last = value
        if self._rises >= RISES and value > self.first:
            self._refuse(
                f"the objective rose {RISES} times in a row, from {self.first:.6g} to {value:.6g}"
            )
        norm = nan if gradient is None else float(np.linalg.norm(gradient))
        if value < self.value:
            self.weights, self.value, self.gradient_norm = weights, value, norm
        self._bests.append(self.value)
        small = self.solver.tol * max(1.0, float(np.linalg.norm(weights)))
        return self.record(weights, value, norm, norm <= small and value == self.value)

    def settled(self, window: int) -> bool:
        """Whether the lowest value fell by less than the fraction tol in the last n iterations."""
        fall = fallen(self._bests, self.value, window + 1)
        return fall < self.solver.tol * abs(self.value)

    def steady(self, window: int) -> bool:
        """Whether the value has settled and is at its lowest, not oscillating above it."""
        close = self._last - self.value <= self.solver.tol * abs(self.value)
        return self.settled(window) and close

    def slow_down(self, window: int) -> Status | None:
        """Halve the rate if the value has settled; returns a status if that did not help before."""
        self._wait += 1
        if self._wait < window or not self.settled(window):
            return None
        self._wait, self.rate = 0, 0.5 * self.rate
        return Status.CONVERGED if self.rate < SLOWEST else None

    def refuse_fruitless(self, n_iter: int) -> None:
        """Raise an error if no step so far lowered the objective below its start."""
        if self.n_iter == n_iter and self.value == self.first < self._last:
            self._refuse(
                f"no step in {n_iter} iterations lowered the objective, which went from "
                f"{self.first:.6g} to {self._last:.6g}"
            )

    def _refuse(self, what: str) -> None:
        raise ValueError(
            f"solver {self.solver.name!r} diverges: {what}; {self.solver.remedy()}, "
            "or scale the features"
        )


@dataclass(eq=False)
class PassSolver(Solver):
    """Takes a step per mini-batch; an iteration is a pass over all mini-batches in a new order.

    The objective of a pass is the sum of the mini-batch objectives before their steps. When its
    lowest value stops falling, steps are halved; the run converges when that no longer helps. The
    result is the weights after the pass with the lowest value; its objective and gradient are
    evaluated at the end. With a single batch, the objective of every iteration is exact.

    Parameters
    ----------
    max_iter : int, default=1000
        Maximum number of passes over the examples.
    tol : float, default=3e-3
        Steps are halved when the lowest objective of a pass did not fall by this fraction for a few
        passes (ten or more with a single batch). The run converges after ten times. With a single
        batch, also when ‖gradient‖ < tol · max(1, ‖w‖).
    random_state : int, Generator or None, default=None
        Seed of the mini-batches and of their order.
    batch_size : int or None, default=64
        Number of examples in a mini-batch. None: all examples, with one step per pass.
    """

    max_iter: int = number(1000, minimum=1)
    tol: float = number(3e-3, minimum=-np.inf)
    random_state: RandomState = None
    batch_size: int | None = number(64, minimum=1)

    asks: ClassVar[type] = BatchOracle
    asks_whole: ClassVar[type] = Oracle  # without mini-batches
    course: ClassVar[type[Course]] = WatchedRun
    monotone: ClassVar[bool] = False
    robust: ClassVar[bool] = False
    seeded: ClassVar[bool] = True
    passes: ClassVar[int] = 2  # without a lower value, before steps are halved
    restarts: ClassVar[bool] = (
        True  # one batch, smaller steps: from the best weights, without a memory
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size is None:
            self.asks = self.asks_whole  # type: ignore[misc]

    @abstractmethod
    def _steps(self, run: Run, batches: Sequence[Oracle]) -> Steps:
        """The step rule, with empty memory."""

    def _run(self, run: WatchedRun) -> Status:
        batches = [run.oracle] if self.batch_size is None else run.oracle.batches()
        steps = run.keep("steps", self._steps(run, batches))
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is said in our own words
            if run.noisy:
                return self._noisy(run, batches, steps)
            if len(batches) == 1:
                return self._whole(run, batches[0], steps)
            status = self._passes(run, batches, steps)
        run.value, gradient = run.evaluate(run.weights)
        run.gradient_norm = float(np.linalg.norm(gradient))
        if run.value >= run.first:  # a good start, and too much noise
            run.weights, run.value = run.start, run.first
            run.gradient_norm = float(np.linalg.norm(run.gradient))
            return status if status is Status.STOPPED else Status.STALLED
        return status

    def _whole(self, run: WatchedRun, batch: Oracle, steps: Steps) -> Status:
        """A single batch: the objective after each step is known."""
        now, status = run.keep("whole", _Whole(run.weights, run.gradient)), None
        while status is None:
            run.between(copy=True)
            rate = run.rate
            weights = steps.step(batch, now.weights, now.gradient, rate)
            run.refuse_growth(0.0, weights)
            value, gradient = run.ask(batch, weights)
            status = run.follow(weights, value, gradient) or run.slow_down(self.window)
            if run.rate < rate and status is None and self.restarts:
                weights, steps = run.weights, run.keep("steps", self._steps(run, [batch]))
                gradient = run.ask(batch, weights)[1]
            now.weights, now.gradient = weights, gradient
        return status

    def _passing(self, run: WatchedRun) -> _Passing:
        return run.keep("passing", _Passing(run.weights, np.random.default_rng(self.random_state)))

    def _passes(self, run: WatchedRun, batches: Sequence[Oracle], steps: Steps) -> Status:
        now, status = self._passing(run), None
        while status is None:
            run.between(copy=True)
            order = [batches[k] for k in now.random.permutation(len(batches))]
            now.weights, value = self._pass(run, order, steps, now.weights, run.rate)
            status = run.follow(now.weights, value) or run.slow_down(self.passes)
        return status

    def _noisy(self, run: WatchedRun, batches: Sequence[Oracle], steps: Steps) -> Status:
        """For objectives estimated from samples: values are not compared, and steps decrease as
        1/√k.

        The result is the mean of the weights over the last two stretches; each stretch is as long
        as all passes before it. The run ends when both stretches have nearly the same mean.
        """
        now, status = self._passing(run), None
        own = run.keep("mean", _Averaging(run.weights, run.weights))
        while status is None:
            run.between(copy=True)
            order = [batches[k] for k in now.random.permutation(len(batches))]
            rate = 1.0 / float(np.sqrt(1.0 + run.n_iter))
            now.weights, value = self._pass(run, order, steps, now.weights, rate)
            own.n += 1
            own.mean = own.mean + (now.weights - own.mean) / own.n
            run.weights = (own.n * own.mean + own.length * own.before) / (own.n + own.length)
            run.value, run.gradient_norm = value, nan
            status = run.record(run.weights, value, nan, converged=False)
            if status is None and run.n_iter >= STRETCH and 2 * own.n >= run.n_iter:
                if own.length >= ENOUGH and self.tol >= 0.0 and _close(own.mean, own.before):
                    return Status.SETTLED
                own.before, own.length, own.n = own.mean, own.n, 0
        return status

    def _pass(
        self, run: WatchedRun, batches: list[Oracle], steps: Steps, weights: Floats, rate: float
    ) -> tuple[Floats, float]:
        """A step for each mini-batch: the weights after them, and the values before each."""
        value = 0.0
        for batch in batches:
            own, gradient = run.ask(batch, weights)
            value += own
            weights = steps.step(batch, weights, gradient, rate)
            run.refuse_growth(0.0 if run.noisy else value, weights)
        return weights, value


def _close(mean: Floats, before: Floats) -> bool:
    return float(np.linalg.norm(mean - before)) <= SAME * float(np.linalg.norm(mean))
