"""The contract of estimators: what scikit-learn's tools and a user's loop rely on."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.testing import assert_array_equal

from chordal.testing.contracts._common import require


class EstimatorLike(Protocol):
    """The methods of an estimator that these checks call."""

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> EstimatorLike:
        """Learn from examples."""

    def predict(self, X: Sequence[Any]) -> list[Any]:
        """The labels of examples."""

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """How many labels are right."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""

    def set_params(self, **params: object) -> object:
        """Set parameters."""


def check_estimator(estimator: EstimatorLike, X: Sequence[Any], y: Sequence[Any]) -> None:
    """Check an estimator that was not fitted yet, on a few examples that it can learn.

    Parameters are kept as given, and a copy made from them is the same estimator. Prediction
    before `fit` is refused. `fit` returns the estimator, leaves parameters and data as they were,
    and gives the same predictions again. Predictions have the shape of the labels; they survive
    pickling, and do not depend on what else is in the batch.

    Raises
    ------
    AssertionError
        Saying which claim does not hold.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> check_estimator(ChainCRF(), [[["a"], ["b"]], [["b"]]], [["A", "B"], ["B"]])
    """
    params = estimator.get_params(deep=False)
    other = type(estimator)(**params)
    require(repr(other) == repr(estimator), f"made from its parameters it is {other!r}")
    for name, value in params.items():
        require(other.get_params(deep=False)[name] is value, f"parameter {name} is changed")
    _check_unfitted(estimator, X)

    before = copy.deepcopy((params, X, y))
    require(estimator.fit(X, y) is estimator, "fit must return the estimator")
    _check_unchanged(before, (estimator.get_params(deep=False), X, y))
    found = estimator.predict(X)
    require(len(found) == len(X), f"{len(X)} examples have {len(found)} predictions")
    for k, (mine, gold) in enumerate(zip(found, y, strict=True)):
        shapes = np.shape(mine), np.shape(gold)
        require(shapes[0] == shapes[1], f"example {k}: labels have shapes {shapes}")
        _check_equal(estimator.predict([X[k]])[0], mine, f"example {k} alone")
    require(0.0 <= estimator.score(X, y) <= 1.0, "score must be a share")
    for what, again in (
        ("fitted again", other.fit(X, y).predict(X)),
        ("pickled", pickle.loads(pickle.dumps(estimator)).predict(X)),
    ):
        for mine, theirs in zip(found, again, strict=True):
            _check_equal(mine, theirs, what)


def _check_unfitted(estimator: EstimatorLike, X: Sequence[Any]) -> None:
    try:
        estimator.predict(X)
    except (ValueError, AttributeError) as error:  # scikit-learn's NotFittedError is both
        require("fit" in str(error), f"the refusal does not say that it is not fitted: {error}")
        return
    raise AssertionError("predict before fit must be refused")


def _check_unchanged(before: object, after: object) -> None:
    require(repr(before) == repr(after), "fit changes its parameters or its data")


def _check_equal(a: object, b: object, what: str) -> None:
    assert_array_equal(np.asarray(a), np.asarray(b), err_msg=f"predictions, {what}")
