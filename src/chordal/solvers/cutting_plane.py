"""n-slack cutting planes: planes under every example's loss, and one quadratic program for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._optional import installed, needed
from chordal._status import Status
from chordal.oracle import Floats
from chordal.oracle.examples import PlaneOracle, Planes
from chordal.solvers._base import number
from chordal.solvers._dual import MARGINS, DualRun, DualSolver

if TYPE_CHECKING:
    from scipy.sparse import csr_array

EXACTNESS = 0.2  # the gap of a program as a share of the gap so far
SHARE = 0.3  # of the way from the best weights to the model's minimum
# Of the program:
INNER = 4  # passes over the examples at a time
MAX_INNER = 25  # times INNER passes until z moves
NEARNESS = 1.0  # the gap with (κ/2) ‖v − z‖² at which z moves, as a share of the program's own
HASTE = 0.02  # κ as a share of the mean square of the slopes
MAX_ROUNDS = 2000  # moves of z
PATIENCE = 60  # moves of z before interior points are tried, where weights are few
FEW = 2000
WHOLE = 1e-11  # a smaller gap, relatively, is rounding

Ints = NDArray[np.int64]


@final
@dataclass(eq=False)
class CuttingPlane(DualSolver):
    """Minimises the sum of every example's highest plane, and adds the planes that are missing.

    Each iteration asks for the best labelling with its cost of every example. Where that shows the
    loss above all planes of an example so far, one is added, and a quadratic program over all
    gives the next weights and the lower bound. Planes that were not used for `max_idle` programs
    leave the program; they stay in a cache and come back, before the examples are asked again,
    where they lie above those in use. The program is solved from its last solution on, and only as
    exactly as the gap asks for.

    Parameters
    ----------
    max_idle : int
        Programs after which an inactive plane leaves.

    Notes
    -----
    The program has a variable for each plane, in groups by example. It is solved by ascent on one
    group after another, which keeps the planes sparse; general solvers take a dense matrix of all
    pairs of planes. Where that takes long and weights are few, Clarabel solves it, if
    it is installed.

    References
    ----------
    Tsochantaridis et al. (2005), Large margin methods for structured and interdependent output
    variables; Joachims, Finley and Yu (2009), Cutting-plane training of structural SVMs.
    """

    max_iter: int = number(200, minimum=1)
    max_idle: int = number(5, minimum=1)

    asks: ClassVar[type] = PlaneOracle
    objectives: ClassVar[tuple[str, ...]] = MARGINS
    packages: ClassVar[tuple[str, ...]] = ("scipy",)

    def _run(self, run: DualRun) -> Status:
        oracle, weights = run.oracle, run.weights
        model = _Model(run, self.max_idle)
        status, dual, before = None, 0.0, np.inf  # no loss is below zero
        while status is None:
            planes = oracle.planes(weights)
            if not np.isfinite(planes.slopes.data @ planes.slopes.data):
                raise OverflowError
            run.n_evaluations += oracle.n_examples
            v = weights - run.centre
            value = float(planes.values.sum()) + 0.5 * oracle.l2 * float(v @ v)
            run.improve(weights, value, dual)
            status = run.finish()
            if status is not None:
                break
            slack = 0.25 * self.tol * abs(run.value) / max(oracle.n_examples, 1)
            cut = model.add(planes, weights, slack)
            lowest, dual = model.minimum(EXACTNESS * run.gap)
            run.lower = max(run.lower, dual)
            if not cut and run.gap >= before:
                status = Status.STALLED  # the program is as exact as it can be made
            before = run.gap
            # Between the best weights and the model's minimum, where planes say more; at the
            # minimum itself where those from in between did not cut it off.
            weights = run.weights + (SHARE if cut else 1.0) * (lowest - run.weights)
        return status


class _Model:
    """Planes of all examples: in the program, or idle in the cache."""

    def __init__(self, run: DualRun, max_idle: int) -> None:
        with needed("scipy", "solver 'cutting_plane'"):
            import scipy.sparse as sp

        self._run, self._max_idle = run, max_idle
        self._random = np.random.default_rng(0)
        self._v = np.zeros(len(run.centre))  # the last minimum, of weights less the centre
        self._owner = np.zeros(0, dtype=np.int64)
        self._offsets = np.zeros(0)  # in terms of v
        self._slopes: csr_array = sp.csr_array((0, len(run.centre)))
        self._alpha, self._idle = np.zeros(0), np.zeros(0, dtype=np.int64)

    def add(self, planes: Planes, weights: Floats, slack: float) -> bool:
        """Take the planes that lie above all others of their example at the weights, from the
        cache or new; whether there are any above the model at its minimum.
        """
        with needed("scipy", "solver 'cutting_plane'"):
            import scipy.sparse as sp

        v = weights - self._run.centre
        heights, used = self._offsets + self._slopes @ v, self._idle < self._max_idle
        best = self._highest(heights, used)
        back = ~used & (heights > best[self._owner] + slack)
        self._idle[back] = 0
        above = np.flatnonzero(planes.values > self._highest(heights, used | back) + slack)
        slopes = planes.slopes[above]
        offsets = planes.offsets[above] + slopes @ self._run.centre
        lowest = self._highest(self._offsets + self._slopes @ self._v, used)
        cut = bool((offsets + slopes @ self._v > lowest[above] + slack).any() or back.any())
        new = np.zeros(len(above))
        owner = np.concatenate([self._owner, above])
        order = np.argsort(owner, kind="stable")
        self._owner = owner[order]
        self._offsets = np.concatenate([self._offsets, offsets])[order]
        self._slopes = sp.vstack([self._slopes, slopes], format="csr")[order]
        self._alpha = np.concatenate([self._alpha, new])[order]
        self._idle = np.concatenate([self._idle, new.astype(np.int64)])[order]
        return cut

    def minimum(self, target: float) -> tuple[Floats, float]:
        """Weights at the model's minimum, nearly, and a lower bound of it."""
        used = np.flatnonzero(self._idle < self._max_idle)
        if len(used) == 0:
            return self._run.centre.copy(), 0.0
        program = PlaneProgram(
            self._run.oracle.l2, self._slopes[used], self._offsets[used], self._owner[used]
        )
        self._v, dual, alpha = program.solve(self._alpha[used], self._v, target, self._random)
        self._alpha[used] = alpha
        self._idle[used] = np.where(alpha > 0.0, 0, self._idle[used] + 1)
        return self._run.centre + self._v, dual

    def _highest(self, heights: Floats, used: NDArray[np.bool_]) -> Floats:
        """The highest of these planes for every example, or 0."""
        best = np.zeros(self._run.oracle.n_examples)
        np.maximum.at(best, self._owner[used], heights[used])
        return best


class PlaneProgram:
    """min (l2/2) ‖v‖² + Σ_i max(0, max_k b_k + ⟨a_k, v⟩) over the planes k of every example i.

    Where l2 is small beside the squares of the slopes, steps are taken on the program plus
    (κ/2) ‖v − z‖², and z moves on after a few passes (Lin, Mairal and Harchaoui (2015), A universal
    catalyst for first-order optimization); the dual variables serve the program as it is.

    Parameters
    ----------
    l2 : float
    slopes : CSR array [n_planes, n_weights]
    offsets : float64 [n_planes]
    owner : int64 [n_planes]
        The example of each plane, in rising order.
    """

    def __init__(self, l2: float, slopes: csr_array, offsets: Floats, owner: Ints) -> None:
        self._l2, self._slopes, self._offsets = l2, slopes, offsets
        self._turned = slopes.T  # made once: it is asked for at every step
        _, first = np.unique(owner, return_index=True)
        self._first, self._examples = first, np.append(first, len(owner))
        self._planes = _kernels.Planes(
            example_offsets=self._examples,
            row_offsets=slopes.indptr.astype(np.int64),
            cells=slopes.indices.astype(np.int32),
            values=slopes.data,
            offsets=offsets,
            n_weights=slopes.shape[1],
        )
        curvature = float(slopes.data @ slopes.data) / len(offsets)
        self._kappa = HASTE * curvature if HASTE * curvature > l2 else 0.0

    def solve(
        self, alpha: Floats, v: Floats, target: float, random: np.random.Generator
    ) -> tuple[Floats, float, Floats]:
        """v at the minimum, a lower bound of it, and the dual variables, from those given on.

        The bound is below the program's value at v by `target` at most, if rounding lets it.
        """
        l2, kappa = self._l2, self._kappa
        root = np.sqrt(l2 / (l2 + kappa))
        alpha, before, z = alpha.copy(), v, v
        best, (lowest, highest) = v, self._bounds(alpha, v, 0.0, v)
        for n_rounds in range(MAX_ROUNDS):
            v = self._near(z, alpha, max(NEARNESS * (lowest - highest), 0.0), random)
            z = v + (1.0 - root) / (1.0 + root) * (v - before)
            before = v
            value, dual = self._bounds(alpha, v, 0.0, v)
            highest = max(highest, dual)
            if value < lowest:
                best, lowest = v, value
            if lowest - highest <= max(target, WHOLE * abs(lowest)):
                break
            if n_rounds == PATIENCE and len(v) <= FEW and installed("clarabel"):
                v, alpha = self._by_interior_points()
                value, dual = self._bounds(alpha, v, 0.0, v)
                if value < lowest:
                    best, lowest = v, value
                highest = max(highest, dual)
                if lowest - highest <= max(target, WHOLE * abs(lowest)):
                    break
        return best, highest, alpha

    def _by_interior_points(self) -> tuple[Floats, Floats]:
        """v and dual variables by Clarabel: min (l2/2) ‖v‖² + Σ ξ, ξ_i ≥ 0 and ≥ b_k + ⟨a_k, v⟩."""
        what = "solver 'cutting_plane'"
        with needed("clarabel", what), needed("scipy", what):
            import clarabel
            import scipy.sparse as sp

        n_planes, n = self._slopes.shape
        counts = np.diff(self._examples)
        m = len(counts)
        owner = np.repeat(np.arange(m), counts)
        scale = float(np.sqrt(self._slopes.data @ self._slopes.data / n_planes)) or 1.0
        own = sp.csr_array((-np.ones(n_planes), (np.arange(n_planes), owner)), (n_planes, m))
        lead = sp.hstack([self._slopes / scale, own])
        rest = sp.hstack([sp.csr_array((m, n)), -sp.identity(m)])
        P = sp.diags(np.r_[np.full(n, self._l2 / scale**2), np.zeros(m)])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        program = clarabel.DefaultSolver(
            sp.csc_matrix(P),
            np.r_[np.zeros(n), np.ones(m)],
            sp.csc_matrix(sp.vstack([lead, rest])),
            np.r_[-self._offsets, np.zeros(m)],
            [clarabel.NonnegativeConeT(n_planes + m)],
            settings,
        )
        alpha = np.maximum(np.nan_to_num(np.asarray(program.solve().z)[:n_planes]), 0.0)
        total = np.add.reduceat(alpha, self._first)
        alpha /= np.maximum(total, 1.0)[owner]
        return -(self._turned @ alpha) / self._l2, alpha

    def _near(self, z: Floats, alpha: Floats, target: float, random: np.random.Generator) -> Floats:
        """The minimum with (κ/2) ‖v − z‖² added, up to a gap of `target`; changes α."""
        l2, n = self._l2 + self._kappa, len(self._examples) - 1
        v = (self._kappa * z - self._turned @ alpha) / l2
        for _ in range(MAX_INNER):
            order = np.concatenate([random.permutation(n) for _ in range(INNER)])
            self._planes.ascend(l2, order, alpha=alpha, v=v)
            value, dual = self._bounds(alpha, v, self._kappa, z)
            if value - dual <= target:
                break
        return v

    def _bounds(self, alpha: Floats, v: Floats, kappa: float, z: Floats) -> tuple[float, float]:
        """The program's value at v with (κ/2) ‖v − z‖² added, and the dual value of α."""
        heights = np.maximum.reduceat(self._offsets + self._slopes @ v, self._first)
        away, l2 = v - z, self._l2 + kappa
        value = float(np.maximum(heights, 0.0).sum()) + 0.5 * self._l2 * float(v @ v)
        value += 0.5 * kappa * float(away @ away)
        pull = kappa * z - self._turned @ alpha
        dual = float(alpha @ self._offsets) + 0.5 * kappa * float(z @ z)
        return value, dual - 0.5 / l2 * float(pull @ pull)
