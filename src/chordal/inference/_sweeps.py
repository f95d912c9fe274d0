"""Gibbs sweeps over a batch, and convergence diagnostics of chains."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal.inference._answers import Labels
from chordal.potentials import Floats, Potentials

UNIFORMS = 2_000_000  # drawn at a time


def sweep(
    potentials: Potentials,
    labels: Labels,
    n_sweeps: int,
    rng: np.random.Generator,
    order: NDArray[np.int64] | None = None,
    temperatures: Floats | None = None,
) -> None:
    """Draw every variable given all others, n_sweeps times, in place.

    labels : int32 [n_chains, n_variables], C order, where the chains are
    order : int64 [n_variables], by default as they are numbered
    temperatures : float64 [n_sweeps], by default 1

    Labels with finite scores are preferred to forbidden ones, so chains that start at an allowed
    labelling stay allowed.
    """
    if order is None:
        order = np.arange(potentials.structure.n_variables)
    at_once = max(1, UNIFORMS // max(1, labels.size))
    for first in range(0, n_sweeps, at_once):
        n = min(at_once, n_sweeps - first)
        beta = np.ones(n) if temperatures is None else 1.0 / temperatures[first : first + n]
        draw(potentials, labels, order, rng.random(n * labels.size), beta)


def draw(
    potentials: Potentials,
    labels: Labels,
    order: NDArray[np.int64],
    uniform: Floats,
    beta: Floats,
) -> None:
    """Draw these variables in this order, with these uniform numbers, once for each β."""
    _kernels.gibbs_sweeps(
        potentials.scores,
        potentials.structure.incidence,
        order,
        labels.reshape(-1),
        beta=beta,
        uniform=uniform,
    )


def r_hat(draws: Floats) -> Floats:
    """Potential scale reduction of split chains: near 1 if all halves of chains agree.

    Parameters
    ----------
    draws : float64 [n_chains, n_draws, ...]
        At least four draws of each chain.

    References
    ----------
    Gelman and Rubin (1992), Inference from iterative simulation using multiple sequences; split
    as by Gelman et al. (2013), Bayesian data analysis, 3rd edition, section 11.4.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bool(r_hat(rng.normal(size=(4, 500))) < 1.01)
    True
    >>> bool(r_hat(rng.normal(size=(4, 500)) + [[0], [0], [0], [3]]) > 1.5)
    True
    """
    halves = _halves(draws)
    n = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((n - 1) / n + between / within)
    # Chains that do not move: all at one value, or each at its own.
    return np.asarray(np.where(within > 0.0, ratio, np.where(between > 0.0, np.inf, 1.0)))


def effective_sample_size(draws: Floats) -> Floats:
    """The number of independent draws that would estimate the mean equally well.

    Parameters
    ----------
    draws : float64 [n_chains, n_draws, ...]
        At least four draws of each chain.

    References
    ----------
    Geyer (1992), Practical Markov chain Monte Carlo: the initial monotone sequence; over several
    chains as by Gelman et al. (2013), section 11.5.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(4, 500))
    >>> bool(1500 < effective_sample_size(x) < 2600)
    True
    """
    halves = _halves(draws)
    m, n = halves.shape[:2]
    flat = halves.reshape(m, n, -1)
    out = np.array([_effective(flat[:, :, k]) for k in range(flat.shape[2])])
    return out.reshape(halves.shape[2:])


def _halves(draws: Floats) -> Floats:
    draws = np.asarray(draws, dtype=np.float64)
    if draws.ndim < 2 or draws.shape[1] < 4:
        raise ValueError(f"draws must be [n_chains, n_draws >= 4, ...], got shape {draws.shape}")
    largest = np.abs(draws).max(initial=0.0)
    if largest > 1e150:  # whose square would not fit; what is made of the draws has no scale
        draws = draws / largest
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _effective(x: Floats) -> float:
    m, n = x.shape
    centred = x - x.mean(axis=1, keepdims=True)
    size = 2 ** int(np.ceil(np.log2(2 * n)))
    spectrum = np.fft.rfft(centred, size, axis=1)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :n].mean(axis=0) / n
    within = covariance[0] * n / (n - 1)
    pooled = covariance[0] + x.mean(axis=1).var(ddof=1)
    if pooled == 0.0:
        return float(m * n)  # nothing varies
    correlation = 1.0 - (within - covariance) / pooled
    correlation[0] = 1.0
    pairs = correlation[: n // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0.0)
    pairs = np.minimum.accumulate(pairs[: negative[0]] if len(negative) else pairs)
    time = max(-1.0 + 2.0 * pairs.sum(), 1.0 / np.log10(m * n))
    return float(m * n / time)
