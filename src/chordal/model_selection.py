"""Regularization paths, and estimators that choose the strength by cross-validation."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from chordal import _html
from chordal._errors import UnsupportedError, not_fitted
from chordal._optional import needed
from chordal._scratch import scratch_folder
from chordal._validate import check_number
from chordal.estimators import (
    BaseCRF,
    ChainCRF,
    Estimator,
    datasets_of,
    is_stream,
    labels_in,
    subsets,
    whole_fits,
)
from chordal.metrics import METRICS, Scorer, make_sequence_scorer
from chordal.potentials import Floats
from chordal.prepared import Dataset
from chordal.progress import Progress

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator

C = TypeVar("C", bound="CrossValidated")
Examples = Sequence[Any] | NDArray[Any]  # one entry, or one row, per example
Candidates = tuple[Any, str, Floats]  # the estimator, its parameter to choose, and the values
Fold = tuple[tuple[Any, Any], tuple[Any, Any]]  # X and y to fit, and those apart


class Regularized(Protocol):
    """An estimator with a regularization parameter and warm starts."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""

    def set_params(self, **params: object) -> Regularized:
        """Set parameters."""

    def fit(self, X: object, y: object = None) -> Regularized:
        """Learn from examples."""


@dataclass(frozen=True)
class RegularizationPath:
    """Models for several strengths of regularization, in the given order.

    Attributes
    ----------
    parameter : {"l2", "l1"}
    values : array [n_values]
    weights : list of arrays
        The weights of each model fitted to all data: `weights_`, or `coef_` and intercepts.
    objectives : array [n_values], the final objective of each fit
    n_iter : array [n_values], the number of iterations of each fit
    scores : array [n_values, n_splits] or None
        Scores on the validation data, or on each held-out fold.
    """

    parameter: str
    values: Floats
    weights: list[Floats]
    objectives: Floats
    n_iter: NDArray[np.int64]
    scores: Floats | None

    @property
    def best(self) -> int:
        """The index of the best mean score; of equal ones, the strongest regularization."""
        if self.scores is None:
            raise ValueError("there are no scores: give validation_data or cv")
        return _best(self.values, self.scores)

    @property
    def best_value(self) -> float:
        """The strength with the best mean score."""
        return float(self.values[self.best])


def regularization_path(
    estimator: Regularized,
    X: Examples,
    y: Examples,
    *,
    l2s: Sequence[float] | None = None,
    l1s: Sequence[float] | None = None,
    validation_data: tuple[Any, Any] | None = None,
    cv: int | BaseCrossValidator | None = None,
    scoring: str | Scorer | None = None,
) -> RegularizationPath:
    """Fit an estimator with several strengths of regularization.

    The strongest comes first, and each fit starts from the previous weights. This takes far fewer
    iterations than independent fits.

    Parameters
    ----------
    estimator : ChainCRF, or another with the parameters l1 or l2 and warm_start
        It does not change; copies are fitted.
    X, y : training data
    l2s, l1s : list of numbers; give exactly one of the two
    validation_data : (X, y), optional
        Data to score the models on.
    cv : int or splitter of scikit-learn, optional
        Score by cross-validation instead; fits one more path per fold.
    scoring : str or callable, optional
        A metric of `chordal.metrics` by name, or a scikit-learn scorer; default: the estimator's
        `score`.

    Examples
    --------
    >>> from chordal.datasets import load_digit_dates
    >>> dates = load_digit_dates(60, 100)
    >>> path = regularization_path(
    ...     ChainCRF(), dates.X_train, dates.y_train, l2s=[0.1, 1, 10, 100],
    ...     validation_data=(dates.X_test, dates.y_test),
    ... )
    >>> path.best_value in path.values, path.scores.shape
    (True, (4, 1))
    """
    parameter, values = _grid(l2s, l1s)
    _check_estimator(estimator, parameter)
    if validation_data is not None and cv is not None:
        raise ValueError("give validation_data or cv, not both")
    scorer = _scorer(estimator, scoring)
    weights: list[Any] = [None] * len(values)
    objectives, n_iter = np.empty(len(values)), np.empty(len(values), dtype=np.int64)
    columns = []
    column = np.empty(len(values))
    for k, model in _walk(estimator, parameter, values, X, y):
        weights[k], objectives[k], n_iter[k] = _weights(model), model.objective_, model.n_iter_
        if validation_data is not None:
            column[k] = scorer(model, *validation_data)
    if validation_data is not None:
        columns.append(column)
    if cv is not None:
        columns = _fold_scores(estimator, parameter, values, X, y, cv, scorer)
    scores = np.stack(columns, axis=1) if columns else None
    return RegularizationPath(parameter, values, weights, objectives, n_iter, scores)


class CrossValidated(Estimator):
    """An estimator that chooses its regularization by cross-validation with warm starts."""

    estimator_: Any
    classes_: NDArray[Any]
    scores_: Floats
    values_: Floats
    best_params_: dict[str, float]

    def __init__(
        self,
        estimator: Regularized | None = None,
        *,
        l2s: Sequence[float] = (0.01, 0.1, 1.0, 10.0, 100.0),
        l1s: Sequence[float] | None = None,
        cv: int | BaseCrossValidator | None = 5,
        scoring: str | Scorer | None = None,
    ) -> None:
        self.estimator = estimator
        self.l2s = l2s
        self.l1s = l1s
        self.cv = cv
        self.scoring = scoring

    @staticmethod
    @abstractmethod
    def _make() -> Regularized:
        """The default estimator."""

    def fit(self: C, X: Examples, y: Examples | None = None) -> C:
        """Score each strength on each fold, then fit the best to all data.

        Parameters
        ----------
        X, y : as for the estimator
            Or, without y, a `Dataset`, its path, a list of them, or an iterator of batches. Folds
            are then written to a temporary folder; memory holds the labels, and the fits need no
            more than others of data on disk.
        """
        asked = self._candidates()  # wrong values are named before anything is read
        return self._fit_stored(asked, X) if y is None else self._fit(asked, X, y)

    def _candidates(self) -> Candidates:
        """The choices, checked."""
        given = self._make() if self.estimator is None else self.estimator
        parameter, values = _grid(self.l2s if self.l1s is None else None, self.l1s)
        _check_estimator(given, parameter)
        return given, parameter, values

    def _fit_stored(self: C, asked: Candidates, X: Any) -> C:
        given = asked[0]
        if not isinstance(given, BaseCRF):
            raise UnsupportedError(f"{type(given).__name__} needs examples in memory: give X and y")
        with ExitStack() as held:
            if is_stream(X):
                folder = held.enter_context(scratch_folder("batches"))
                X = given.prepare(os.path.join(folder, "data"), X)
            datasets = datasets_of(X)
            if datasets is None:
                raise TypeError("y is missing: only prepared data sets and batches include labels")
            return self._fit(asked, datasets, None)

    def _fit(self: C, asked: Candidates, X: Any, y: Examples | None) -> C:
        with needed("sklearn", type(self).__name__):
            from sklearn.base import clone

        given, parameter, values = asked
        scorer = _scorer(given, self.scoring)
        if y is None:
            scorer = _stored_scorer(self.scoring, scorer)
        columns = _fold_scores(given, parameter, values, X, y, self.cv, scorer)
        scores = np.stack(columns, axis=1)
        chosen = {parameter: float(values[_best(values, scores)])}
        self.estimator_ = clone(given).set_params(**chosen).fit(X, y)
        self.classes_, self.scores_, self.values_ = self.estimator_.classes_, scores, values
        self.best_params_ = chosen
        return self

    def _learned_html(self) -> str:
        if not hasattr(self, "estimator_"):
            return ""
        (name,) = self.best_params_
        means, spreads = self.scores_.mean(axis=1), self.scores_.std(axis=1)
        rows = [
            (f"{value:g}", f"{mean:.4f} ± {spread:.4f}")
            for value, mean, spread in zip(self.values_, means, spreads, strict=True)
        ]
        table = _html.table([_html.text(name), "score ± deviation over the folds"], rows)
        title = f"Choice: {name} = {self.best_params_[name]:g}"
        own = getattr(self.estimator_, "_learned_html", str)()
        return f'<div style="{_html.FONT}">{_html.folded(title, table)}</div>{own}'

    def _fitted(self) -> Any:
        if not hasattr(self, "estimator_"):
            raise not_fitted(self)
        return self.estimator_

    def predict(self, X: Examples, **options: object) -> Sequence[Any] | NDArray[Any]:
        """Predict with the best model."""
        return self._fitted().predict(X, **options)

    def log_likelihood(self, X: Examples, y: Examples) -> Floats:
        """log p(y | x) of each example under the best model."""
        return self._fitted().log_likelihood(X, y)

    def score(self, X: Examples, y: Examples | None = None) -> float:
        """The score by the metric that was used for the choice; data sets include y."""
        scorer = _scorer(self._fitted(), self.scoring)
        datasets: Any = datasets_of(X, y)
        if datasets is None:
            return float(scorer(self.estimator_, X, y))
        return float(_stored_scorer(self.scoring, scorer)(self.estimator_, datasets, None))


@final
class ChainCRFCV(CrossValidated):
    """Chain CRF whose regularization is chosen by cross-validation.

    Parameters
    ----------
    estimator : ChainCRF, optional
        The estimator with all other parameters.
    l2s : list of numbers
        Values of l2 to choose from.
    l1s : list of numbers, optional
        Values of l1 to choose from instead; l2 is then the estimator's.
    cv : int or splitter of scikit-learn
        Number of folds, or how to split.
    scoring : str or callable, optional
        A metric of `chordal.metrics` by name ("chunk_f1", …), or a scikit-learn scorer. The default
        is the share of correct positions.

    Attributes
    ----------
    estimator_ : ChainCRF
        The best model, fitted to all data.
    best_params_ : dict
    scores_ : array [n_values, n_folds]
    values_ : array [n_values]
    classes_ : array of labels

    Examples
    --------
    >>> from chordal.datasets import load_digit_dates
    >>> dates = load_digit_dates(40, 40)
    >>> model = ChainCRFCV(l2s=[1.0, 100.0], cv=3).fit(dates.X_train, dates.y_train)
    >>> model.best_params_, model.scores_.shape
    ({'l2': 1.0}, (2, 3))
    """

    @staticmethod
    def _make() -> Regularized:
        return ChainCRF()

    def predict_marginals(self, X: Examples, **options: object) -> Sequence[Floats]:
        """Marginal probabilities under the best model."""
        return self._fitted().predict_marginals(X, **options)


@final
class CRFClassifierCV(CrossValidated):
    """`CRFClassifier` whose regularization is chosen by cross-validation.

    Parameters and attributes are those of `ChainCRFCV`; `estimator` is a `CRFClassifier`. `scoring`
    is a scikit-learn scorer; the default is the share of correct examples.

    Examples
    --------
    >>> from chordal.datasets import make_curved_classes
    >>> X, y = make_curved_classes(60)
    >>> CRFClassifierCV(l2s=[0.1, 1.0], cv=3).fit(X, y).scores_.shape
    (2, 3)
    """

    @staticmethod
    def _make() -> Regularized:
        from chordal.estimators import CRFClassifier  # imports scikit-learn

        return CRFClassifier()

    def predict_proba(self, X: Examples) -> Floats:
        """Class probabilities under the best model."""
        return self._fitted().predict_proba(X)

    def decision_function(self, X: Examples) -> Floats:
        """Scores under the best model."""
        return self._fitted().decision_function(X)


def _grid(l2s: Sequence[float] | None, l1s: Sequence[float] | None) -> tuple[str, Floats]:
    """Which parameter, and its values."""
    if (l2s is None) == (l1s is None):
        raise ValueError("give exactly one of l2s and l1s")
    name = "l2" if l1s is None else "l1"
    values: object = l2s if l1s is None else l1s
    if not isinstance(values, Iterable):
        raise TypeError(f"{name}s must be a list of numbers, got {values!r}")
    given = list(values)
    if not given:
        raise ValueError(f"{name}s is empty: give at least one value")
    for value in given:
        check_number(f"each of {name}s", value)
    return name, np.array(given, dtype=np.float64)


def _check_estimator(estimator: Regularized, parameter: str) -> None:
    known = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    for name in (parameter, "warm_start"):
        if name not in known:
            raise TypeError(f"estimator must have the parameter {name}, got {estimator!r}")


def _scorer(estimator: Regularized, scoring: str | Scorer | None) -> Scorer:
    with needed("sklearn", "chordal.model_selection"):
        from sklearn.metrics import check_scoring

    if isinstance(scoring, str) and scoring in METRICS and isinstance(estimator, ChainCRF):
        return make_sequence_scorer(scoring)
    return check_scoring(estimator, scoring)


def _walk(
    estimator: Regularized, parameter: str, values: Floats, X: Examples, y: Examples | None
) -> Iterator[tuple[int, Any]]:
    """The index of each value and its fitted model, the strongest first."""
    with needed("sklearn", "chordal.model_selection"):
        from sklearn.base import clone

    model = clone(estimator).set_params(warm_start=True)
    verbose = int(estimator.get_params(deep=False).get("verbose", 0))
    with Progress("path", len(values), "value", verbose=min(verbose, 1)) as progress:
        for n, k in enumerate(np.argsort(-values, kind="stable").tolist()):
            progress.update(n + 1, f"{parameter}={values[k]:g}", share=n / len(values))
            model.set_params(**{parameter: float(values[k])})
            with whole_fits():
                model.fit(X, y)
            yield k, model


def _fold_scores(
    estimator: Regularized,
    parameter: str,
    values: Floats,
    X: Examples,
    y: Examples | None,
    cv: int | BaseCrossValidator | None,
    scorer: Scorer,
) -> list[Floats]:
    """For each fold the scores of all values."""
    total, folds = (_folds if y is not None else _stored_folds)(estimator, X, y, cv)
    out: list[Floats] = []
    verbose = int(estimator.get_params(deep=False).get("verbose", 0))
    with Progress("cross-validate", total, "fold", verbose=min(verbose, 1)) as progress:
        for rest, apart in folds:
            progress.update(len(out) + 1, share=len(out) / total)
            column = np.empty(len(values))
            for k, model in _walk(estimator, parameter, values, *rest):
                column[k] = scorer(model, *apart)
            out.append(column)
    return out


def _folds(estimator: Any, X: Any, y: Any, cv: Any) -> tuple[int, Iterator[Fold]]:
    """How many folds there are, and of each the examples to fit and those apart."""
    with needed("sklearn", "chordal.model_selection"):
        from sklearn.base import is_classifier
        from sklearn.model_selection import check_cv
        from sklearn.utils import _safe_indexing, indexable

    X, y = indexable(X, y)
    splitter = check_cv(cv, y, classifier=is_classifier(estimator))

    def folds() -> Iterator[Fold]:
        for split in splitter.split(X, y):
            rest, apart = ((_safe_indexing(X, own), _safe_indexing(y, own)) for own in split)
            yield rest, apart

    return splitter.get_n_splits(X, y), folds()


def _stored_folds(estimator: Any, datasets: Any, y: object, cv: Any) -> tuple[int, Iterator[Fold]]:
    """The same of data sets, for `_stored_scorer`; folds lie in a temporary folder."""
    with needed("sklearn", "chordal.model_selection"):
        from sklearn.base import is_classifier
        from sklearn.model_selection import check_cv

    labels = _stored_labels(estimator, datasets)
    numbers = np.arange(len(labels))
    splitter = check_cv(cv, labels, classifier=is_classifier(estimator))

    def folds() -> Iterator[Fold]:
        for split in splitter.split(numbers, labels):
            with scratch_folder("folds") as folder:
                rest, apart = (
                    subsets(estimator, datasets, np.isin(numbers, own), os.path.join(folder, name))
                    for name, own in zip(("rest", "apart"), split, strict=True)
                )
                yield (rest, None), (apart, None)

    return splitter.get_n_splits(numbers, labels), folds()


def _stored_labels(estimator: Any, datasets: Sequence[Dataset]) -> list[Any]:
    found = labels_in(estimator, datasets)
    return [own[0] for own in found] if estimator.classifies else found


def _stored_scorer(scoring: str | Scorer | None, scorer: Scorer) -> Scorer:
    """A scorer of data sets, which include labels."""
    if scoring is None:
        return lambda model, X, y: float(model.score(X))
    return lambda model, X, y: float(scorer(model, X, _stored_labels(model, X)))


def _weights(model: Any) -> Floats:
    """All learned weights as one array."""
    if hasattr(model, "weights_"):
        return np.asarray(model.weights_).copy()
    return np.concatenate([np.ravel(model.coef_), np.ravel(model.intercept_)])


def _best(values: Floats, scores: Floats) -> int:
    means = scores.mean(axis=1)
    best = np.flatnonzero(means == means.max())
    return int(best[np.argmax(values[best])])
