"""L-BFGS on mini-batches, with both gradients of a curvature pair from the same examples."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from chordal._saved import Saved, SavedError, State
from chordal._status import Status
from chordal.oracle import Floats, Oracle
from chordal.solvers._base import Run, number
from chordal.solvers._passes import PassSolver, Steps, WatchedRun
from chordal.solvers.lbfgs import LBFGS, Pair, curvature_of, two_loop


@final
@dataclass(eq=False)
class MinibatchLBFGS(PassSolver):
    """A quasi-Newton step for every mini-batch.

    Curvature is estimated over longer distances than one noisy step: every `period` steps the mean
    of the weights is compared with the previous mean. Both gradients of such a pair come from the
    same examples, those of the last `joined` mini-batches. Gradients of different examples would
    differ by noise. With a single mini-batch this is plain L-BFGS.

    When the objective settles, the remaining error is the noise of mini-batches. From then on,
    steps use the gradient of all examples at the weights before the pass, corrected by the change
    of the mini-batch's gradient since then. This is exact at the optimum; a pass then costs three
    gradients per mini-batch instead of one.

    Parameters
    ----------
    memory : int, default=30
        Number of stored pairs (step, change of gradient).
    learning_rate : float, default=0.2
        Size of the first steps, as a fraction of the quasi-Newton step.
    period, joined : int, default=20 and 8
        Steps between two pairs, and number of mini-batches on which a pair is measured.

    References
    ----------
    Byrd, Hansen, Nocedal and Singer (2016), A stochastic quasi-Newton method for large-scale
    optimization; Schraudolph, Yu and Günter (2007), A stochastic quasi-Newton method for online
    convex optimization; Moritz, Nishihara and Jordan (2016), A linearly-convergent stochastic
    L-BFGS algorithm.
    """

    tol: float = number(3e-4, minimum=-np.inf)
    memory: int = number(30, minimum=1)
    learning_rate: float = number(0.2, strict=True)
    period: int = number(20, minimum=1)
    joined: int = number(8, minimum=1)

    needs_smooth: ClassVar[bool] = True
    restarts: ClassVar[bool] = False

    def remedy(self) -> str:
        """Advice: smaller steps, or larger mini-batches."""
        return f"use a learning_rate below {self.learning_rate:g}, a larger batch_size"

    def _steps(self, run: Run, batches: Sequence[Oracle]) -> Steps:
        return _Curvature(self, run, batches)

    def _whole(self, run: WatchedRun, batch: Oracle, steps: Steps) -> Status:
        return LBFGS(self.max_iter, self.tol, memory=self.memory)._run(run)


class _Curvature:
    """Pairs of steps and gradient changes; `batches` are all."""

    def __init__(self, solver: MinibatchLBFGS, run: Run, batches: Sequence[Oracle]) -> None:
        self._solver, self._run, self._all = solver, run, batches
        n = len(run.weights)
        self._since, self._anchor, self._mean_gradient = 0, np.zeros(n), np.zeros(n)
        self._pairs: deque[Pair] = deque(maxlen=solver.memory)
        self._batches: deque[Oracle] = deque(maxlen=solver.joined)
        self._steps, self._sum = 0, np.zeros_like(run.weights)
        self._mean: Floats | None = None  # of the weights of the last period

    def to_state(self) -> State:
        """Pairs, numbers of the last mini-batches, and running sums."""
        n = len(self._sum)
        number = {id(batch): k for k, batch in enumerate(self._all)}
        s, y = (np.array([p[k] for p in self._pairs]).reshape(-1, n) for k in (0, 1))
        return {
            "since": self._since,
            "anchor": self._anchor,
            "mean_gradient": self._mean_gradient,
            "s": s,
            "y": y,
            "curvature": [float(pair[2]) for pair in self._pairs],
            "batches": np.array([number[id(batch)] for batch in self._batches], dtype=np.int64),
            "steps": self._steps,
            "sum": self._sum,
            "means": np.zeros((0, n)) if self._mean is None else self._mean[None],
        }

    def from_state(self, saved: Saved) -> None:
        """Restore the state of a run with the same mini-batches."""
        n, vector = len(self._sum), (len(self._sum),)
        self._since, self._steps = saved.integer("since"), saved.integer("steps")
        self._anchor = saved.array("anchor", np.float64, vector)
        self._mean_gradient = saved.array("mean_gradient", np.float64, vector)
        self._sum = saved.array("sum", np.float64, vector)
        s, y = (saved.array(name, np.float64, (None, n)) for name in ("s", "y"))
        curvature = saved.numbers("curvature")
        batches = saved.array("batches", np.int64, (None,)).tolist()
        if not len(s) == len(y) == len(curvature) or not set(batches) <= {*range(len(self._all))}:
            raise SavedError("pairs or mini-batches do not fit together")
        self._pairs.extend(zip(s, y, curvature, strict=True))
        self._batches.extend(self._all[k] for k in batches)
        means = saved.array("means", np.float64, (None, n))
        self._mean = means[0] if len(means) else None

    def step(self, batch: Oracle, weights: Floats, gradient: Floats, rate: float) -> Floats:
        """A quasi-Newton step."""
        size = rate * self._solver.learning_rate
        if rate < 1.0:
            gradient = gradient + self._correction(batch, weights)
            size *= 2.0  # instead of the first time that steps are halved
        self._batches.append(batch)
        if self._pairs:
            size *= len(self._batches)  # pairs are of so many batches, the gradient of one
        else:
            size /= max(1.0, float(np.linalg.norm(gradient)))
        weights = weights + size * two_loop(self._pairs, gradient)
        self._steps += 1
        self._sum += weights
        if self._steps % self._solver.period == 0:
            self._look_back(self._sum / self._solver.period)
        return weights

    def _correction(self, batch: Oracle, weights: Floats) -> Floats:
        """The correction from this mini-batch's gradient at the anchor to that of all."""
        if self._since == 0:
            self._anchor, self._mean_gradient = weights, np.zeros_like(weights)
            for one in self._all:
                self._mean_gradient += self._run.ask(one, weights)[1] / len(self._all)
        self._since = (self._since + 1) % len(self._all)
        return self._mean_gradient - self._run.ask(batch, self._anchor)[1]

    def _look_back(self, mean: Floats) -> None:
        """Store a pair from this mean of the weights and the previous one."""
        before, self._mean, self._sum = self._mean, mean, np.zeros_like(mean)
        if before is None or not np.isfinite(mean).all():
            return
        s, y = mean - before, np.zeros_like(mean)
        for batch in self._batches:
            y += self._run.ask(batch, mean)[1]
            y -= self._run.ask(batch, before)[1]
        curvature = curvature_of(s, y)
        if curvature > 0.0:
            self._pairs.append((s, y, curvature))
