"""What generative models share: how they learn the distribution of observations."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal.emissions import EMISSIONS, Emission
from chordal.features import DenseInput, Input, SparseInput
from chordal.labels import SequenceLabels
from chordal.potentials import Floats


def new_emission(given: str | Emission) -> Emission:
    """The family of this name, or a copy of the one given."""
    return copy.deepcopy(EMISSIONS.resolve(given))


def fit_emission(
    emission: Emission,
    data: object,
    labels: SequenceLabels,
    codes: NDArray[Any],
    weight: Floats | None,
) -> None:
    """Learn the distribution of observations of every label, by their order in the classes."""
    n = len(labels)
    counts = np.bincount(codes, weight, minlength=n)
    if not (counts > 0.0).all():
        label = labels.labels[labels.order[int(np.argmin(counts))]]
        raise ValueError(
            f"label {label!r} has no observation of positive weight to learn from; "
            "raise sample_weight, or leave it out"
        )
    emission.fit(data, codes, n, weight)


def input_of(emission: Emission) -> Input:
    """The input that reads the sufficient statistics of a family."""
    n = emission.natural.shape[1]
    return SparseInput(n) if emission.sparse else DenseInput(n)
