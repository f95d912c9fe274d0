"""Chains of slowly changing labels, observed with noise."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from chordal._optional import needed
from chordal._validate import check_number
from chordal.datasets._files import found
from chordal.datasets._npz import arrays_of, require

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NAMES = ("cuny_crf_synthetic.npz",)
SOURCE = "two fixed draws of the generator"


@dataclass(frozen=True)
class NoisyChains:
    """Labels and what is seen of them.

    Attributes
    ----------
    X : list of float arrays [length, n_labels]
        The one-hot code of the label, plus noise.
    y : list of int arrays [length]
    """

    X: list[Floats]
    y: list[Ints]


def make_noisy_chains(
    n: int = 1000,
    length: int = 10,
    n_labels: int = 3,
    noise: float = 0.4,
    smoothness: float = 7.0,
    random_state: int = 0,
) -> NoisyChains:
    """Chains whose labels last: y_t is the largest of n_labels smooth random curves at t.

    The observation is x_t = e_{y_t} + noise · N(0, 1), so a single position is often misleading.

    Parameters
    ----------
    smoothness : float
        Width, in positions, of the Gaussian that smooths uniform noise to curves.

    Examples
    --------
    >>> chains = make_noisy_chains(n=5)
    >>> len(chains.X), chains.X[0].shape, chains.y[0].shape
    (5, (10, 3), (10,))
    """
    with needed("scipy", "make_noisy_chains"):
        from scipy.ndimage import gaussian_filter1d

    for name, value in (("n", n), ("length", length), ("n_labels", n_labels)):
        check_number(name, value, minimum=1, integer=True)
    check_number("noise", noise)
    check_number("smoothness", smoothness)
    rng = np.random.default_rng(random_state)
    curves = gaussian_filter1d(rng.random((n, n_labels, length)), smoothness, axis=2)
    y = curves.argmax(axis=1)
    X = np.eye(n_labels)[y] + noise * rng.normal(size=(n, length, n_labels))
    return NoisyChains(list(X), list(y))


def load_noisy_chains(path: str | PathLike[str] | None = None, size: str = "small") -> NoisyChains:
    """One of two fixed draws: "small" has 160 chains of 10 and 3 labels, "big" of 100 and 8.

    Parameters
    ----------
    path : str or Path, optional
        The file cuny_crf_synthetic.npz, or its folder. Otherwise it is looked for in the folder
        $CHORDAL_DATA/synthetic.
    """
    if size not in ("small", "big"):
        raise ValueError(f"size must be 'small' or 'big', got {size!r}")
    file = found(path, "synthetic", NAMES, SOURCE)
    arrays = arrays_of(file, **{f"{size}_X": "f3", f"{size}_y": "iu2"})
    X, y = arrays[f"{size}_X"], arrays[f"{size}_y"]
    require(X.shape[:2] == y.shape, file, f"{size}_y must have a label for each row of {size}_X")
    return NoisyChains(list(X.astype(np.float64)), list(y.astype(np.int64)))
