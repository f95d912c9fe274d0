"""What solvers share that pass over mini-batches, a step for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, cast

import numpy as np

from chordal._status import Status
from chordal._validate import RandomState, check_number
from chordal.oracle import BatchOracle, Floats, Oracle, SecondOrderOracle
from chordal.solvers._base import Run, Solver
from chordal.solvers._divergence import Watch

PASSES = 2  # without a lower value, before steps are halved
MAX_HALVINGS = 10  # before a run is taken for converged

Evaluated = tuple[float, Floats]


class Batch:
    """A mini-batch's objective; the run counts what is asked of it."""

    def __init__(self, oracle: Oracle, run: Run) -> None:
        self._oracle, self._run = oracle, run

    def value_grad(self, weights: Floats) -> Evaluated:
        """The batch's objective and gradient."""
        return self._run.ask(self._oracle, weights)

    def hess_vec(self, weights: Floats, direction: Floats) -> Floats:
        """The batch's Hessian times the direction."""
        self._run.n_products += 1
        return cast(SecondOrderOracle, self._oracle).hess_vec(weights, direction)


class Stepper(ABC):
    """The memory of one run: how a gradient becomes a step."""

    @abstractmethod
    def step(
        self, batch: Batch, weights: Floats, here: Evaluated, rate: float
    ) -> tuple[Floats, Evaluated | None]:
        """New weights, and what the batch's objective is there if that was asked.

        `here` is the objective at the old weights; `rate` falls from 1 in the course of a run.
        """


class PassSolver(Solver):
    """Takes a step for every mini-batch; an iteration is a pass over all of them, in a new order.

    During a pass the objective is the sum of what the mini-batches had before their steps. Where
    its lowest value so far does not fall any more, steps are halved; the run has converged when
    that no longer helps. The result is the weights after the pass with the lowest value, and its
    objective and gradient are evaluated at the end. With one batch, the objective of every
    iteration is that of its weights.

    Steps are halved when the lowest value fell by less than `tol`, relatively, in two passes (with
    one batch: in ten iterations). With one batch, it has also converged when
    ‖gradient‖ < tol · max(1, ‖w‖).
    """

    asks: type = BatchOracle
    asks_whole: ClassVar[type] = Oracle  # without mini-batches
    monotone: ClassVar[bool] = False
    robust: ClassVar[bool] = False
    seeded: ClassVar[bool] = True

    def __init__(
        self,
        max_iter: int,
        tol: float,
        l1: float,
        random_state: RandomState,
        batch_size: int | None,
    ) -> None:
        super().__init__(max_iter, tol, l1)
        if batch_size is not None:
            check_number("batch_size", batch_size, minimum=1, integer=True)
        else:
            self.asks = self.asks_whole
        self.random_state, self.batch_size = random_state, batch_size

    @abstractmethod
    def _stepper(self, run: Run, batches: list[Batch]) -> Stepper:
        """A fresh memory."""

    @abstractmethod
    def _advice(self) -> str:
        """What to try where the run diverges."""

    def _run(self, run: Run) -> Status:
        if run.converged():
            return Status.CONVERGED
        oracles = [run.oracle]
        if self.batch_size is not None:
            oracles = list(cast(BatchOracle, run.oracle).batches())
        batches = [Batch(oracle, run) for oracle in oracles]
        stepper, watch = self._stepper(run, batches), Watch(run, self._advice())
        start, first = run.weights, run.value
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is said in our own words
            if run.noisy:
                return self._noisy(run, batches, stepper, watch)
            if len(batches) == 1:
                return self._whole(run, batches[0], stepper, watch)
            status = self._passes(run, batches, stepper, watch)
        run.value, gradient = run.evaluate(run.weights)
        run.gradient_norm = float(np.linalg.norm(gradient))
        if run.value >= first:  # a good start, and too much noise
            run.weights, run.value = start, first
            run.gradient_norm = float(np.linalg.norm(run.gradient))
            return status if status is Status.STOPPED else Status.STALLED
        return status

    def _whole(self, run: Run, batch: Batch, stepper: Stepper, watch: Watch) -> Status:
        """One batch: its objective after a step is known before the next."""
        weights, here, rate = run.weights, (run.value, run.gradient), Rate(self.window)
        while True:
            weights, there = stepper.step(batch, weights, here, rate.value)
            watch.check(0.0, weights)
            here = batch.value_grad(weights) if there is None else there
            status = watch.record(weights, *here) or rate.after(watch)
            if status is not None:
                return status

    def _passes(self, run: Run, batches: list[Batch], stepper: Stepper, watch: Watch) -> Status:
        random = np.random.default_rng(self.random_state)
        weights, rate = run.weights, Rate(PASSES)
        while True:
            value = 0.0
            for k in random.permutation(len(batches)):
                here = batches[k].value_grad(weights)
                value += here[0]
                weights, _ = stepper.step(batches[k], weights, here, rate.value)
                watch.check(value, weights)
            status = watch.record(weights, value) or rate.after(watch)
            if status is not None:
                return status

    def _noisy(self, run: Run, batches: list[Batch], stepper: Stepper, watch: Watch) -> Status:
        """Values that come from samples are not compared: steps fall as 1/√k, to the last pass.

        The result is the mean of the weights after the passes of the second half.
        """
        random = np.random.default_rng(self.random_state)
        weights, mean, n = run.weights, np.zeros_like(run.weights), 0
        while run.n_iter < self.max_iter:
            value = 0.0
            for k in random.permutation(len(batches)):
                here = batches[k].value_grad(weights)
                value += here[0]
                rate = 1.0 / float(np.sqrt(1.0 + run.n_iter))
                weights, _ = stepper.step(batches[k], weights, here, rate)
                watch.check(0.0, weights)
            run.weights, run.value, run.gradient_norm = weights, value, float("nan")
            if 2 * run.n_iter >= self.max_iter - 1:
                n += 1
                mean += (weights - mean) / n
                run.weights = mean.copy()
            if run.record(run.weights, value, float("nan")) is not None:
                return Status.STOPPED
        return Status.MAX_ITERATIONS


class Rate:
    """The size of steps: 1 at first, and half of it whenever the value has settled."""

    def __init__(self, window: int) -> None:
        self.value, self._window, self._halvings, self._wait = 1.0, window, 0, 0

    def after(self, watch: Watch) -> Status | None:
        """Called after each iteration; a status when steps have become small enough."""
        self._wait += 1
        if self._wait < self._window or not watch.settled(self._window):
            return None
        self._wait = 0
        self._halvings += 1
        self.value *= 0.5
        return Status.CONVERGED if self._halvings > MAX_HALVINGS else None
