"""What generative models share: how they learn, and the CRF of the same posterior."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal.emissions import EMISSIONS, Emission
from chordal.estimators._estimator import Estimator
from chordal.estimators._labels import SequenceLabels
from chordal.estimators.chain_crf import ChainCRF
from chordal.features import DenseInput, Input, SparseInput
from chordal.potentials import Floats

Ints = NDArray[np.int64]


class Generative(Estimator):
    """A joint model p(x, y) whose posterior p(y | x) is a conditional random field."""

    emission: str | Emission
    random_state: Any

    classes_: NDArray[Any]
    emission_: Emission
    labels_: SequenceLabels
    _crf: ChainCRF

    def _check_fitted(self) -> None:
        if not hasattr(self, "emission_"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet; call 'fit' first"
            )

    def _new_emission(self) -> Emission:
        return copy.deepcopy(EMISSIONS.resolve(self.emission))

    def _fit_emission(
        self, emission: Emission, data: Any, labels: SequenceLabels, codes: Ints, weight: Any
    ) -> None:
        """Learn the distribution of observations of every label, by their order in classes_."""
        n = len(labels)
        counts = np.bincount(codes, weight, minlength=n)
        if not (counts > 0.0).all():
            label = labels.labels[labels.order[int(np.argmin(counts))]]
            raise ValueError(
                f"label {label!r} has no observation of positive weight to learn from; "
                "raise sample_weight, or leave it out"
            )
        emission.fit(data, codes, n, weight)


def class_codes(labels: SequenceLabels, numbers: NDArray[Any]) -> Ints:
    """Label numbers as indices into the classes."""
    return np.argsort(labels.order)[numbers]


def input_of(emission: Emission) -> Input:
    """The input that reads the sufficient statistics of a family."""
    n = emission.natural.shape[1]
    return SparseInput(n) if emission.sparse else DenseInput(n)
