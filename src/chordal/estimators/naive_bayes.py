"""NaiveBayes: the generative partner of logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from chordal._validate import RandomState, check_number, check_sample_weight, generator_from
from chordal.emissions import Emission, Statistics
from chordal.estimators._asking import names_data
from chordal.estimators._generative import Counts, Generative, Known, input_of
from chordal.estimators._positions import stacked
from chordal.estimators._training.keeping import scored
from chordal.estimators._training.on_part import Given
from chordal.estimators._training.row_forms import RowForm
from chordal.estimators._wrapped import by_parts
from chordal.estimators.chain_crf import ChainCRF, chain_crf
from chordal.features import Rows, length_of
from chordal.labels import SequenceLabels
from chordal.potentials import Floats


@final
@dataclass(eq=False, repr=False)
class NaiveBayes(Generative):
    """Naive Bayes: p(x, y) = p(y) p(x | y), with columns independent given the label.

    Parameters
    ----------
    emission : {"gaussian", "categorical", "multinomial", "poisson"} or Emission
        Family of p(x | y); default "gaussian". ``Gaussian("full")`` drops the independence,
        which gives quadratic discriminant analysis.
    random_state : int, Generator or None, default=None
        Seed of `sample`.

    Attributes
    ----------
    classes_ : array of labels
    class_prior_ : array [n_classes]
    emission_ : Emission
        Its parameters are in the order of `classes_`.

    References
    ----------
    Ng and Jordan (2001), On discriminative vs. generative classifiers.

    Examples
    --------
    >>> X = [[0.1], [0.3], [1.9], [2.2]]
    >>> model = NaiveBayes().fit(X, ["a", "a", "b", "b"])
    >>> model.predict([[0.0], [2.0]])
    array(['a', 'b'], dtype='<U1')
    """

    emission: str | Emission = "gaussian"
    _: KW_ONLY
    random_state: RandomState = None

    labels_: SequenceLabels = field(init=False)
    emission_: Emission = field(init=False)
    class_prior_: Floats = field(init=False)
    classifies: ClassVar[bool] = True

    def fit(self, X: object, y: object = None, sample_weight: object = None) -> NaiveBayes:
        """Estimate the probabilities from counts or moments.

        Parameters
        ----------
        X : array or sparse matrix [n, n_features]; for symbols also a list of rows of them
            Or, without y, a `Dataset`, its path, a list of paths, or an iterator of batches
            (X, y) or (X, y, sample_weight). Data on disk are read part by part.
        y : array [n] of labels
        sample_weight : array [n], optional
        """
        self._fit(X, y, sample_weight)
        return self

    def _sequences(self, X: Any, y: Any) -> tuple[Sequence[Any], Any]:
        """Every row as a sequence of one position."""
        table: Any = _table(X)
        n = length_of(X)
        return [table[k : k + 1] for k in range(n)], [[label] for label in _column(y, n).tolist()]

    def _restored(self, part: Given, form: RowForm) -> Given:
        if any(length_of(x) != 1 for x in part.X):
            raise ValueError("its examples are sequences of several positions, not rows")
        X, y, weight = super()._restored(part, form)
        return Given(stacked(X), np.array([label for (label,) in y]), weight)

    def _read(
        self, emission: Emission, X: Any, y: Any, weight: object, grow: bool
    ) -> tuple[Rows, Sequence[Any], Floats | None]:
        rows = emission.read([_table(X)], grow=grow)
        flat = _column(y, int(rows.lengths[0]))
        return rows, [flat], check_sample_weight(weight, len(flat))

    def _counts(
        self, known: Known, rows: Rows, codes: NDArray[np.int32], weight: Floats | None
    ) -> Counts:
        return known.emission.sums(rows.data, codes, len(known.labels), weight)

    def _learn(self, known: Known, counts: Counts) -> None:
        self.labels_, self.classes_ = known.labels, known.labels.classes
        self.emission_, self.class_prior_ = known.emission, counts[1] / counts[1].sum()
        self.crf_ = self._named(self.to_crf())

    def to_crf(self, **parameters: Any) -> ChainCRF:
        """The CRF with the same posterior p(y | x): logistic regression.

        It is a `ChainCRF` without transitions; its input is `statistics(X)`, as one sequence or
        several. `warm_start` is set: `fit` continues from these weights.

        Parameters
        ----------
        **parameters
            Parameters of `ChainCRF`: l2, solver, n_jobs, ….
        """
        emission = self.emission_
        return chain_crf(
            self.labels_,
            input_of(emission),
            emission.natural,
            intercept=np.log(self.class_prior_) - emission.log_partition,
            **parameters,
        )

    def statistics(self, X: object) -> list[Statistics]:
        """The sufficient statistics of all rows as one sequence: the input of the CRF."""
        self._check_fitted()
        return [self.emission_.statistics(self.emission_.read([_table(X)], grow=False).data)]

    def _observed(self, X: object) -> list[Statistics]:
        """Every row as one sequence."""
        (rows,) = self.statistics(X)
        return [rows[k : k + 1] for k in range(rows.shape[0])]

    def _allowed(self, given: Sequence[Any]) -> Sequence[Any]:
        return [[entry] for entry in given]

    def predict(self, X: object, *, allowed_labels: Sequence[Any] | None = None) -> NDArray[Any]:
        """The most probable label of each row, among `allowed_labels` if given.

        Entries of `allowed_labels` are None, a label, a list of labels or flags.
        """
        codes = self.predict_codes(X, allowed_labels=allowed_labels)
        return self.classes_[codes]

    @by_parts
    def predict_proba(self, X: object) -> Floats:
        """P(y | x), [n, n_classes]."""
        rows = self.statistics(X)
        return self.crf_.predict_marginals(rows)[0]

    def predict_marginals(
        self, X: object, *, allowed_labels: Sequence[Any] | None = None
    ) -> Floats:
        """The same as `predict_proba`, under the name that all chordal estimators share."""
        if allowed_labels is None:
            return self.predict_proba(X)
        return np.concatenate(super().predict_marginals(X, allowed_labels=allowed_labels))

    def score(self, X: object, y: object = None, sample_weight: object = None) -> float:
        """The share of rows that `predict` labels correctly; a data set has its own labels."""
        if y is None and names_data(X, texts=True):
            return scored(self, X, sample_weight)
        found = self.predict(X)
        right = found == _column(y, len(found))
        weight = check_sample_weight(sample_weight, len(right))
        if weight is not None and not weight.any():
            raise ValueError("nothing to score: every sample_weight is 0")
        return float(np.average(right, weights=weight))

    def log_likelihood(self, X: object, y: object) -> Floats:
        """log p(x, y) of each row, the joint probability or density."""
        self._check_fitted()
        rows = self.emission_.read([_table(X)], grow=False)
        codes = self.labels_.codes(self.labels_.encode([_column(y, int(rows.lengths[0]))]))
        density = self.emission_.log_density(rows.data)[np.arange(len(codes)), codes]
        return density + np.log(self.class_prior_)[codes]

    def sample(self, n_samples: int = 1) -> tuple[NDArray[Any], NDArray[Any]]:
        """Draw rows X and their labels y from the joint distribution."""
        self._check_fitted()
        check_number("n_samples", n_samples, minimum=1, integer=True)
        rng = generator_from(self.random_state)
        codes = rng.choice(len(self.classes_), n_samples, p=self.class_prior_)
        return self.emission_.sample(codes, rng), self.classes_[codes]


def _table(X: object) -> object:
    """Rows of observations, in the form of one sequence."""
    if isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], (list, tuple, np.ndarray)):
        numbers = all(isinstance(v, (int, float, np.number)) for row in X for v in row)
        widths = {len(row) for row in X}
        if numbers and len(widths) > 1:
            raise ValueError(f"rows of X must be equally long, got {sorted(widths)[:5]} columns")
        return np.asarray(X) if numbers else X
    return X


def _column(y: object, n_rows: int) -> NDArray[Any]:
    try:
        flat = np.asarray(y)
    except ValueError:
        raise ValueError("y must have one label per row of X, got lists of labels") from None
    if flat.shape != (n_rows,):
        raise ValueError(f"y must have one label per row of X ({n_rows}), got shape {flat.shape}")
    if n_rows == 0:
        raise ValueError("X is empty: give at least one row")
    return flat
