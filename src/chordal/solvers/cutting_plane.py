"""n-slack cutting planes: planes under every example's loss, and one quadratic program for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from chordal._optional import needed
from chordal._saved import Saved, SavedError, State
from chordal._status import Status
from chordal.oracle import Floats
from chordal.oracle.examples import PlaneOracle, Planes
from chordal.oracle.plane_program import PlaneProgram
from chordal.solvers._base import number
from chordal.solvers._dual import MARGINS, DualRun, DualSolver
from chordal.solvers._keeping import LoopState

if TYPE_CHECKING:
    from scipy.sparse import csr_array

EXACTNESS = 0.2  # the gap of a program as a share of the gap so far
SHARE = 0.3  # of the way from the best weights to the model's minimum

Ints = NDArray[np.int64]


@dataclass
class _Next(LoopState):
    weights: Floats  # where the next planes are taken
    dual: float = 0.0  # no loss is below zero
    before: float = np.inf  # the gap


@final
@dataclass(eq=False)
class CuttingPlane(DualSolver):
    """Minimises the sum over examples of the highest plane, and adds violated planes.

    Each iteration finds the best labelling of score plus cost for every example. If the loss of an
    example lies above all its planes, a plane is added. A quadratic program over all planes gives
    the next weights and the lower bound. Planes that were inactive for `max_idle` programs move to
    a cache. They return, before examples are evaluated again, if they lie above the active ones.
    The program starts from its last solution and is solved only as precisely as the gap requires.

    Parameters
    ----------
    max_idle : int, default=5
        Move a plane to the cache after this many programs in which it was inactive.

    Notes
    -----
    The program has a variable per plane, grouped by example. It is solved by coordinate ascent over
    the groups, which keeps the planes sparse; general solvers need a dense matrix of all pairs. If
    that takes long, planes under the sum of all examples finish the work.

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
        oracle, now = run.oracle, run.keep("next", _Next(run.weights))
        model, status = run.keep("model", _Model(run, self.max_idle)), None
        while status is None:
            run.between()
            weights = now.weights
            planes = oracle.planes(weights)
            run.changing()
            if not np.isfinite(planes.slopes.data @ planes.slopes.data):
                raise OverflowError
            run.n_evaluations += oracle.n_examples
            v = weights - run.centre
            value = float(planes.values.sum()) + 0.5 * oracle.l2 * float(v @ v)
            run.improve(weights, value, now.dual)
            status = run.finish()
            if status is not None:
                break
            slack = 0.25 * self.tol * abs(run.value) / max(oracle.n_examples, 1)
            cut = model.add(planes, weights, slack)
            lowest, now.dual = model.minimum(EXACTNESS * run.gap)
            run.lower = max(run.lower, now.dual)
            if not cut and run.gap >= now.before:
                status = Status.STALLED  # the program is as exact as it can be made
            now.before = run.gap
            # Between the best weights and the model's minimum, where planes say more; at the
            # minimum itself where those from in between did not cut it off.
            now.weights = run.weights + (SHARE if cut else 1.0) * (lowest - run.weights)
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

    def to_state(self) -> State:
        """The planes as sparse rows, and their dual variables."""
        slopes = self._slopes
        return {
            "random": dict(self._random.bit_generator.state),
            "v": self._v,
            "owner": self._owner,
            "offsets": self._offsets,
            "alpha": self._alpha,
            "idle": self._idle,
            "rows": slopes.indptr.astype(np.int64),
            "columns": slopes.indices.astype(np.int64),
            "slopes": slopes.data,
        }

    def from_state(self, saved: Saved) -> None:
        """Restore planes of the same examples and weights."""
        with needed("scipy", "solver 'cutting_plane'"):
            import scipy.sparse as sp

        n_examples, n_weights = self._run.oracle.n_examples, len(self._v)
        self._owner = saved.array("owner", np.int64, (None,))
        n = len(self._owner)
        self._offsets, self._alpha = (
            saved.array(name, np.float64, (n,)) for name in ("offsets", "alpha")
        )
        self._idle = saved.array("idle", np.int64, (n,))
        self._v = saved.array("v", np.float64, (n_weights,))
        data = saved.array("slopes", np.float64, (None,))
        columns = saved.array("columns", np.int64, (len(data),))
        rows = saved.array("rows", np.int64, (n + 1,))
        sound = rows[0] == 0 and rows[-1] == len(data) and (np.diff(rows) >= 0).all()
        for numbers, most in ((self._owner, n_examples), (columns, n_weights)):
            sound = sound and (not len(numbers) or 0 <= numbers.min() <= numbers.max() < most)
        if not sound or (np.diff(self._owner) < 0).any():
            raise SavedError("the planes do not fit the examples or the weights")
        saved.generator("random", self._random)
        self._slopes = sp.csr_array((data, columns, rows), shape=(n, n_weights))

    def add(self, planes: Planes, weights: Floats, slack: float) -> bool:
        """Add the planes, from the cache or new, that lie above all others of their example.
        Returns whether any lies above the model at its minimum.
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
        """Weights near the model's minimum, and a lower bound of it."""
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
