"""Estimators that wrap a CRF, and how generative ones are trained."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._estimator import Estimator
from chordal.emissions import Emission
from chordal.estimators._crf import BaseCRF
from chordal.estimators.chain_crf import ChainCRF
from chordal.features import DenseInput, Input, SparseInput
from chordal.labels import SequenceLabels
from chordal.potentials import Floats


def refuse_stored(estimator: object, X: object) -> None:
    """Raise an error for a prepared data set: it stores what a CRF has read."""
    if hasattr(X, "n_parts"):
        raise UnsupportedError(
            f"{type(estimator).__name__} needs examples in memory, not a prepared data set "
            "of another model: give X and y"
        )


def _asked(method: Callable[..., Any], kind: type[BaseCRF] = BaseCRF) -> Callable[..., Any]:
    """Pass a method on to the wrapped CRF, which must be of class `kind`."""

    @wraps(method)
    def ask(self: Wrapped, X: object, *arguments: object, **options: Any) -> Any:
        observed = self._observed(X)
        if not isinstance(self.crf_, kind):
            raise UnsupportedError(
                f"{method.__name__} needs a {kind.__name__}, but this model wraps a "
                f"{type(self.crf_).__name__}"
            )
        if options.get("allowed_labels") is not None:
            options["allowed_labels"] = self._allowed(options["allowed_labels"])
        return method(self.crf_, observed, *arguments, **options)

    return ask


class Wrapped(Estimator):
    """An estimator whose answers come from the CRF in `crf_`."""

    classes_: NDArray[Any]
    crf_: BaseCRF
    learned: ClassVar[str] = "crf_"

    @abstractmethod
    def _observed(self, X: object) -> Sequence[Any]:
        """The CRF's input for these examples; raises an error before `fit`."""

    def _allowed(self, given: Sequence[Any]) -> Sequence[Any]:
        """`allowed_labels` as the CRF takes them."""
        return given

    predict = _asked(BaseCRF.predict)
    loss_augmented_predict = _asked(BaseCRF.loss_augmented_predict)
    predict_codes = _asked(BaseCRF.predict_codes)
    predict_marginals = _asked(BaseCRF.predict_marginals)
    node_scores = _asked(BaseCRF.node_scores)
    potentials = _asked(BaseCRF.potentials)
    k_best = _asked(BaseCRF.k_best)
    sample = _asked(BaseCRF.sample)
    log_likelihood = _asked(BaseCRF.log_likelihood)
    entropy = _asked(BaseCRF.entropy)
    span_probabilities = _asked(ChainCRF.span_probabilities, ChainCRF)
    score = _asked(BaseCRF.score)


def fit_emission(
    emission: Emission,
    data: object,
    labels: SequenceLabels,
    codes: NDArray[Any],
    weight: Floats | None,
) -> None:
    """Estimate the distribution of observations of every label, in the order of the classes."""
    n = len(labels)
    counts = np.bincount(codes, weight, minlength=n)
    if not (counts > 0.0).all():
        label = labels.labels[labels.order[int(np.argmin(counts))]]
        raise ValueError(
            f"label {label!r} has no observation of positive weight; raise its sample_weight "
            "or remove the label from y"
        )
    emission.fit(data, codes, n, weight)


def input_of(emission: Emission) -> Input:
    """The input that reads the sufficient statistics of a family."""
    n = emission.natural.shape[1]
    return SparseInput(n) if emission.sparse else DenseInput(n)
