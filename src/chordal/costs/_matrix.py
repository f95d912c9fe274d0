"""Costs of single variables as a matrix, for compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from chordal._errors import UnsupportedError
from chordal.costs._base import Cost, Floats
from chordal.potentials import Potentials
from chordal.structures import Chain


class CostMatrix(NamedTuple):
    """A labelling costs Σ values[gold, label] over its variables, or their mean."""

    values: Floats  # [n_labels, n_labels]
    normalised: bool


def cost_matrix(cost: Cost, n_labels: int) -> CostMatrix:
    """The matrix of a cost, found by evaluating it on chains of one and three variables.

    Raises
    ------
    UnsupportedError
        If the cost is not a sum or mean over single variables.

    Examples
    --------
    >>> from chordal.costs.hamming import Hamming
    >>> cost_matrix(Hamming(normalize=True), 2)
    CostMatrix(values=array([[0., 1.],
           [1., 0.]]), normalised=True)
    """
    K, every = n_labels, np.arange(n_labels, dtype=np.int32)
    values = _added(cost, np.ones(K, dtype=np.int64), every, K)
    # Every label follows every other somewhere.
    threes = np.stack([np.repeat(every, K), np.tile(every, K), np.repeat(every, K)], axis=1)
    labels = threes.ravel()
    if K > 30:  # a sample is enough
        labels = threes[:: K + 1].ravel()
    found = _added(cost, np.full(len(labels) // 3, 3), labels, K)
    for normalised in (False, True):
        if np.allclose(found, values[labels] / (3.0 if normalised else 1.0), rtol=1e-12, atol=0.0):
            return CostMatrix(values, normalised)
    raise _refusal(cost)


def _added(cost: Cost, lengths: np.ndarray, labels: np.ndarray, n_labels: int) -> Floats:
    """What the cost adds to each variable's scores [n_variables, n_labels]."""
    chain = Chain(lengths, n_labels)
    tables = np.zeros(n_labels**2 if lengths[0] > 1 else 0)
    scores = Potentials(chain, np.zeros(chain.n_states), tables)
    added = cost.add(scores, labels)
    if added.tables.any():
        raise _refusal(cost)
    return np.array(added.unary).reshape(-1, n_labels)


def _refusal(cost: Cost) -> UnsupportedError:
    return UnsupportedError(
        f"cost {cost.name!r} is not a sum or a mean over single variables, as online solvers "
        "need; use another solver, or cost 'hamming'"
    )
