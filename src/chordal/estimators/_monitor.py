"""How a fit goes and went: what watches it, a line in a terminal, and the report of it."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from itertools import count
from math import isnan, nan

import numpy as np

from chordal._status import Status
from chordal.estimators._estimator import Estimator
from chordal.potentials import Floats
from chordal.solvers import Callback, Iteration, Solution


@dataclass(frozen=True)
class FitReport:
    """How a fit went.

    Attributes
    ----------
    status : Status
        Why it ended; `status.succeeded` is True when it converged.
    objective : float
        The final value of the regularised objective; of an online solver, the losses met during
        its last pass (of "sgd", its best).
    gradient_norm : float
        NaN for online solvers, which compute no gradient of the whole objective.
    n_evaluations : int
        Evaluations of the objective, or of a mini-batch's; of online solvers, visits to single
        sequences.
    history : list of float
        The objective after each iteration.
    gap : float
        The duality gap, of solvers that know it; else NaN.
    details : dict of lists of float
        What the solver reports besides, a number per iteration each.
    n_products : int
        Hessian–vector products.
    exact : bool
        Whether inference was exact in training; if not, an objective that asks for log Z,
        marginals or the best labelling is an approximation.
    validation : list of (iteration, score)
        Scores on the validation data, when given.
    """

    status: Status
    solver: str
    inference: str
    objective: float
    gradient_norm: float
    n_iter: int
    n_evaluations: int
    n_weights: int
    n_nonzero: int
    elapsed: float
    history: list[float] = field(repr=False, default_factory=list)
    validation: list[tuple[int, float]] = field(repr=False, default_factory=list)
    gap: float = field(default=nan, compare=False)  # NaN is not equal to itself
    details: dict[str, list[float]] = field(repr=False, default_factory=dict)
    n_products: int = 0
    exact: bool = True

    def __str__(self) -> str:
        norm = "" if isnan(self.gradient_norm) else f"‖gradient‖ {self.gradient_norm:.3g}, "
        gap = "" if isnan(self.gap) else f"gap {self.gap:.3g}, "
        approximate = "" if self.exact else f", inference {self.inference!r} is approximate"
        return (
            f"{self.status.value} after {self.n_iter} iterations ({self.n_evaluations} "
            f"evaluations, {self.elapsed:.2f} s): objective {self.objective:.6f}, "
            f"{norm}{gap}{self.n_nonzero} of {self.n_weights} weights are not zero{approximate}"
        )

    @staticmethod
    def of(
        solution: Solution, monitor: Monitor, solver: str, inference: str, exact: bool
    ) -> tuple[Floats, FitReport]:
        """The weights to keep, and how they were found."""
        weights, objective, gradient_norm, gap = monitor.chosen(solution)
        return weights, FitReport(
            status=solution.status,
            solver=solver,
            inference=inference,
            objective=objective,
            gradient_norm=gradient_norm,
            n_iter=solution.n_iter,
            n_evaluations=solution.n_evaluations,
            n_weights=len(weights),
            n_nonzero=int(np.count_nonzero(weights)),
            elapsed=solution.elapsed,
            history=solution.history,
            validation=monitor.scores,
            gap=gap,
            details=solution.details,
            n_products=solution.n_products,
            exact=exact,
        )


@dataclass(frozen=True)
class CompactReport:
    """What `compact` did, and what it cost."""

    n_weights_before: int
    n_weights: int
    largest_dropped: float  # magnitude
    largest_rounding: float
    labels_changed: float | None  # share of positions, with X
    accuracy_before: float | None  # with X and y
    accuracy: float | None

    def __str__(self) -> str:
        text = (
            f"{self.n_weights:,} of {self.n_weights_before:,} weights kept; largest dropped "
            f"{self.largest_dropped:.3g}, largest rounding {self.largest_rounding:.3g}"
        )
        if self.labels_changed is not None:
            text += f"; {self.labels_changed:.4%} of the labels changed"
        if self.accuracy is not None:
            text += f"; accuracy {self.accuracy_before:.4%} before, {self.accuracy:.4%} after"
        return text


class Monitor:
    """The callback of a fit: progress, validation scores, early stopping, the user's own."""

    def __init__(
        self,
        show: Callable[[Iteration, float | None], None],
        callbacks: Sequence[Callback | None],
        validate: Callable[[Floats], float] | None,
        interval: int,
        n_iter_no_change: int | None,
        spread: Callable[[Floats], Floats],
    ) -> None:
        self._show, self._validate = show, validate
        self._callbacks = [callback for callback in callbacks if callback is not None]
        self._interval, self._limit = interval, n_iter_no_change
        self._spread = spread  # from the solver's weights to a copy that is the model's
        self.scores: list[tuple[int, float]] = []
        self.best: tuple[float, Iteration] | None = None
        self._waited = 0

    def __call__(self, state: Iteration) -> bool:
        score = None
        if self._validate is not None and state.iteration % self._interval == 0:
            weights = self._spread(state.weights)
            score = self._validate(weights)
            self.scores.append((state.iteration, score))
            if self.best is None or score > self.best[0]:
                self.best = (score, state._replace(weights=weights))
                self._waited = 0
            else:
                self._waited += 1
        self._show(state, score)
        stop = False
        for callback in self._callbacks:  # users may keep the weights
            weights = self._spread(state.weights)
            told = state._replace(weights=weights, score=nan if score is None else score)
            stop |= bool(callback(told))
        return stop or (self._limit is not None and self._waited >= self._limit)

    def chosen(self, solution: Solution) -> tuple[Floats, float, float, float]:
        """Weights, objective, gradient norm and gap: the solution's, or the best validated ones."""
        if self._limit is not None and self.best is not None:
            best = self.best[1]
            return best.weights, best.value, best.gradient_norm, best.gap
        weights = self._spread(solution.weights)
        return weights, solution.value, solution.gradient_norm, solution.gap


def with_model(
    callback: Callback | None, estimator: Estimator, fitted: Mapping[str, object]
) -> Callback | None:
    """The user's callback, told how to make the model so far from these fitted attributes."""
    if callback is None:
        return None

    def told(state: Iteration) -> bool | None:
        def model() -> Estimator:
            made = copy(estimator)
            vars(made).pop("fit_report_", None)  # of a fit before
            learned = {"objective_": state.value, "n_iter_": state.iteration}
            vars(made).update(fitted, **learned, weights_=state.weights)
            return made

        return callback(state._replace(model=model))

    return told


@contextmanager
def fit_callbacks(
    estimator: Estimator,
    max_iter: int | None,
    data: Mapping[str, object],
    attributes: Callable[[Iteration], Mapping[str, object]] | None = None,
) -> Iterator[Callback | None]:
    """What `Estimator.set_callbacks` set, as one callback for the time of a fit; None if none is.

    Set the estimator's fitted attributes before this ends: callbacks then see the fitted model.

    Parameters
    ----------
    max_iter : int or None
        The most iterations that are reported; None for no limit.
    data : dict
        `X`, `y` and `metadata`, which callbacks may ask for.
    attributes : callable, optional
        Makes the fitted attributes after an iteration, for callbacks that ask for a fitted model.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        yield None
        return
    from sklearn.callback import CallbackSupportMixin

    known: dict[str, object] = {"estimator": estimator, **data}
    number = count(1)

    def after_iteration(state: Iteration) -> bool:
        if max_iter is not None and next(number) > max_iter:
            return False  # scikit-learn allows no more tasks than were announced
        task = root.subcontext(task_name="iteration")
        task.call_on_fit_task_begin(**known)
        made = None if attributes is None else lambda: attributes(state)
        return task.call_on_fit_task_end(**known, reconstruction_attributes=made)

    try:
        root = CallbackSupportMixin._init_callback_context(estimator, max_subtasks=max_iter)
        root.call_on_fit_task_begin(**known)
        yield after_iteration
        root.call_on_fit_task_end(**known, reconstruction_attributes={})
    finally:
        _tear_down(estimator)


def _tear_down(estimator: Estimator) -> None:
    """End the callbacks whose setup began, and drop what scikit-learn keeps for the fit."""
    kept = vars(estimator)
    context, begun = kept.pop("_callback_fit_ctx"), kept.pop("_skl_callbacks_to_teardown", ())
    for callback in begun:
        callback.teardown(estimator=estimator, context=context)


class ConvergenceWarning(UserWarning):
    """Stands in for scikit-learn's where scikit-learn is not imported, which takes a second."""


def warn_not_converged(status: Status, solver: str, n_iter: int) -> None:
    """Warn of a fit that stopped at `max_iter` before it converged."""
    if status is not Status.MAX_ITERATIONS:
        return
    kind: type[Warning] = ConvergenceWarning
    if "sklearn" in sys.modules:
        from sklearn import exceptions

        kind = exceptions.ConvergenceWarning
    warnings.warn(
        f"solver {solver!r} did not converge in {n_iter} iterations; "
        "increase max_iter, increase tol, or scale the data",
        kind,
        stacklevel=3,
    )
