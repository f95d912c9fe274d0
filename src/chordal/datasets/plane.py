"""Points of the plane in two or three classes: what a classifier's picture shows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RADIUS = 2.5  # points lie in the square [−RADIUS, RADIUS]²


def make_curved_classes(
    n_samples: int = 200,
    n_classes: int = 2,
    *,
    sharpness: float = 4.0,
    random_state: int | np.random.RandomState | None = 0,
) -> tuple[Floats, Ints]:
    """Two classes on the sides of a wave, or three: a disc and the regions beside it.

    Points are uniform in a square. A label is drawn from p(y | x) ∝ exp(sharpness · f(x, y)), so
    that classes overlap near their borders. For two classes f is a cubic polynomial, for three a
    quadratic one; linear functions cannot tell the classes apart.

    Parameters
    ----------
    n_samples : int
    n_classes : {2, 3}
    sharpness : float
        0 draws labels by chance; large values leave no overlap.
    random_state : int, RandomState or None

    Returns
    -------
    X : array [n_samples, 2]
    y : int array [n_samples]

    Examples
    --------
    >>> X, y = make_curved_classes(6, n_classes=3)
    >>> X.shape, sorted(set(y.tolist()))
    ((6, 2), [0, 1, 2])
    """
    check_number("n_samples", n_samples, minimum=1, integer=True)
    check_number("sharpness", sharpness)
    if n_classes not in (2, 3):
        raise ValueError(f"n_classes must be 2 or 3, got {n_classes!r}")
    random = _generator(random_state)
    X = random.uniform(-RADIUS, RADIUS, size=(n_samples, 2))
    a, b = X.T
    if n_classes == 2:
        scores = np.stack([np.zeros(n_samples), b + 1.4 * a - 0.35 * a**3], axis=1)
    else:
        scores = np.stack([1.5 - a**2 - 0.7 * b**2, a, -a], axis=1)
    # The largest of scores with Gumbel noise is a sample from their softmax.
    return X, (sharpness * scores + random.gumbel(size=scores.shape)).argmax(axis=1)


def make_masked_classes(
    n_samples: int = 200,
    *,
    spread: float = 0.35,
    random_state: int | np.random.RandomState | None = 0,
) -> tuple[Floats, Ints]:
    """Three round classes in a row: linear borders separate them, squared error does not see it.

    Regression on class indicators gives the middle class a nearly constant function. One of the
    others exceeds it everywhere, so that the middle class is never predicted: it is masked. See
    Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, 4.2.

    Parameters
    ----------
    n_samples : int
    spread : float
        Standard deviation of each class; their centres are √2·1.5 apart.
    random_state : int, RandomState or None

    Returns
    -------
    X : array [n_samples, 2]
    y : int array [n_samples]

    Examples
    --------
    >>> X, y = make_masked_classes(300)
    >>> X.shape, np.bincount(y)
    ((300, 2), array([100, 100, 100]))
    """
    check_number("n_samples", n_samples, minimum=1, integer=True)
    check_number("spread", spread)
    random = _generator(random_state)
    y = random.permutation(np.arange(n_samples) % 3)
    centres = 1.5 * (y - 1.0)[:, None]
    return centres + spread * random.normal(size=(n_samples, 2)), y


def _generator(random_state: int | np.random.RandomState | None) -> np.random.RandomState:
    if isinstance(random_state, np.random.RandomState):
        return random_state
    return np.random.RandomState(random_state)
