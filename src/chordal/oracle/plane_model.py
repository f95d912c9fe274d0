"""Planes under one convex loss: the model that they make, and the best mixture of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chordal._saved import Saved, State
from chordal.potentials import Floats

ROUNDING = 1e-12  # of the largest product: added so that planes may depend on each other
LEVEL, NEARLY = 0.3, 0.2  # of the gap: how high above the model's minimum to go, more or less
IN_USE = 1e-8  # the least dual variable of a plane that matters
MAX_TRIALS = 8  # of κ


class PlaneModel:
    """Planes under a loss that is never below zero, in terms of v; the first is 0.

    Parameters
    ----------
    l2 : float
        The model is the highest plane plus (l2/2) ‖v‖².
    n_weights : int
    n_origins : int
        Numbers that each plane carries, which are mixed as the planes are: what it is made of.

    Attributes
    ----------
    offsets : float64 [n_planes]
    gram : float64 [n_planes, n_planes]
        Products of the slopes.
    alpha : float64 [n_planes]
        The dual variables of the last program; 0 for planes that came since.
    v : float64 [n_weights]
        The minimum, by those dual variables.
    pull : float
        κ of the last call of `near`.
    """

    def __init__(self, l2: float, n_weights: int, n_origins: int = 0) -> None:
        self.l2, self.v = l2, np.zeros(n_weights)
        self.offsets, self.gram, self.alpha = np.zeros(1), np.zeros((1, 1)), np.ones(1)
        self._slopes, self._origins = np.zeros((1, n_weights)), np.zeros((1, n_origins))
        self._idle, self.pull = np.zeros(1, dtype=np.int64), l2

    def to_state(self) -> State:
        """The planes and their dual variables."""
        planes = {"offsets": self.offsets, "gram": self.gram, "slopes": self._slopes}
        origins = {"origins": self._origins, "idle": self._idle}
        return {**planes, **origins, "alpha": self.alpha, "v": self.v, "pull": self.pull}

    def from_state(self, saved: Saved) -> None:
        """Take over planes in as many dimensions."""
        self.offsets = saved.array("offsets", np.float64, (None,))
        n = len(self.offsets)
        self.gram = saved.array("gram", np.float64, (n, n))
        self._slopes = saved.array("slopes", np.float64, (n, self._slopes.shape[1]))
        self._origins = saved.array("origins", np.float64, (n, self._origins.shape[1]))
        self._idle = saved.array("idle", np.int64, (n,))
        self.alpha = saved.array("alpha", np.float64, (n,))
        self.v = saved.array("v", np.float64, self.v.shape)
        self.pull = saved.number("pull")

    def value(self, v: Floats) -> float:
        """The model at v, with the regularisation, up to rounding from below."""
        height = self._height(v)
        return height - 1e-9 * abs(height)

    def _height(self, v: Floats) -> float:
        return float((self.offsets + self._slopes @ v).max()) + 0.5 * self.l2 * float(v @ v)

    def add(self, offset: float, slope: Floats, origin: Floats | tuple[()] = ()) -> None:
        """Take one more plane."""
        products = self._slopes @ slope
        self.gram = np.block([[self.gram, products[:, None]], [products, slope @ slope]])
        self.offsets = np.append(self.offsets, offset)
        self._slopes = np.vstack([self._slopes, slope])
        self._origins = np.vstack([self._origins, origin])
        self._idle, self.alpha = np.append(self._idle, 0), np.append(self.alpha, 0.0)

    def merge(self) -> None:
        """Make one of the two planes that matter least: their mixture by their dual variables."""
        one, other = np.argsort(self.alpha, kind="stable")[:2]
        total = self.alpha[one] + self.alpha[other]
        share = self.alpha[one] / total if total > 0.0 else 0.0
        mix = np.eye(len(self.alpha))
        mix[other, one], mix[other, other] = share, 1.0 - share
        mix = np.delete(mix, one, axis=0)
        self.gram, self.offsets = mix @ self.gram @ mix.T, mix @ self.offsets
        self.alpha[other] = total
        for rows in (self._slopes, self._origins):
            rows[other] += share * (rows[one] - rows[other])
        self._keep(np.arange(len(self.alpha)) != one)

    def take(self, alpha: Floats, max_idle: int) -> float:
        """Go to the weights of these dual variables; their lower bound. Idle planes are removed."""
        self.alpha, self.v = alpha, -(alpha @ self._slopes) / self.l2
        dual = float(alpha @ self.offsets) - 0.5 * self.l2 * float(self.v @ self.v)
        self._idle = np.where(alpha > IN_USE, 0, self._idle + 1)
        kept = self._idle < max_idle
        self.offsets, self.gram = self.offsets[kept], self.gram[np.ix_(kept, kept)]
        self._keep(kept)
        return dual

    def near(self, at: Floats, gap: float) -> Floats:
        """Where the model is about a third of the gap above its minimum, not far from `at`.

        The minimum itself is often far away, where the planes say little; near good weights the
        next plane says more. The point is the minimum of the model plus (κ/2) ‖v − at‖², where κ is
        such that the minimum has this height. See Lemaréchal, Nemirovskii and Nesterov (1995), New
        variants of bundle methods.
        """
        heights, square = self._slopes @ at, float(at @ at)
        lowest, low, high = self._height(self.v), 0.0, np.inf
        found, alpha = self.v, self.alpha
        for _ in range(MAX_TRIALS):
            l2 = self.l2 + self.pull
            share = self.pull / l2
            alpha = best_mixture(self.gram / l2, self.offsets + share * heights, alpha)
            moved = self.gram @ alpha / l2
            top = float((self.offsets + share * heights - moved).max())
            away = share * share * square - 2.0 * share / l2 * float(alpha @ heights)
            level = top + 0.5 * self.l2 * (away + float(alpha @ moved) / l2) - lowest
            if level <= (LEVEL + NEARLY) * gap:
                found = share * at - (alpha @ self._slopes) / l2
                self._idle[alpha > IN_USE] = 0
            if abs(level - LEVEL * gap) <= NEARLY * gap:
                break
            low, high = (low, self.pull) if level > LEVEL * gap else (self.pull, high)
            self.pull = min(max(_between(self.pull, low, high), 1e-6 * self.l2), 1e12 * self.l2)
        return found

    def origin(self) -> Floats:
        """What the mixture is made of."""
        return np.asarray(self.alpha @ self._origins)

    def _keep(self, kept: NDArray[np.bool_]) -> None:
        self._slopes, self._origins = self._slopes[kept], self._origins[kept]
        self.alpha, self._idle = self.alpha[kept], self._idle[kept]


def best_mixture(gram: Floats, offsets: Floats, alpha: Floats) -> Floats:
    """argmax ⟨offsets, α⟩ − ½ αᵀ gram α over α ≥ 0, Σ α = 1, from a mixture that is near it.

    By active sets: among the planes in use the best mixture is a linear system; one that would
    have less than nothing leaves, and the highest plane outside comes in.

    >>> best_mixture(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.5, 0.0]), np.array([0.0, 1.0]))
    array([0.75, 0.25])
    """
    n, alpha = len(offsets), np.maximum(alpha, 0.0)
    alpha = alpha / alpha.sum()
    ridge = ROUNDING * max(float(np.diag(gram).max()), 1e-300)
    for _ in range(20 * n):
        alpha = _descended(gram, offsets, alpha, ridge)
        heights = offsets - gram @ alpha
        up = int(np.argmax(heights))
        lead = float(heights[up] - alpha @ heights)
        if alpha[up] > 0.0 or lead <= 1e-12 * float(np.abs(heights).max()):
            break
        # A first step towards it by itself, so that it is in use.
        towards = -alpha
        towards[up] += 1.0
        curvature = float(towards @ gram @ towards)
        step = 1.0 if lead >= curvature else lead / curvature
        alpha = alpha + step * towards
    return alpha


def _descended(gram: Floats, offsets: Floats, alpha: Floats, ridge: float) -> Floats:
    """The best mixture of the planes in use, of which some may leave."""
    while True:
        used = np.flatnonzero(alpha > 0.0)
        system = np.ones((len(used) + 1, len(used) + 1))
        system[:-1, :-1] = gram[np.ix_(used, used)] + ridge * np.eye(len(used))
        system[-1, -1] = 0.0
        best = np.linalg.solve(system, np.append(offsets[used], 1.0))[:-1]
        if not np.isfinite(best).all():
            return alpha
        own, alpha = alpha[used], alpha.copy()
        below = best < 0.0
        if not below.any():
            alpha[used] = best / best.sum()
            return alpha
        share = own[below] / (own[below] - best[below])
        step, first = float(share.min()), np.flatnonzero(below)[int(np.argmin(share))]
        alpha[used] = np.maximum(own + step * (best - own), 0.0)
        alpha[used[first]] = 0.0


def _between(value: float, low: float, high: float) -> float:
    """A value between limits, in the middle by its logarithm; beyond, where one is not known."""
    if low > 0.0 and high < np.inf:
        return float(np.sqrt(low * high))
    return 4.0 * value if high == np.inf else 0.25 * value
