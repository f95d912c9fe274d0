"""CRFClassifier: one variable per example, the simplest conditional random field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal._optional import needed
from chordal._sparse import check_sparse
from chordal._validate import is_list, is_sparse
from chordal.estimators._asking import joined, names_data, no_scores
from chordal.estimators._crf import BaseCRF, ValidationData
from chordal.estimators._still import unchanged_on_error
from chordal.estimators._training.checkpoint import Checkpoint
from chordal.estimators._training.choosing import objective_for, solver_for
from chordal.estimators._training.preparing import is_stored, is_stream
from chordal.features import (
    Batch,
    Cliques,
    CliqueTemplate,
    DenseInput,
    Input,
    Reader,
    Rows,
    SparseInput,
    input_for,
    itself,
)
from chordal.labels import SequenceLabels
from chordal.objectives import Objective
from chordal.potentials import Floats
from chordal.solvers import Callback
from chordal.targets import Target

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from chordal.estimators._training.stored_rows import StoredRows


#: How errors of NumPy begin, which do not say what was wrong.
_OF_NUMPY = ("could not convert", "float() argument", "setting an array element")


@final
@dataclass(eq=False, repr=False, kw_only=True)
class CRFClassifier(BaseCRF):
    """Linear classifier: a conditional random field of one variable per example.

    Minimises Σ loss + l1·‖w‖₁ + (l2/2)·‖w‖² over the weights of one linear function per class. With
    the likelihood this is logistic regression; with the hinge, a multi-class support vector
    machine. For two classes only the second has a function, as in binary logistic regression. The
    groups of weights are "node" and "intercept".

    Parameters
    ----------
    l2 : float or dict, default=1.0
        Strength of the L2 penalty (l2/2)·‖w‖². scikit-learn's C is 1 / l2, and a penalty λ‖w‖² is
        l2 = 2λ. The intercept is not penalised, unless l2 is a dict that names it: {"node": 1.0,
        "intercept": 1.0}. Solvers with a duality gap, such as "one_slack", penalise it by a
        thousandth of the largest l2.
    fit_intercept : bool, default=True
        Whether each function has a constant term.
    class_weight : dict, "balanced" or None, default=None
        Weight of the examples of each class; "balanced" gives all classes the same total weight.

    Attributes
    ----------
    coef_ : array [n_classes, n_features], or [1, n_features] for two classes
    intercept_ : array [n_classes] or [1]
    n_features_in_, feature_names_in_ : the number of columns, and their names if X has names

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

    fit_intercept: bool = True

    unpenalised: ClassVar[tuple[str, ...]] = ("intercept",)
    classifies: ClassVar[bool] = True

    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        validation_data: ValidationData | None = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | Checkpoint | None = None,
    ) -> CRFClassifier:
        """Learn the weights.

        Parameters
        ----------
        X : array or SciPy sparse matrix [n_samples, n_features]
        y : array of labels [n_samples]
        """
        keep = self._goes_on()
        options: dict[str, Any] = {"validation_data": validation_data, "callback": callback}
        options["checkpoint"] = checkpoint
        if is_stored(X, y) or is_stream(X):
            return super().fit(X, None, sample_weight, **options)
        with unchanged_on_error(self):
            _, labels = self._matrix(X, y, reset=not keep)
            classes = np.unique(labels)
            if keep and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    "with warm_start, y must have the classes of the previous fit, "
                    f"{self.classes_}; got {classes}"
                )
            self._all_classes = _enough(classes)
            return super().fit(X, labels, sample_weight, **options)

    def partial_fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        classes: ArrayLike | None = None,
    ) -> CRFClassifier:
        """Continue training on more data.

        The L2 penalty then pulls all weights, including the intercept, towards the current weights
        instead of zero. So the model keeps what it learned wherever the new data have no evidence.

        Parameters
        ----------
        classes : array of labels, optional
            All classes of all calls. Required in the first call, unless its y has them all.
        """
        keep = hasattr(self, "weights_")
        if is_stored(X, y) or is_stream(X):
            return super().partial_fit(X, None, sample_weight)
        _, labels = self._matrix(X, y, reset=not keep)
        given = labels if classes is None else classes
        known = self.classes_ if keep else _enough(np.unique(given))
        if keep and classes is not None and not np.array_equal(np.unique(given), known):
            raise ValueError(f"classes must be those of the first call, {known}; got {classes}")
        strange = np.flatnonzero(~np.isin(labels, known))
        if len(strange):
            k = int(strange[0])
            raise ValueError(
                f"y[{k}] is {labels.tolist()[k]!r}, which is not one of the classes {known}"
            )
        self._all_classes = known
        return super().partial_fit(X, labels, sample_weight)

    _glances: ClassVar[bool] = True

    def _glance(self, X: Any, y: Any, sample_weight: object) -> Any:
        """The classes and columns of a part."""
        _, labels = self._matrix(X, y, reset=True)
        return np.unique(labels), self.n_features_in_, getattr(self, "feature_names_in_", None)

    def _know(self, glances: Sequence[Any]) -> None:
        """Collect all classes, and check that all parts have the columns of the first."""
        if glances:
            self._all_classes = _enough(np.unique(np.concatenate([own[0] for own in glances])))
            _, self.n_features_in_, names = glances[0]
            if names is not None:
                self.feature_names_in_ = names

    def _groups(self) -> Sequence[str]:
        return ("node", "intercept")

    def _matrix(self, X: object, *y: object, reset: bool = False) -> Any:
        """X as a matrix, and y if given, checked as scikit-learn does."""
        with needed("sklearn", "CRFClassifier"):
            from sklearn.utils.multiclass import check_classification_targets
            from sklearn.utils.validation import validate_data

        if is_sparse(X):
            check_sparse(X, "X")
        kinds = [np.float64, np.float32]
        try:
            checked = validate_data(self, X, *y, accept_sparse="csr", dtype=kinds, reset=reset)
        except (TypeError, ValueError) as error:
            if not str(error).startswith(_OF_NUMPY):
                raise
            raise type(error)(
                "X must be a table of numbers [n_samples, n_features]"
                f"{', and y one label for each row' if y else ''}: {error}"
            ) from None
        if y:
            check_classification_targets(checked[1])
        return checked

    def _examples(self, X: object, name: str = "X", known: bool = False) -> Any:
        if isinstance(X, (list, np.ndarray)) and is_list(X) and len(X) == 0:
            return np.zeros((0, self.n_features_in_))
        return self._matrix(X)

    def _flat(self, y: object, X: object, name: str = "y") -> Sequence[Any]:
        """All labels as one sequence, which is faster than one list per example."""
        with needed("sklearn", "CRFClassifier"):
            from sklearn.utils.validation import column_or_1d

        return [np.asarray(column_or_1d(y))]

    def _check_lengths(
        self, sizes: NDArray[np.int64], flat: Sequence[Any], prefix: str = ""
    ) -> None:
        if len(sizes) != len(flat[0]):
            raise ValueError(
                f"{prefix}X and y must have the same length, got {len(sizes)} and {len(flat[0])}"
            )

    def _allowed(self, given: Sequence[Any], X: object) -> Sequence[Any]:
        return [[entry] for entry in given]

    def _new_labels(self) -> SequenceLabels:
        return SequenceLabels.of([self._all_classes], ranked=True)

    def _unlearned_labels(self) -> SequenceLabels:
        return SequenceLabels(ranked=True)

    def _begin_parts(self, X: object, y: object, sample_weight: object) -> None:
        self._matrix(X, y, reset=True)

    def _looks_first(self) -> bool:
        return False  # classes of later batches are added

    def _stored_reader(self, facts: Mapping[str, Any]) -> Reader:
        self._reader_from(facts)  # checks the names of columns
        relative = objective_for(self, solver_for(self)).relative
        return self._reader("relative" if relative else "full", None)

    def _take_stored(self, reader: Reader, labels: SequenceLabels, keep: bool) -> None:
        classes = labels.classes
        if keep and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"the data must have the previous fit's classes, {self.classes_}; got {classes}"
            )
        self._all_classes = _enough(classes)

    def _new_reader(self, X: object, keep: bool = False) -> Reader:
        relative = objective_for(self, solver_for(self)).relative
        return self._reader("relative" if relative else "full", input_for(X))

    def _own_facts(self) -> dict[str, Any]:
        names = getattr(self, "feature_names_in_", None)
        return {"feature_names": None if names is None else [str(name) for name in names]}

    def _reader_from(self, facts: Mapping[str, Any]) -> Reader:
        names = facts["feature_names"]
        if names is not None:
            if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
                raise ValueError("feature_names must be a list of str, or null")
            self.feature_names_in_ = np.array(names, dtype=object)
        return self._reader(facts["templates"][0]["tables"], None)

    def _check_reader(self, reader: Reader) -> None:
        source = reader.inputs[0]
        if source is None:
            raise ValueError("a classifier must have columns")
        self.n_features_in_ = source.n_columns
        names = getattr(self, "feature_names_in_", None)
        if names is not None and len(names) != source.n_columns:
            raise ValueError(f"there must be {source.n_columns} feature_names, got {len(names)}")

    def _reader(self, tables: str, source: Input | None) -> Reader:
        """The reader; for two classes, weights may be "relative" to the first."""
        templates = [
            CliqueTemplate("node", features=itself, fit_intercept=False, tables=tables),
            CliqueTemplate("intercept", fit_intercept=bool(self.fit_intercept), tables=tables),
        ]
        return MatrixReader(templates, [source, None])

    def _restored(self, stored: StoredRows) -> Any:
        """The table of all rows."""
        return stored.table("node")

    def _restored_labels(self, y: list[Any], X: Any) -> NDArray[Any]:
        return np.concatenate([np.asarray(own) for own in y])

    def _class_weighted(
        self, objective: Objective, labels: SequenceLabels, gold: Target, weight: Floats | None
    ) -> tuple[Objective, Floats | None]:
        """`class_weight` as weights of the examples of each class."""
        with needed("sklearn", "CRFClassifier"):
            from sklearn.utils.class_weight import compute_class_weight

        classes, numbers = labels.classes, np.asarray(gold)
        factors = compute_class_weight(
            self.class_weight, classes=classes, y=classes[numbers], sample_weight=weight
        )[numbers]
        return objective, factors if weight is None else weight * factors

    def _decoded(self, numbers: NDArray[np.int32], batch: Batch, X: object) -> NDArray[Any]:
        return self.classes_[numbers]

    def _arranged(self, found: Sequence[Floats], batch: Batch, X: object) -> Floats:
        return joined(found).reshape(-1, len(self.classes_))

    @property
    def coef_(self) -> Floats:
        """Weights [n_classes, n_features], or [1, n_features] of two classes."""
        return _difference(self._table("node", "features").T)

    @property
    def intercept_(self) -> Floats:
        """Constant terms [n_classes], or [1] of two classes; zeros without `fit_intercept`."""
        return _difference(self._table("intercept"))

    def predict(self, X: object, **options: Any) -> NDArray[Any]:
        """The class of each example; options as in `BaseCRF.predict`."""
        if options:
            found: NDArray[Any] = super().predict(X, **options)
            return found
        best = self.node_scores(X).argmax(axis=1)
        return self.classes_[best]

    def node_scores(self, X: object) -> Floats:
        """Scores [n_samples, n_classes]: one product of matrices."""
        if names_data(X):
            stored: Floats = super().node_scores(X)
            return stored
        self._check_fitted()
        table = self._examples(X, known=True)
        scores = np.asarray(table @ self.template_weights("node")["features"])
        scores = scores + self.template_weights("intercept").get("intercept", 0.0)
        if np.isnan(scores.min(initial=0.0)):
            raise no_scores(int(np.isnan(scores).any(axis=1).argmax()), self.weights_)
        return scores

    def decision_function(self, X: object) -> Floats:
        """Scores [n_samples, n_classes]; of two classes, the second's log odds [n_samples]."""
        scores: Floats = self.node_scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: object) -> Floats:
        """p(y | x) ∝ exp(score), in the order of `classes_`.

        Only the likelihood learns probabilities; for other objectives these are rescaled scores.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: object) -> Floats:
        """log p(y | x)."""
        scores: Floats = self.node_scores(X)
        scores = scores - scores.max(axis=1, keepdims=True)
        return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _difference(of_class: Floats) -> Floats:
    """For two classes, the score of the second minus that of the first."""
    return of_class[1:] - of_class[:1] if len(of_class) == 2 else of_class.copy()


class MatrixReader(Reader):
    """Reads the rows of a matrix as examples of one variable each."""

    def read(self, X: Any, grow: bool) -> Batch:
        """Read one example per row."""
        source = self.inputs[0]
        assert source is not None
        if isinstance(source, DenseInput) and is_sparse(X):
            X = X.toarray()
        elif isinstance(source, SparseInput) and not is_sparse(X):
            with needed("scipy", "a sparse matrix"):
                from scipy.sparse import csr_array

            X = csr_array(X)
        data = source.read([X], grow=False).data
        ones = np.ones(X.shape[0], dtype=np.int64)
        rows = [Rows(ones, data), None]
        return Batch(ones, [Cliques.of_pattern("each", 1, ones, own) for own in rows])


def _enough(classes: NDArray[Any]) -> NDArray[Any]:
    if len(classes) < 2:
        raise ValueError(
            f"y must have at least 2 classes, got one class, {classes[0]}: there is nothing to "
            "tell apart"
        )
    return classes
