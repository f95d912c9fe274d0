"""The base class of solvers, and the state of a run."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import inf, nan
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

from chordal._blocks import run_in_turn
from chordal._docs import complete_docs
from chordal._errors import InfeasibleError, UnsupportedError
from chordal._saved import Saved, SavedError, State
from chordal._status import Status
from chordal._validate import RandomState, check_number, check_seed
from chordal.oracle import (
    DataOracle,
    Floats,
    Oracle,
    Problem,
    SecondOrderOracle,
    asks_examples,
    missing,
)
from chordal.solvers._keeping import Keeper, Resumable
from chordal.solvers._solution import Callback, Iteration, Solution
from chordal.solvers._stopping import Slope, fallen, is_minimum
from chordal.solvers._vectors import Vectors

T = TypeVar("T")

HUGE = 1e100  # weights: squares no longer fit
STRICT = 1e-5  # the default of tol; a larger one asks for an early end
PATIENT = 1e-3  # of tol: how little the value falls when a run ends without proof


class Course(Resumable):
    """The progress of a run: current iterate, counters and callback."""

    kept: ClassVar[tuple[str, ...]] = (
        *("weights", "value", "gradient_norm", "gap", "history", "times", "details"),
        *("n_iter", "n_evaluations", "n_products"),
    )

    def __init__(
        self,
        oracle: Any,
        start: Floats,
        callback: Callback | None,
        solver: Solver,
        keeper: Keeper | None = None,
    ) -> None:
        super().__init__(keeper)
        self.oracle, self.callback, self.solver = oracle, callback, solver
        self.start = self.weights = start
        self.value, self.gradient_norm, self.gap = inf, nan, nan
        self.n_iter = self.n_evaluations = self.n_products = 0
        self.history: list[float] = []
        self.times: list[float] = []
        self.details: dict[str, list[float]] = {}
        self._started, self._counted = time.perf_counter(), (0, 0)

    def to_state(self) -> State:
        """The state between two iterations, without counts of an unfinished one."""
        evaluations, products = self._counted
        counted = {"n_evaluations": evaluations, "n_products": products, "elapsed": self.elapsed}
        return {**super().to_state(), **counted}

    def from_state(self, saved: Saved) -> None:
        """Restore a run and its elapsed time."""
        super().from_state(saved)
        self._started = time.perf_counter() - saved.number("elapsed")
        if self.n_iter >= self.solver.max_iter:
            raise SavedError(
                f"it is at iteration {self.n_iter}, but max_iter is {self.solver.max_iter}: raise "
                "max_iter to continue"
            )

    def between(self, n_iter: int | None = None, copy: bool = False) -> None:
        """Between two iterations; see `Resumable`."""
        self._counted = (self.n_evaluations, self.n_products)
        super().between(self.n_iter if n_iter is None else n_iter, copy)

    def open(self) -> Status | None:
        """Begin or resume the run; returns a status if there is nothing to do."""
        if not self.resumed:
            return self.begin()
        self.resume()
        return None

    def proven(self) -> bool:
        """Whether the final state, such as a small gradient, shows that this is a minimum."""
        return True

    def begin(self) -> Status | None:
        """Before the first iteration; returns a status if there is nothing to do."""
        return None

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self._started

    def record(
        self, weights: Floats, value: float, gradient_norm: float, converged: bool
    ) -> Status | None:
        """Count an iteration and call the callback; returns a status if the run should end."""
        self.n_iter += 1
        self.history.append(value)
        self.times.append(self.elapsed)
        if self.callback is not None:
            counted = (self.n_evaluations, self.elapsed)
            state = Iteration(self.n_iter, value, gradient_norm, *counted, weights, self.gap)
            if self.callback(state):
                return Status.STOPPED
        if converged:
            return Status.CONVERGED
        return Status.MAX_ITERATIONS if self.n_iter >= self.solver.max_iter else None

    def solution(self, status: Status) -> Solution:
        """The solution of the run."""
        found = (self.weights, self.value, self.gradient_norm, status)
        counted = (self.n_iter, self.n_evaluations, self.elapsed)
        solution = Solution(*found, *counted, self.history, self.gap, self.details, self.n_products)
        solution.times = self.times
        return solution


class Run(Course):
    """One run of a solver on a smooth objective, and its stopping rules."""

    kept: ClassVar[tuple[str, ...]] = (*Course.kept, "gradient", "_first_norm", "_first_value")

    def __init__(
        self,
        oracle: Oracle,
        start: Floats,
        callback: Callback | None,
        solver: Solver,
        keeper: Keeper | None = None,
    ) -> None:
        super().__init__(oracle, start, callback, solver, keeper)
        self._data = oracle if isinstance(oracle, DataOracle) else None
        self.vectors = Vectors(run_in_turn if self._data is None else self._data.run)
        self.gradient: Floats = np.zeros(len(start))  # of the smooth part
        self.gradient_norm, self._first_norm, self._first_value = inf, inf, inf
        self.l1: float | Floats = solver.l1
        if solver.l1 > 0.0 and self._data is not None and self._data.without_l1 is not None:
            self.l1 = np.full(len(start), solver.l1)
            self.l1[self._data.without_l1] = 0.0

    @property
    def noisy(self) -> bool:
        """Whether values and gradients are estimates from samples."""
        return self._data is not None and self._data.noisy

    def evaluate(self, weights: Floats) -> tuple[float, Floats]:
        """The value with the L1 term, and the gradient of the smooth part."""
        value, gradient = self.ask(self.oracle, weights)
        if isinstance(self.l1, np.ndarray):
            value += float(np.dot(self.l1, np.abs(weights)))
        elif self.l1 > 0.0:
            value += self.l1 * float(np.abs(weights).sum())
        return value, gradient

    def ask(self, oracle: Oracle, weights: Floats) -> tuple[float, Floats]:
        """An oracle's value and gradient; infinity if the weights drive all scores to -inf."""
        self.n_evaluations += 1
        try:
            return oracle.value_grad(weights)
        except InfeasibleError:
            if self.n_evaluations == 1:  # at the start: labels are forbidden
                raise
            return inf, np.full_like(weights, nan)

    def recycle(self, weights: Floats, gradient: Floats) -> None:
        """Return the memory of a former iterate for reuse."""
        if weights is not self.start:
            self.vectors.recycle(weights)
        if self._data is not None:
            self._data.recycle(gradient)

    def hess_vec(self, oracle: Oracle, weights: Floats, direction: Floats) -> Floats:
        """An oracle's Hessian at the weights times the direction."""
        self.n_products += 1
        product = cast(SecondOrderOracle, oracle).hess_vec(weights, direction)
        sound = all(bool((np.abs(own) < HUGE).all()) for own in (weights, direction))
        return self.finite(product) if sound else product  # else the run itself diverges

    def finite(self, curvature: Floats) -> Floats:
        """Check that second derivatives are finite; with forbidden labellings they may not be."""
        if np.isfinite(curvature).all():
            return curvature
        raise UnsupportedError(
            f"solver {self.solver.name!r} needs second derivatives, but here they are not finite, "
            "as happens with forbidden labellings; use a solver such as 'lbfgs'"
        )

    def begin(self) -> Status | None:
        """Evaluate the starting weights; an error if the objective is not finite there."""
        self.value, self.gradient = self.evaluate(self.weights)
        with np.errstate(over="ignore"):
            self.gradient_norm = self.vectors.norm(self.gradient)
        if not np.isfinite(self.value) or not np.isfinite(self.gradient_norm):
            raise ValueError(
                f"at the starting weights the objective is {self.value:g} and its gradient norm "
                f"{self.gradient_norm:g}: the features are too large, scale them; or check labels "
                "forbidden by -inf"
            )
        self._first_norm, self._first_value = self.gradient_norm, self.value
        smooth = self.solver.l1 == 0.0  # else the gradient does not tell
        return Status.CONVERGED if smooth and self.converged() else None

    def accept(
        self, weights: Floats, value: float, gradient: Floats, gradient_norm: float
    ) -> Status | None:
        """Move to a new iterate; returns a status if the run should end."""
        self.weights, self.value = weights, value
        self.gradient, self.gradient_norm = gradient, gradient_norm
        return self.record(weights, value, gradient_norm, self.converged())

    def proven(self) -> bool:
        """Whether the gradient shows that this is a minimum; see `is_minimum`."""
        now, first = (self.value, self.gradient_norm), (self._first_value, self._first_norm)
        return is_minimum(Slope(*now), Slope(*first), self.vectors.norm(self.weights))

    def converged(self) -> bool:
        """Whether the gradient is small, or the value has nearly stopped falling.

        Without proof of a minimum, a solver that copes with uneven curvature continues for longer,
        unless a large `tol` asks for an early end.
        """
        tol, window = self.solver.tol, self.solver.window
        small = tol * max(1.0, self.vectors.norm(self.weights))
        if self.gradient_norm == 0.0 or self.gradient_norm < small:
            return True
        fall, enough = fallen(self.history, self.value, window), tol * abs(self.value)
        if fall >= enough:
            return False
        hasty = not self.solver.robust or tol > STRICT
        return hasty or fall < PATIENT * enough or self.proven()


def number(default: T, *, minimum: float = 0.0, strict: bool = False, below: float = inf) -> T:
    """A checked setting of a solver: a finite number ≥ the minimum (with `strict`, > it), and below
    a limit. Its annotation says whether it is an integer and may be None.
    """
    limits = {"minimum": minimum, "strict": strict, "below": below}
    return field(default=default, metadata=limits)


@dataclass(eq=False)
class Solver(ABC):
    """Minimises value(w) + l1 ‖w‖₁; sees only an oracle.

    `asks` is the protocol that the oracle must support, and `check` raises an error for unsuitable
    problems. Settings are fields; the docstring of a subclass describes its own, and those of the
    base class are added.

    Parameters
    ----------
    max_iter : int
        Maximum number of iterations; default 1000 unless stated otherwise.
    tol : float
        The run converges when the value falls by less than this fraction over ten iterations
        (default 1e-5), or when ‖gradient‖ < tol · max(1, ‖w‖). If the value hardly falls but the
        gradient is not small, the status is "settled". Solvers that cope with uneven curvature,
        such as L-BFGS and Newton, first continue until the value falls by a thousandth of that,
        unless `tol` is larger than its default.

    Examples
    --------
    Pass a solver to an estimator by name, or as an object with settings:

    >>> from chordal import ChainCRF
    >>> from chordal.solvers.lbfgs import LBFGS
    >>> X, y = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"]]], [["D", "N", "V"], ["D", "N"]]
    >>> ChainCRF(solver="averaged_perceptron", random_state=0).fit(X, y).predict(X)
    [['D', 'N', 'V'], ['D', 'N']]
    >>> ChainCRF(solver=LBFGS(memory=3), l2=0.1).fit(X, y).predict(X)
    [['D', 'N', 'V'], ['D', 'N']]
    """

    max_iter: int = number(1000, minimum=1)
    tol: float = number(STRICT, minimum=-inf)  # below 0: never converged
    # What some solvers take, and what stands for it elsewhere.
    l1: float = field(init=False, repr=False, default=0.0)
    random_state: RandomState = field(init=False, repr=False, default=None)
    batch_size: int | None = field(init=False, repr=False, default=None)  # None: all examples

    asks: ClassVar[type] = Oracle  # the protocol of its oracle
    course: ClassVar[type[Course]] = Run  # what one run keeps
    objectives: ClassVar[tuple[str, ...]] = ()  # what it minimises, "auto" first; else any
    needs_smooth: ClassVar[bool] = False  # an objective with kinks would lead it astray
    scales: ClassVar[bool] = False  # takes one l2: weights with another are scaled to it
    packages: ClassVar[tuple[str, ...]] = ()  # optional ones that it imports
    handles_l1: ClassVar[bool] = False
    rotates: ClassVar[bool] = False  # takes the same path whatever the choice of axes
    seeded: ClassVar[bool] = False  # takes random_state
    monotone: ClassVar[bool] = True  # the value never rises
    robust: ClassVar[bool] = True  # copes with weights of very different curvature
    window: ClassVar[int] = 10

    def __init_subclass__(cls) -> None:
        complete_docs(cls)

    def __post_init__(self) -> None:
        for setting in fields(self):
            name, kind, limits = setting.name, str(setting.type), {**setting.metadata}
            value = getattr(self, name)
            if name == "random_state":
                check_seed(value)
            if not limits or (value is None and "None" in kind):
                continue
            below = limits.pop("below")
            check_number(name, value, integer="int" in kind, **limits)
            if value >= below:
                raise ValueError(f"{name} must be below {below:g}, got {value!r}")

    @property
    def mixes(self) -> bool:
        """Whether it takes examples in a random order."""
        return self.batch_size is not None

    @abstractmethod
    def _run(self, run: Any) -> Status:
        """Iterate until the run has a status; `run` is updated."""

    def default_objective(self) -> str:
        """The objective of this solver if the user does not choose one."""
        return self.objectives[0] if self.objectives else "likelihood"

    def check(self, problem: Problem) -> None:
        """Raise an error, before any work, for a problem that this solver does not support."""
        objective = problem.objective
        if self.objectives and objective.name not in self.objectives:
            raise UnsupportedError(
                f"solver {self.name!r} minimises objective "
                f"{' or '.join(map(repr, self.objectives))}, not {objective.name!r}; leave "
                "objective at 'auto', or use another solver"
            )
        if SecondOrderOracle in self.asks.__mro__:
            objective.require_second_derivatives(self.name)
        if self.needs_smooth and not objective.smooth:
            raise UnsupportedError(
                f"solver {self.name!r} needs a smooth objective, but {objective.name!r} is not "
                "smooth: "
                "the solver would stop far from the minimum; leave solver at 'auto', or use "
                "'one_slack', 'block_frank_wolfe', 'sgd' or 'adam'"
            )
        self.refuse_zero(problem)
        if problem.parted and asks_examples(self.asks):
            raise UnsupportedError(
                f"solver {self.name!r} visits single examples, which is not possible for data in "
                "parts on other machines; use 'lbfgs', 'owlqn', 'newton_cg', 'adam' or "
                "'minibatch_lbfgs', and for non-smooth objectives 'one_slack' or 'adam'"
            )
        if objective.stochastic:
            raise UnsupportedError(
                f"solver {self.name!r} compares values of the objective, but objective "
                f"{objective.name!r} is estimated from samples; use a solver that does "
                "not compare values, such as 'adam'"
            )

    def refuse_zero(self, problem: Problem) -> None:
        """Raise an error for an objective with its minimum at zero weights."""
        objective = problem.objective
        if objective.zero_is_best and not asks_examples(self.asks):
            raise UnsupportedError(
                f"solver {self.name!r} would find zero weights, which are the minimum of objective "
                f"{objective.name!r}; use solver "
                "'averaged_perceptron' or 'sgd', or objective 'hinge'"
            )

    def remedy(self) -> str:
        """Advice for the error message when the run diverges."""
        return ""

    def require(self, oracle: object) -> None:
        """Raise an error for an oracle without the methods that this solver needs."""
        names = missing(oracle, self.asks)
        if names:
            raise UnsupportedError(
                f"solver {self.name!r} needs an oracle with {', '.join(names)}, which "
                f"{type(oracle).__name__} does not have"
            )

    def minimize(
        self,
        oracle: object,
        start: Floats,
        callback: Callback | None = None,
        keeper: Keeper | None = None,
    ) -> Solution:
        """Minimise from `start`. Ctrl-C ends the run with the best weights so far.

        The `keeper` saves the state between iterations, and may hold one to resume from.
        """
        self.require(oracle)
        run = self.course(oracle, np.asarray(start, dtype=np.float64), callback, self, keeper)
        resumed = run.resumed
        try:
            status = run.open() or self._run(run)
            if status is Status.CONVERGED and not run.proven():
                status = Status.SETTLED
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
            run.interrupted()
        except ZeroDivisionError:
            if not resumed:
                raise
            raise SavedError(
                f"it holds a number that solver {self.name!r} never writes; remove it, and begin "
                "again"
            ) from None
        except OverflowError:
            remedy = self.remedy()
            raise ValueError(
                f"solver {self.name!r} diverges: weights or scores are no longer finite; the "
                f"features are too large: scale them{remedy and '; or '}{remedy}"
            ) from None
        return run.solution(status)

    @property
    def name(self) -> str:
        """The name by which users choose it: that of its file."""
        return type(self).__module__.rpartition(".")[2]


def require_alike(solver: Solver, problem: Problem) -> None:
    """Raise an error for what such solvers do not support: several l2 values, frozen weights, and
    labels that are not fully known.
    """
    if isinstance(problem.l2, Mapping) and not solver.scales:
        raise UnsupportedError(
            f"solver {solver.name!r} needs one l2 for all weights, not a dict by group; "
            "use a solver such as 'lbfgs'"
        )
    if problem.partial:
        raise UnsupportedError(
            f"solver {solver.name!r} cannot freeze weights (or "
            "keep weights of -inf); use a solver such as 'lbfgs'"
        )
    if asks_examples(solver.asks) and problem.targets != "hard":
        raise UnsupportedError(
            f"solver {solver.name!r} needs one label per position, but y has "
            f"{problem.described_targets}; use a solver such as 'lbfgs'"
        )
