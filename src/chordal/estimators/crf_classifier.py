"""CRFClassifier: one variable per example, the simplest conditional random field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from chordal._status import Status
from chordal._validate import check_number, check_sample_weight
from chordal.estimators._fitting import (
    chain_oracle,
    check_problem,
    check_settings,
    objective_for,
    report_of,
    solver_for,
    training,
)
from chordal.estimators._single import SingleVariables
from chordal.inference import INFERENCE
from chordal.objectives import Objective
from chordal.oracle import Problem
from chordal.potentials import Floats
from chordal.solvers import Callback, Solver
from chordal.structures import Chain

Pair = tuple[Any, Any]


@final
class CRFClassifier(ClassifierMixin, BaseEstimator):
    """Linear classifier: a conditional random field of one variable per example.

    Minimises Σ loss + l1·‖w‖₁ + (l2/2)·‖w‖² over the weights of a linear function per class. With
    the likelihood this is logistic regression, with the hinge a multi-class support vector machine.
    Of two classes only the second has a function, as in binary logistic regression.

    Parameters
    ----------
    objective : str or Objective, default="auto"
        What training minimises; "auto" is the solver's own objective, mostly the likelihood.
    solver : str or Solver, default="lbfgs"
        How. With l1 > 0, "lbfgs" means its orthant-wise form "owlqn".
    l1, l2 : float
        Regularisation. scikit-learn's C is 1 / l2, and a penalty λ‖w‖² is l2 = 2λ. The intercept
        is free of it; to regularise it too, put a column of ones in X instead.
    fit_intercept : bool
        Whether each function has a constant term.
    class_weight : dict, "balanced" or None
        Factors of the examples of each class; "balanced" makes all classes count the same.
    max_iter, tol : int, float, optional
        Stopping rules; None stands for those of the solver.
    validation_interval : int
        With `validation_data`, score it each so many iterations.
    n_iter_no_change : int, optional
        Stop early after so many scores without improvement, and keep the best weights.
    n_jobs : int, optional
        Threads; −1 for all cores. The result is the same, bit for bit.
    random_state : int, RandomState or None
        Seed of the order in which an online solver visits the examples.
    warm_start : bool
        `fit` starts from the weights of the fit before.
    verbose : int
        1 shows progress in a terminal, 2 prints a line per iteration.

    Attributes
    ----------
    classes_ : array of labels
    coef_ : array [n_classes, n_features], or [1, n_features] for two classes
    intercept_ : array [n_classes] or [1]
    n_features_in_, feature_names_in_ : number and, where X has them, names of the columns
    objective_, n_iter_ : final objective, iterations
    fit_report_ : FitReport

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> classifier = CRFClassifier(l2=1.0).fit(X, y)
    >>> classifier.predict(X[:2]), round(classifier.score(X, y), 3)
    (array([0, 0]), 0.973)
    >>> classifier.predict_proba(X[:1]).round(2)
    array([[0.98, 0.02, 0.  ]])
    """

    classes_: NDArray[Any]
    coef_: Floats
    intercept_: Floats

    def __init__(
        self,
        objective: str | Objective = "auto",
        solver: str | Solver = "lbfgs",
        *,
        l1: float = 0.0,
        l2: float = 1.0,
        fit_intercept: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        validation_interval: int = 10,
        n_iter_no_change: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.objective = objective
        self.solver = solver
        self.l1 = l1
        self.l2 = l2
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.validation_interval = validation_interval
        self.n_iter_no_change = n_iter_no_change
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        validation_data: Pair | None = None,
        callback: Callback | None = None,
    ) -> CRFClassifier:
        """Learn the weights.

        Parameters
        ----------
        X : array or SciPy sparse matrix [n_samples, n_features]
        y : array of labels [n_samples]
        sample_weight : array [n_samples], optional
        validation_data : (X, y), optional
            Scored each `validation_interval` iterations.
        callback : callable, optional
            Called with an `Iteration` after each; training stops when it returns True.
        """
        X, y = self._read(X, y, reset=True)
        classes = _classes(y)
        keep = bool(self.warm_start) and hasattr(self, "coef_")
        if keep and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"with warm_start, y must hold the classes of the fit before, {self.classes_}; "
                f"got {classes}"
            )
        weight = check_sample_weight(sample_weight, len(y))
        return self._fit(X, y, classes, weight, validation_data, callback, keep, centre=False)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> CRFClassifier:
        """Go on learning from more data.

        The L2 term then pulls all weights, the intercept's too, towards those so far instead of
        towards zero, so that what was learned before is kept where the new data say nothing.

        Parameters
        ----------
        classes : array of labels, optional
            All classes there will be. The first call needs them, unless its y holds them all.
        """
        keep = hasattr(self, "coef_")
        X, y = self._read(X, y, reset=not keep)
        known = self.classes_ if keep else _classes(y if classes is None else np.asarray(classes))
        if keep and classes is not None and not np.array_equal(np.unique(classes), known):
            raise ValueError(f"classes must be those of the first call, {known}; got {classes}")
        weight = check_sample_weight(sample_weight, len(y))
        return self._fit(X, y, known, weight, None, None, keep, centre=keep)

    def _fit(
        self,
        X: Any,
        y: NDArray[Any],
        classes: NDArray[Any],
        weight: Floats | None,
        validation_data: Pair | None,
        callback: Callback | None,
        keep: bool,
        centre: bool,
    ) -> CRFClassifier:
        check_settings(self)
        check_number("l2", self.l2)
        inference = INFERENCE.resolve("chain")
        solver = solver_for(self.solver, self.l1, self.max_iter, self.tol, self.random_state)
        objective = objective_for(self.objective, solver)
        codes = _codes(y, classes)
        weight = self._class_weighted(classes, codes, weight)
        if weight is not None and not weight.any():
            raise ValueError("sample_weight is zero for every example: there is nothing to learn")
        model = SingleVariables(X, len(classes), bool(self.fit_intercept), objective.relative)
        gold = model.labels(codes)
        penalties = float(self.l2) if centre else model.penalties(float(self.l2))
        exempt, n_weights = not isinstance(penalties, float), model.features.n_weights
        problem = Problem(objective, l2=self.l2, n_weights=n_weights, exempt=exempt)
        check_problem(solver, problem, inference, Chain([1], len(classes)))
        start = np.zeros(model.features.n_weights)
        if keep:
            start = model.weights(self.coef_, self.intercept_)
        validate = None
        if validation_data is not None:
            validate = self._validator(validation_data, classes, model)
        with training(self, solver, callback, validate) as (mapper, monitor):
            oracle = chain_oracle(
                solver,
                model.features,
                (model.rows, None, gold, weight),
                objective,
                inference,
                mapper,
                penalties,
                start if centre else None,
                model.intercepts(),
            )
            solution = solver.minimize(oracle, start, monitor)
        weights, self.fit_report_ = report_of(solution, monitor, solver, inference)
        self.classes_ = classes
        self.coef_, self.intercept_ = model.coefficients(weights)
        self.objective_, self.n_iter_ = self.fit_report_.objective, solution.n_iter
        if solution.status is Status.INTERRUPTED:
            raise KeyboardInterrupt  # the model is fitted with the best weights so far
        return self

    def _read(self, X: Any, y: Any, reset: bool) -> tuple[Any, NDArray[Any]]:
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset
        )
        check_classification_targets(y)
        return X, y

    def _class_weighted(
        self, classes: NDArray[Any], codes: NDArray[np.int32], weight: Floats | None
    ) -> Floats | None:
        """The examples' weights times those of their classes."""
        if self.class_weight is None:
            return weight
        factors = compute_class_weight(
            self.class_weight, classes=classes, y=classes[codes], sample_weight=weight
        )
        return factors[codes] if weight is None else weight * factors[codes]

    def _validator(
        self, data: Pair, classes: NDArray[Any], model: SingleVariables
    ) -> Callable[[Floats], float]:
        """The share of the validation data that given weights label right."""
        if not (isinstance(data, (tuple, list)) and len(data) == 2):
            raise ValueError("validation_data must be a pair (X, y) of examples and labels")
        X, y = self._read(*data, reset=False)

        def score(weights: Floats) -> float:
            decision = _decision(X, *model.coefficients(weights))
            return float((classes[_best(decision)] == y).mean())

        return score

    def decision_function(self, X: Any) -> Floats:
        """Scores [n_samples, n_classes]; of two classes, the second's log odds [n_samples]."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return _decision(X, self.coef_, self.intercept_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each example."""
        best = _best(self.decision_function(X))
        return self.classes_[best]

    def predict_proba(self, X: Any) -> Floats:
        """p(y | x) ∝ exp(score), in the order of `classes_`.

        Probabilities are what the likelihood learns; of other objectives, scores on that scale.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """log p(y | x)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return -np.logaddexp(0.0, np.outer(scores, [1.0, -1.0]))
        return log_softmax(scores, axis=1)

    def log_likelihood(self, X: Any, y: Any) -> Floats:
        """log p(y | x) of each example."""
        log_proba = self.predict_log_proba(X)
        codes = _codes(column_or_1d(y), self.classes_)
        check_consistent_length(log_proba, codes)
        return np.take_along_axis(log_proba, codes[:, None], axis=1)[:, 0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _decision(X: Any, coef: Floats, intercept: Floats) -> Floats:
    scores = safe_sparse_dot(X, coef.T, dense_output=True) + intercept
    return scores[:, 0] if scores.shape[1] == 1 else scores


def _best(decision: Floats) -> NDArray[np.intp]:
    """Which class scores highest; of two, the second has to score above 0."""
    if decision.ndim == 1:
        return (decision > 0.0).astype(np.intp)
    return decision.argmax(axis=1)


def _classes(y: NDArray[Any]) -> NDArray[Any]:
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least 2 classes, got one class, {classes[0]}: there is nothing to "
            "tell apart"
        )
    return classes


def _codes(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int32]:
    """The place of each label in `classes`."""
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    unknown = np.flatnonzero(classes[codes] != y)
    if len(unknown):
        k = int(unknown[0])
        label = y[k].item() if isinstance(y[k], np.generic) else y[k]
        raise ValueError(f"y[{k}] is {label!r}, which is not one of the classes {classes}")
    return codes.astype(np.int32)
