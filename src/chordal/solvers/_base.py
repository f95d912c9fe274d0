"""What a solver is: it minimises an oracle and says how that went."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from chordal._blocks import Runner, blocks_of, run_in_turn
from chordal._errors import InfeasibleError, UnsupportedError
from chordal._status import Status
from chordal._validate import RandomState, check_number
from chordal.oracle import (
    DataOracle,
    Floats,
    Oracle,
    Problem,
    SecondOrderOracle,
    asks_examples,
    missing,
)


class Vectors:
    """Sums and products of vectors of one length.

    Blocks do not depend on the number of threads, and are summed in order: no digit does either.
    """

    def __init__(self, run: Runner = run_in_turn) -> None:
        self.run = run
        self._spare: list[Floats] = []

    def dot(self, a: Floats, b: Floats) -> float:
        """a · b; infinite or NaN where it overflows."""

        def block(part: slice) -> float:
            return float(np.dot(a[part], b[part]))

        return sum(self.run(block, blocks_of(len(a))))

    def norm(self, a: Floats) -> float:
        """‖a‖."""
        return float(np.sqrt(self.dot(a, a)))

    def moved(self, start: Floats, direction: Floats, step: float) -> Floats:
        """start + step · direction, in memory given back before where there is some."""
        out = self._spare.pop() if self._spare else np.empty_like(start)

        def block(part: slice) -> None:
            np.multiply(direction[part], step, out=out[part])
            out[part] += start[part]

        self.run(block, blocks_of(len(start)))
        return out

    def recycle(self, vector: Floats) -> None:
        """Take back a vector that `moved` gave, for its memory: fresh pages are dear."""
        self._spare = [vector]


class Iteration(NamedTuple):
    """The state after one iteration.

    `weights` are the solver's own memory: not to be written to, and to be copied if kept.
    `gradient_norm` is NaN where a solver computes no gradient of the whole objective, `gap` (the
    duality gap) where it knows none.

    An estimator's callback gets a copy of the model's weights, the validation `score` where one was
    taken after this iteration (else NaN), and `model`, which makes the model so far: a fitted copy
    of the estimator, to be saved or asked.
    """

    iteration: int
    value: float
    gradient_norm: float
    n_evaluations: int
    elapsed: float
    weights: Floats
    gap: float = nan
    score: float = nan
    model: Callable[[], object] | None = None


#: Called after each iteration; returning True stops the solver.
Callback = Callable[[Iteration], "bool | None"]


@dataclass
class Solution:
    """The weights found, how good they are, and how the run went.

    `details` holds what a solver reports besides, a number per iteration each.
    """

    weights: Floats
    value: float
    gradient_norm: float
    status: Status
    n_iter: int
    n_evaluations: int
    elapsed: float
    history: list[float] = field(default_factory=list)  # the value after each iteration
    gap: float = nan  # the duality gap, where the solver knows one
    details: dict[str, list[float]] = field(default_factory=dict)
    n_products: int = 0  # Hessian–vector products


class Solver(ABC):
    """Minimises value(w) + l1 ‖w‖₁; sees nothing but an oracle.

    `asks` is the protocol of that oracle. `check` says which problems the solver takes.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    tol : float
        Converged when the value fell by less than this, relatively, over the last ten
        iterations, or when ‖gradient‖ < tol · max(1, ‖w‖).
    l1 : float
        Weight of ‖w‖₁; only solvers with `handles_l1` take one above zero. Weights that the oracle
        names in `without_l1` have no part in it.
    """

    asks: type = Oracle  # the protocol of its oracle
    handles_l1: ClassVar[bool] = False
    rotates: ClassVar[bool] = False  # takes the same path whatever the choice of axes
    remedy: ClassVar[str] = ""  # what else to try when it diverges
    seeded: ClassVar[bool] = False  # takes random_state
    monotone: ClassVar[bool] = True  # the value never rises
    robust: ClassVar[bool] = True  # copes with weights of very different curvature
    window: ClassVar[int] = 10

    batch_size: int | None = None  # examples in a mini-batch; None: all of them in one
    random_state: RandomState = None

    def __init__(self, max_iter: int = 1000, tol: float = 1e-5, l1: float = 0.0) -> None:
        check_number("max_iter", max_iter, minimum=1, integer=True)
        check_number("tol", tol, minimum=-inf)  # below 0: never converged
        check_number("l1", l1)
        if l1 > 0.0 and not self.handles_l1:
            raise ValueError(f"solver {self.name!r} does not take l1 > 0; 'owlqn' does")
        self.max_iter, self.tol, self.l1 = max_iter, tol, l1

    @abstractmethod
    def _run(self, run: Any) -> Status:
        """Iterate until a status is reached, keeping `run` up to date."""

    def default_objective(self) -> str:
        """What this solver minimises where no objective is asked for."""
        return "likelihood"

    def check(self, problem: Problem) -> None:
        """Refuse a problem that this solver cannot work on, before any work."""
        if problem.objective.stochastic:
            raise UnsupportedError(
                f"solver {self.name!r} compares values of the objective, and objective "
                f"{problem.objective.name!r} is estimated from samples; use a solver whose steps "
                "do not depend on values, such as 'adam'"
            )

    def require(self, oracle: object) -> None:
        """Refuse an oracle that does not have what this solver asks for."""
        names = missing(oracle, self.asks)
        if names:
            raise UnsupportedError(
                f"solver {self.name!r} needs an oracle with {', '.join(names)}, which "
                f"{type(oracle).__name__} does not have"
            )

    def minimize(self, oracle: object, start: Floats, callback: Callback | None = None) -> Solution:
        """Minimise from `start`. Ctrl-C ends the run with the best weights so far."""
        self.require(oracle)
        run = self.course()(oracle, np.asarray(start, dtype=np.float64), callback, self)
        try:
            run.begin()
            status = self._run(run)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except OverflowError:
            remedy = f"; or {self.remedy}" if self.remedy else ""
            raise ValueError(
                f"solver {self.name!r} diverges: weights or scores are no longer finite; the "
                f"features are too large: scale them{remedy}"
            ) from None
        return run.solution(status)

    def course(self) -> type[Course]:
        """What one run keeps."""
        return Run

    @property
    def name(self) -> str:
        """The name of its file, by which it is chosen."""
        return type(self).__module__.rpartition(".")[2]


def require_alike(solver: Solver, problem: Problem) -> None:
    """Refuse what a solver of single examples, or of bounds, does not take: groups of weights, and
    of examples, labels that are not known.
    """
    if isinstance(problem.l2, Mapping):
        raise UnsupportedError(
            f"solver {solver.name!r} takes one l2 for all weights, not a dict by group; "
            "solvers such as 'lbfgs' take both"
        )
    if problem.partial:
        raise UnsupportedError(
            f"solver {solver.name!r} moves all weights, and cannot freeze some of them (or "
            "keep weights of -inf); solvers such as 'lbfgs' can"
        )
    if asks_examples(solver.asks) and problem.targets != "hard":
        raise UnsupportedError(
            f"solver {solver.name!r} needs one label per position, and y has "
            f"{problem.described_targets}; use a solver such as 'lbfgs'"
        )


class Course:
    """How a run goes: the current iterate, the counters, and who is told of them."""

    def __init__(
        self, oracle: Any, start: Floats, callback: Callback | None, solver: Solver
    ) -> None:
        self.oracle, self.callback, self.solver = oracle, callback, solver
        self.weights = start
        self.value = self.gradient_norm = float("inf")
        self.n_iter = self.n_evaluations = self.n_products = 0
        self.history: list[float] = []
        self.gap = nan
        self.details: dict[str, list[float]] = {}
        self._started = time.perf_counter()

    def begin(self) -> None:
        """Before the first iteration."""

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self._started

    def record(self, weights: Floats, value: float, gradient_norm: float) -> Status | None:
        """Count an iteration and call the callback, which may stop the run."""
        self.n_iter += 1
        self.history.append(value)
        if self.callback is None:
            return None
        counted = (self.n_evaluations, self.elapsed)
        state = Iteration(self.n_iter, value, gradient_norm, *counted, weights, self.gap)
        return Status.STOPPED if self.callback(state) else None

    def solution(self, status: Status) -> Solution:
        """What the run has found."""
        found = (self.weights, self.value, self.gradient_norm, status)
        counted = (self.n_iter, self.n_evaluations, self.elapsed)
        return Solution(*found, *counted, self.history, self.gap, self.details, self.n_products)


class Run(Course):
    """One run of a solver on a smooth objective, and its stopping rules."""

    def __init__(
        self, oracle: Oracle, start: Floats, callback: Callback | None, solver: Solver
    ) -> None:
        super().__init__(oracle, start, callback, solver)
        self._data = oracle if isinstance(oracle, DataOracle) else None
        self.vectors = Vectors(run_in_turn if self._data is None else self._data.run)
        self.gradient: Floats = np.zeros(0)  # of the smooth part
        self._start = start
        self.l1: float | Floats = solver.l1
        if solver.l1 > 0.0 and self._data is not None and self._data.without_l1 is not None:
            self.l1 = np.full(len(start), solver.l1)
            self.l1[self._data.without_l1] = 0.0

    @property
    def noisy(self) -> bool:
        """Whether values and gradients are estimates from samples."""
        return self._data is not None and self._data.noisy

    def evaluate(self, weights: Floats) -> tuple[float, Floats]:
        """Value, with the l1 term, and gradient of the smooth part."""
        value, gradient = self.ask(self.oracle, weights)
        if isinstance(self.l1, np.ndarray):
            value += float(np.dot(self.l1, np.abs(weights)))
        elif self.l1 > 0.0:
            value += self.l1 * float(np.abs(weights).sum())
        return value, gradient

    def ask(self, oracle: Oracle, weights: Floats) -> tuple[float, Floats]:
        """An oracle's value and gradient; infinity where weights drive all scores to -inf."""
        self.n_evaluations += 1
        try:
            return oracle.value_grad(weights)
        except InfeasibleError:
            if self.n_evaluations == 1:  # at the start: labels are forbidden
                raise
            return inf, np.full_like(weights, nan)

    def recycle(self, weights: Floats, gradient: Floats) -> None:
        """Give back the memory of a former iterate."""
        if weights is not self._start:
            self.vectors.recycle(weights)
        if self._data is not None:
            self._data.recycle(gradient)

    def hess_vec(self, direction: Floats) -> Floats:
        """The Hessian at the present weights times the direction."""
        self.n_products += 1
        return cast(SecondOrderOracle, self.oracle).hess_vec(self.weights, direction)

    def begin(self) -> None:
        """Evaluate the starting weights, and refuse those without a value."""
        self.value, self.gradient = self.evaluate(self.weights)
        with np.errstate(over="ignore"):
            self.gradient_norm = self.vectors.norm(self.gradient)
        if not np.isfinite(self.value) or not np.isfinite(self.gradient_norm):
            raise ValueError(
                f"at the starting weights the objective is {self.value:g} and its gradient's norm "
                f"{self.gradient_norm:g}: the features are too large, scale them; or labels are "
                "forbidden by -inf"
            )

    def accept(
        self, weights: Floats, value: float, gradient: Floats, gradient_norm: float
    ) -> Status | None:
        """Move to a new iterate; returns a status when the run should end."""
        self.weights, self.value = weights, value
        self.gradient, self.gradient_norm = gradient, gradient_norm
        if self.record(weights, value, gradient_norm) is not None:
            return Status.STOPPED
        if self.converged():
            return Status.CONVERGED
        return Status.MAX_ITERATIONS if self.n_iter >= self.solver.max_iter else None

    def converged(self) -> bool:
        """Whether the gradient is small, or the value has all but stopped falling."""
        tol = self.solver.tol
        small = tol * max(1.0, self.vectors.norm(self.weights))
        if self.gradient_norm == 0.0 or self.gradient_norm < small:
            return True
        window = self.solver.window
        if len(self.history) <= window:
            return False
        return self.history[-1 - window] - self.value < tol * abs(self.value)
