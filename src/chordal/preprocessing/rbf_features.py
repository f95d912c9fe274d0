"""RBFFeatures: radial basis functions, for linear models with curved boundaries."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from chordal._optional import needed
from chordal._validate import RandomState, check_choice, check_number

with needed("sklearn", "RBFFeatures"):
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.cluster import KMeans
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_array, check_is_fitted, validate_data

Floats = NDArray[np.float64]


@final
class RBFFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Radial basis functions φ_j(x) = exp(−‖x − c_j‖² / (2 width²)).

    Parameters
    ----------
    centres : int, array [n_centres, n_features] or None
        The centres c_j. None: all training points. A number: this many cluster means or
        training points, by `choose`. An array: these centres.
    width : float
        The distance at which a function has fallen to 0.61.
    include_bias : bool
        Whether to put a column of ones first; it is penalised like the others.
    choose : {"kmeans", "sample"}
        How to choose a number of centres: cluster means, or random training points.
    random_state : int, RandomState or None
        Seed of the choice.

    Attributes
    ----------
    centres_ : array [n_centres, n_features]
    n_features_in_, feature_names_in_ : the number of columns, and their names if X has names

    Examples
    --------
    >>> RBFFeatures(width=1.0, include_bias=True).fit_transform([[0.0], [1.0]]).round(2)
    array([[1.  , 1.  , 0.61],
           [1.  , 0.61, 1.  ]])

    >>> from sklearn.pipeline import make_pipeline
    >>> from chordal import CRFClassifier
    >>> from chordal.datasets import make_curved_classes
    >>> X, y = make_curved_classes(200)
    >>> model = make_pipeline(RBFFeatures(30, width=0.8, random_state=0), CRFClassifier(l2=0.1))
    >>> round(CRFClassifier().fit(X, y).score(X, y), 2), round(model.fit(X, y).score(X, y), 2)
    (0.81, 0.93)
    """

    def __init__(
        self,
        centres: Any = None,
        *,
        width: float = 1.0,
        include_bias: bool = False,
        choose: str = "kmeans",
        random_state: RandomState = None,
    ) -> None:
        self.centres = centres
        self.width = width
        self.include_bias = include_bias
        self.choose = choose
        self.random_state = random_state

    def fit(self, X: object, y: object = None) -> RBFFeatures:
        """Choose the centres; y is not used."""
        check_number("width", self.width, strict=True)
        if not 1e-150 <= self.width <= 1e150:  # its square would leave the range of numbers
            raise ValueError(f"width must be from 1e-150 to 1e150, got {self.width!r}")
        check_choice("choose", self.choose, ["kmeans", "sample"])
        self.centres_ = self._centres(validate_data(self, X, dtype=np.float64))
        return self

    def _centres(self, X: Floats) -> Floats:
        if self.centres is None:
            return X.copy()
        if np.ndim(self.centres) == 0:
            check_number("centres", self.centres, minimum=1, integer=True)
            if self.centres > len(X):
                raise ValueError(
                    f"centres must be at most the number of samples ({len(X)}), got {self.centres}"
                )
            if self.choose == "sample":
                random = check_random_state(self.random_state)
                return X[np.sort(random.choice(len(X), self.centres, replace=False))]
            means = KMeans(self.centres, n_init=4, random_state=self.random_state).fit(X)
            return means.cluster_centers_
        given = check_array(self.centres, dtype=np.float64, input_name="centres", copy=True)
        if given.shape[1] != X.shape[1]:
            raise ValueError(
                f"centres must have {X.shape[1]} columns, as X has, got {given.shape[1]}"
            )
        return given

    def transform(self, X: object) -> Floats:
        """The values [n_samples, n_centres], after a column of ones with `include_bias`."""
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        values = rbf_kernel(rows, self.centres_, gamma=0.5 / self.width**2)
        return np.column_stack([np.ones(len(rows)), values]) if self.include_bias else values

    @property
    def _n_features_out(self) -> int:
        return len(self.centres_) + bool(self.include_bias)
