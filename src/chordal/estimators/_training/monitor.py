"""Monitoring of a fit: progress, validation, Ctrl-C and the final report."""

from __future__ import annotations

import inspect
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import count
from math import isnan, nan
from typing import Any, cast

import numpy as np

from chordal import _html
from chordal._errors import ConvergenceWarning, as_sklearn
from chordal._estimator import Estimator
from chordal._optional import needed
from chordal._saved import Saved, State, Stateful
from chordal._status import Status
from chordal.potentials import Floats
from chordal.solvers import Callback, Iteration, Solution

_WHOLE: ContextVar[bool] = ContextVar("whole_fits", default=False)
_AGAIN = 5.0  # seconds in which another Ctrl-C is a second one, though it meets another fit
_last = float("-inf")


@dataclass(frozen=True)
class FitReport:
    """The report of a fit.

    Attributes
    ----------
    status : Status
        Why it ended; `status.succeeded` is True if it converged.
    objective : float
        Final value of the regularised objective. For online solvers, the sum of losses during the
        last pass (for "sgd", the best pass).
    gradient_norm : float
        Norm of the final gradient; NaN for online solvers, which do not compute it.
    n_evaluations : int
        Number of evaluations of the objective, or of mini-batches. For online solvers, number of
        updates by single sequences.
    history : list of float
        The objective after each iteration.
    times : list of float
        Seconds from the beginning of the search to the end of each iteration.
    gap : float
        Final duality gap; NaN if the solver does not compute one.
    details : dict of lists of float
        Further figures of the solver, one number per iteration each.
    n_products : int
        Number of Hessian–vector products.
    exact : bool
        Whether inference was exact in training. If not, objectives that use log Z, marginals or the
        best labelling are approximate.
    inference_converged : bool or None
        Whether approximate inference converged on all training examples at the final weights. None
        if it was exact or does not iterate, and after Ctrl-C.
    validation : list of (iteration, score)
        Scores on the validation data, if given.
    prediction : {"map", "mpm"} or None
        What `predict` returns, if both were compared; see the parameter `prediction`.
    prediction_scores : dict {"map": score, "mpm": score}
        Share of correct training labels by each method, on the first examples with up to 100,000
        variables. If these have more than 2 million table cells, inference stops early for the
        comparison (`rough` of the methods that "auto" chooses).
    completions : list of float
        The objective after each round of completing sets of labels.
    label_share : float or None
        On graphs with loops, the largest share of one label in a training example.
        `CollapsedLabellingWarning` uses it.
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
    times: list[float] = field(repr=False, compare=False, default_factory=list)
    gap: float = field(default=nan, compare=False)  # NaN is not equal to itself
    details: dict[str, list[float]] = field(repr=False, default_factory=dict)
    n_products: int = 0
    exact: bool = True
    inference_converged: bool | None = None
    prediction: str | None = None
    prediction_scores: dict[str, float] = field(default_factory=dict)
    label_share: float | None = None
    completions: list[float] = field(repr=False, default_factory=list)

    def __str__(self) -> str:
        norm = "" if isnan(self.gradient_norm) else f"‖gradient‖ {self.gradient_norm:.3g}, "
        gap = "" if isnan(self.gap) else f"gap {self.gap:.3g}, "
        approximate = "" if self.exact else f", inference {self.inference!r} is approximate"
        if self.inference_converged is False:
            approximate += " and did not converge on some examples"
        predicts = ""
        if self.prediction is not None:
            scores = (f"{way} {score:.4f}" for way, score in self.prediction_scores.items())
            predicts = f"; predicts by {self.prediction} (training data: {', '.join(scores)})"
        return (
            f"{self.status.value} after {self.n_iter} iterations ({self.n_evaluations} "
            f"evaluations, {self.elapsed:.2f} s): objective {self.objective:.6f}, "
            f"{norm}{gap}{self.n_nonzero} of {self.n_weights} weights are not zero{approximate}"
            f"{predicts}"
        )

    def _repr_html_(self) -> str:
        """What notebooks show: a table of the facts, without the curves."""
        shown = {own.name: getattr(self, own.name) for own in fields(self) if own.repr}
        shown["status"] = self.status.value
        known = {k: v for k, v in shown.items() if v not in (None, {}) and v == v}  # NaN: unknown
        if not self.n_products:
            del known["n_products"]
        rows = {
            _WORDS.get(k, k.replace("_", " ")): f"{v:,.6g}" if isinstance(v, float) else v
            for k, v in known.items()
        }
        return f'<div style="{_html.FONT}">{_html.facts(rows)}</div>'

    @classmethod
    def of(cls, solution: Solution, **known: Any) -> FitReport:
        """The report of a solution, with further facts of the fit."""
        course = {k: v for k, v in vars(solution).items() if k not in ("weights", "value")}
        n, nonzero = len(solution.weights), int(np.count_nonzero(solution.weights))
        return cls(objective=solution.value, n_weights=n, n_nonzero=nonzero, **course, **known)

    def to_facts(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {**asdict(self), "status": self.status.name}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> FitReport:
        """The report from a file, checked; lists become tuples where needed."""
        given = [(own.name, _FROM_FACTS[str(own.type)]) for own in fields(cls) if own.name in facts]
        return cls(**{name: made(facts[name]) for name, made in given})


_WORDS = {  # what a table calls a field
    "n_iter": "iterations",
    "n_evaluations": "evaluations",
    "n_weights": "weights",
    "n_nonzero": "weights that are not zero",
    "n_products": "Hessian–vector products",
    "elapsed": "seconds",
    "exact": "exact inference",
}
_WAYS = {"map": "map", "mpm": "mpm"}  # of prediction: a file may name no others

#: How the fields of a report are made of what JSON holds, by their types.
_FROM_FACTS: dict[str, Callable[[Any], Any]] = {
    "Status": lambda name: Status[name],
    "str": str,
    "str | None": lambda name: None if name is None else _WAYS[name],
    "int": int,
    "float": float,
    "float | None": lambda value: None if value is None else float(value),
    "dict[str, float]": lambda given: {str(k): float(v) for k, v in given.items()},
    "bool": bool,
    "bool | None": lambda value: None if value is None else bool(value),
    "list[float]": lambda values: [float(value) for value in values],
    "list[tuple[int, float]]": lambda values: [(int(k), float(score)) for k, score in values],
    "dict[str, list[float]]": lambda d: {str(k): [float(x) for x in v] for k, v in d.items()},
}


@dataclass(frozen=True)
class CompactReport:
    """The report of `compact`: sizes before and after, and changed predictions."""

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


#: Of the state with the best score: numbers that are kept beside its weights.
_OF_BEST = ("iteration", "value", "gradient_norm", "n_evaluations", "elapsed", "gap")


def stateful(callback: object) -> Stateful | None:
    """A callback with state to save: it has `to_state` and `from_state`."""
    has = hasattr(callback, "to_state") and hasattr(callback, "from_state")
    return cast(Stateful, callback) if has else None


@dataclass
class Monitor:
    """The callback of a fit: progress, validation scores, early stopping, the user's own."""

    show: Callable[[Iteration, float | None], None] | None
    callbacks: Sequence[Callback | None]
    validate: Callable[[Floats], float] | None
    interval: int
    n_iter_no_change: int | None
    spread: Callable[[Floats], Floats]  # from the solver's weights to a copy that is the model's
    n_weights: int  # of the solver
    own: Stateful | None = None  # the user's callback, if it has a state
    scores: list[tuple[int, float]] = field(default_factory=list)
    best: tuple[float, Iteration] | None = None
    waited: int = 0

    def __call__(self, state: Iteration) -> bool:
        score = None
        if self.validate is not None and state.iteration % self.interval == 0:
            weights = self.spread(state.weights)
            score = self.validate(weights)
            self.scores.append((state.iteration, score))
            self.waited += 1
            if self.best is None or score > self.best[0]:
                self.best, self.waited = (score, state._replace(weights=state.weights.copy())), 0
        if self.show is not None:
            self.show(state, score)
        stop = False
        for callback in self.callbacks:
            if callback is not None:  # users may keep the weights
                weights = self.spread(state.weights)
                told = state._replace(weights=weights, scores=tuple(self.scores))
                stop |= bool(callback(told if score is None else told._replace(score=score)))
        return stop or (self.n_iter_no_change is not None and self.waited >= self.n_iter_no_change)

    def to_state(self) -> State:
        """Scores so far, the best weights by them, and what the user's callback keeps."""
        best: list[State] = []
        if self.best is not None:
            score, state = self.best
            numbers = {name: getattr(state, name) for name in _OF_BEST}
            best = [{"best_score": score, **numbers, "weights": state.weights}]
        kept: State = {"scored": [k for k, _ in self.scores]}
        kept |= {"scores": [s for _, s in self.scores], "best": best, "waited": self.waited}
        return kept if self.own is None else {**kept, "callback": self.own.to_state()}

    def from_state(self, saved: Saved) -> None:
        """Restore the state of an interrupted fit."""
        at, scores = saved.numbers("scored"), saved.numbers("scores")
        self.scores = [(int(k), score) for k, score in zip(at, scores, strict=False)]
        self.waited = saved.integer("waited")
        for best in saved.parts("best"):
            n_iter, n_evaluations = best.integer("iteration"), best.integer("n_evaluations")
            numbers = (best.number("value"), best.number("gradient_norm"))
            weights = best.array("weights", np.float64, (self.n_weights,), finite=False)
            state = Iteration(n_iter, *numbers, n_evaluations, best.number("elapsed"), weights)
            self.best = (best.number("best_score"), state._replace(gap=best.number("gap")))
        if self.own is not None:
            self.own.from_state(saved.part("callback"))

    def chosen(self, solution: Solution) -> Solution:
        """The solution; with validation, the solver's weights of the best score."""
        if self.n_iter_no_change is None or self.best is None:
            return solution
        best = self.best[1]._asdict()
        kept = {name: best[name] for name in ("weights", "value", "gradient_norm", "gap")}
        return replace(solution, **kept)


def with_model(
    callback: Callback | None, estimator: Estimator, fitted: Mapping[str, object]
) -> Callback | None:
    """The user's callback with `model`, built from these fitted attributes."""
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
    """The callbacks of `Estimator.set_callbacks` as one callback during a fit; None if none are
    set.

    Set the estimator's fitted attributes before this context ends, so that callbacks see the fitted
    model.

    Parameters
    ----------
    max_iter : int or None
        Maximum number of iterations that are reported; None for no limit.
    data : dict
        `X`, `y` and `metadata`, for callbacks that request them.
    attributes : callable, optional
        Builds the fitted attributes after an iteration, for callbacks that request the model.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        yield None
        return
    with needed("sklearn", "set_callbacks"):
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


def warn_not_converged(report: FitReport) -> None:
    """Warn if a fit stopped before it converged."""
    begin = f"solver {report.solver!r} did not converge in {report.n_iter} iterations; "
    if report.status is Status.SETTLED:
        advice = f"{report.status.value}: decrease tol, scale the data, or use another solver"
    else:
        advice = "increase max_iter, increase tol, or scale the data"
    warnings.warn(
        begin + advice,
        as_sklearn(ConvergenceWarning),
        stacklevel=5,
    )


class InterruptedFitWarning(UserWarning):
    """Ctrl-C ended a fit; the model has the best weights so far."""


@contextmanager
def whole_fits() -> Iterator[None]:
    """Within this context, Ctrl-C in a fit raises KeyboardInterrupt.

    Searches compare finished models, and later stages need earlier ones: a partial fit is useless
    there, and one key press must end everything.

    >>> with whole_fits():
    ...     pass
    """
    token = _WHOLE.set(True)
    try:
        yield
    finally:
        _WHOLE.reset(token)


def keep_or_raise(n_iter: int, learned: bool) -> None:
    """After Ctrl-C: warn that the model has the best weights so far, or raise KeyboardInterrupt."""
    global _last
    before, _last = _last, time.monotonic()
    if not learned or _WHOLE.get() or _last - before < _AGAIN or _in_search():
        raise KeyboardInterrupt
    warnings.warn(
        f"Ctrl-C ended the fit after {n_iter} iterations: the model has the best weights so far "
        "(fit_report_.status is INTERRUPTED); to continue, fit again with warm_start=True. "
        "Press Ctrl-C twice to stop the program",
        InterruptedFitWarning,
        stacklevel=5,
    )


def _in_search() -> bool:
    """Whether a scikit-learn search or cross-validation called this fit."""
    if "sklearn.model_selection" not in sys.modules:
        return False
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("sklearn.model_selection."):
            return True
        frame = frame.f_back
    return False
