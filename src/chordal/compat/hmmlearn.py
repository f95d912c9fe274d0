"""Models of hmmlearn as chordal's: hidden Markov models, and from there CRFs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.emissions import Emission
from chordal.emissions.categorical import Categorical
from chordal.emissions.gaussian import Gaussian
from chordal.emissions.multinomial import Multinomial
from chordal.emissions.poisson import Poisson
from chordal.estimators import HMM

if TYPE_CHECKING:
    from hmmlearn.base import BaseHMM


def from_hmmlearn(model: BaseHMM) -> HMM:
    """The `HMM` of a fitted CategoricalHMM, GaussianHMM, PoissonHMM or MultinomialHMM.

    Its labels are the numbers of hmmlearn's states, and its posterior is the same. `to_crf` then
    gives a chain CRF, to be trained on labelled sequences from where hmmlearn stopped.

    Examples
    --------
    >>> from hmmlearn.hmm import PoissonHMM
    >>> peer = PoissonHMM(2)
    >>> peer.startprob_, peer.transmat_ = np.array([1.0, 0.0]), np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> peer.lambdas_ = np.array([[1.0], [9.0]])
    >>> from_hmmlearn(peer).predict([np.array([[0], [8], [12]])])
    [[0, 1, 1]]
    """
    _check(model)
    start, transitions = np.asarray(model.startprob_), np.asarray(model.transmat_)
    return HMM.from_parameters(list(range(len(start))), start, transitions, _emission(model))


def _check(model: BaseHMM) -> None:
    from hmmlearn import base

    if not isinstance(model, base.BaseHMM):
        raise TypeError(f"model must be one of hmmlearn's, got {type(model).__name__}")
    if not hasattr(model, "startprob_") or not hasattr(model, "transmat_"):
        raise ValueError(f"this {type(model).__name__} is not fitted yet; call its 'fit' first")


def _emission(model: BaseHMM) -> Emission:
    from hmmlearn import hmm

    if isinstance(model, hmm.CategoricalHMM):
        table = np.asarray(model.emissionprob_)
        return Categorical.of([list(range(table.shape[1]))], [table])
    if isinstance(model, hmm.GaussianHMM):
        return Gaussian.of(model.means_, _covariances(model))
    if isinstance(model, hmm.PoissonHMM):
        return Poisson.of(model.lambdas_)
    if isinstance(model, hmm.MultinomialHMM):
        trials = 1 if model.n_trials is None else model.n_trials
        return Multinomial.of(model.emissionprob_, trials)
    raise UnsupportedError(
        f"{type(model).__name__} has observations that are not of an exponential family given the "
        "state; CategoricalHMM, GaussianHMM, PoissonHMM and MultinomialHMM can be converted"
    )


def _covariances(model: BaseHMM) -> NDArray[Any]:
    """Variances [n, d], or matrices [n, d, d]; hmmlearn shows all kinds as matrices."""
    matrices = np.asarray(model.covars_)
    if model.covariance_type in ("diag", "spherical"):
        return np.diagonal(matrices, axis1=1, axis2=2)
    return matrices
