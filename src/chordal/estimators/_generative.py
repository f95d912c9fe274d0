"""What generative models share: how they learn, and the CRF of the same posterior."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.emissions import EMISSIONS, Emission
from chordal.estimators._estimator import Estimator
from chordal.estimators._labels import SequenceLabels
from chordal.estimators.chain_crf import ChainCRF
from chordal.features import ChainFeatures, DenseInput, Input, Rows, SparseInput
from chordal.features._occurrences import Occurrences
from chordal.potentials import Floats

Ints = NDArray[np.int64]


class Generative(Estimator):
    """A joint model p(x, y) whose posterior p(y | x) is a conditional random field."""

    emission: str | Emission
    random_state: Any

    classes_: NDArray[Any]
    emission_: Emission
    _labels: SequenceLabels
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


def chain_crf(
    labels: SequenceLabels,
    source: Input,
    coef: Floats,
    intercept: Floats | None = None,
    transitions: Floats | None = None,
    start: Floats | None = None,
    end: Floats | None = None,
    **parameters: Any,
) -> ChainCRF:
    """A fitted `ChainCRF` with these weights, all in the order of the classes.

    Parameters
    ----------
    source : DenseInput or SparseInput
    coef : array [n_classes, n_columns]
    intercept, start, end : arrays [n_classes], optional
    transitions : array [n_classes, n_classes], optional
        From row to column; without them labels are not linked.
    **parameters
        Of `ChainCRF`; those that say which weights there are follow from the weights.
    """
    n, order = len(labels), np.argsort(labels.order)  # the class of every label number
    ends = start is not None or end is not None
    fixed: dict[str, Any] = {
        "states": "all",
        "transitions": "none" if transitions is None else "all",
        "bias": intercept is not None,
        "ends": ends,
    }
    given = sorted(parameters.keys() & fixed.keys())
    if given:
        raise UnsupportedError(f"{given[0]} follows from the weights and cannot be set")
    model = ChainCRF(**fixed, **{"warm_start": True, **parameters})
    model._check_parameters()
    node = source.features(_no_rows(), np.zeros(0, dtype=np.int32), n, "all")
    kept = np.arange(0 if transitions is None else n * n)
    features = ChainFeatures(n, node, None, kept, intercept is not None, ends)
    keys = node.keys()
    weights = [coef[order][keys.output, keys.column]]
    if transitions is not None:
        weights.append(transitions[np.ix_(order, order)].ravel())
    if intercept is not None:
        weights.append(intercept[order])
    if ends:
        weights += [np.zeros(n) if w is None else w[order] for w in (start, end)]
    model._inputs, model._labels = (source, None), copy.deepcopy(labels)
    model.classes_ = labels.classes
    model.features_, model.inference_ = features, model._inference_for(features)
    model.weights_ = np.concatenate(weights)
    model.objective_, model.n_iter_ = float("nan"), 0  # nothing was minimised
    return model


def _no_rows() -> Rows:
    none = Occurrences(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), None)
    return Rows(np.zeros(0, dtype=np.int64), none)
