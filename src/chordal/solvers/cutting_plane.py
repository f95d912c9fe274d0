"""n-slack cutting planes: planes under every example's loss, and one quadratic program for all."""

from __future__ import annotations

from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from chordal._status import Status
from chordal._validate import check_number
from chordal.oracle import Floats, PlaneOracle, Planes
from chordal.solvers._dual import DualRun, DualSolver
from chordal.solvers._qp import quadratic_program


@final
class CuttingPlane(DualSolver):
    """Minimises the sum of every example's highest plane, and adds the planes that are missing.

    Each iteration asks for the best labelling with its cost of every example. Where that shows the
    loss above all planes of an example so far, one is added, and a quadratic program over all
    gives the next weights and the lower bound. Planes that were not used for `patience` programs
    leave the program; they stay in a cache and come back, before the examples are asked again,
    where they lie above those in use. Few iterations, but large programs: for up to some
    thousand examples.

    Parameters
    ----------
    max_iter : int
        Most iterations.
    tol : float
        Converged when the duality gap is at most this share of the primal value.
    l1 : float
        Must be 0.
    patience : int
        Programs after which an inactive plane leaves.

    Notes
    -----
    The program is solved by Clarabel: ``pip install chordal[qp]``.

    References
    ----------
    Tsochantaridis et al. (2005), Large margin methods for structured and interdependent output
    variables; Joachims, Finley and Yu (2009), Cutting-plane training of structural SVMs.

    Examples
    --------
    >>> from chordal import ChainCRF
    >>> X, y = [[["the"], ["cat"], ["sleeps"]], [["a"], ["dog"]]], [["D", "N", "V"], ["D", "N"]]
    >>> crf = ChainCRF("hinge", "cutting_plane", l2=0.1).fit(X, y)
    >>> crf.predict(X), crf.fit_report_.gap <= 1e-3 * crf.objective_
    ([['D', 'N', 'V'], ['D', 'N']], True)
    """

    asks: ClassVar[type] = PlaneOracle
    blocks: ClassVar[bool] = True
    objectives: ClassVar[frozenset[str] | None] = frozenset({"hinge"})

    def __init__(
        self, max_iter: int = 200, tol: float = 1e-3, l1: float = 0.0, patience: int = 5
    ) -> None:
        super().__init__(max_iter, tol, l1)
        check_number("patience", patience, minimum=1, integer=True)
        self.patience = patience

    def _run(self, run: DualRun) -> Status:
        oracle, weights = run.oracle, run.weights
        model = _Model(run, self.patience)
        status, dual = None, 0.0  # no loss is below zero
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
            slack = 0.25 * self.tol * abs(value) / max(oracle.n_examples, 1)
            grown = model.add(planes, weights, slack)
            if not grown and run.n_iter > 1:
                status = Status.STALLED  # the program is as exact as its solver can make it
            weights, dual = model.minimum(slack)
        return status


class _Model:
    """Planes of all examples: in the program, or idle in the cache."""

    def __init__(self, run: DualRun, patience: int) -> None:
        import scipy.sparse as sp

        self._run, self._patience = run, patience
        self._owner = np.zeros(0, dtype=np.int64)
        self._offsets = np.zeros(0)  # in terms of v = w − centre
        self._slopes: Any = sp.csr_array((0, len(run.centre)))
        self._idle = np.zeros(0, dtype=np.int64)

    def add(self, planes: Planes, weights: Floats, slack: float) -> bool:
        """Take the planes that lie above all others of their example; whether there are any."""
        import scipy.sparse as sp

        above = np.flatnonzero(planes.values > self._heights(weights - self._run.centre) + slack)
        slopes = planes.slopes[above]
        self._owner = np.concatenate([self._owner, above])
        self._offsets = np.concatenate(
            [self._offsets, planes.offsets[above] + slopes @ self._run.centre]
        )
        self._slopes = sp.vstack([self._slopes, slopes], format="csr")
        self._idle = np.concatenate([self._idle, np.zeros(len(above), dtype=np.int64)])
        return bool(len(above))

    def minimum(self, slack: float) -> tuple[Floats, float]:
        """Weights at the model's minimum, and a lower bound of it."""
        centre = self._run.centre
        while True:
            used = np.flatnonzero(self._idle < self._patience)
            if len(used) == 0:
                return centre.copy(), 0.0
            v, dual, alpha = self._program(used)
            self._idle[used] = np.where(alpha > 1e-7, 0, self._idle[used] + 1)
            heights = self._offsets + self._slopes @ v
            best = np.zeros(self._run.oracle.n_examples)
            np.maximum.at(best, self._owner[used], heights[used])
            missing = (self._idle >= self._patience) & (heights > best[self._owner] + slack)
            missing[used] = False
            if not missing.any():
                return centre + v, dual
            self._idle[missing] = 0

    def _heights(self, v: Floats) -> Floats:
        """The highest plane of every example at v, or 0."""
        best = np.zeros(self._run.oracle.n_examples)
        np.maximum.at(best, self._owner, self._offsets + self._slopes @ v)
        return best

    def _program(self, used: NDArray[np.int64]) -> tuple[Floats, float, Floats]:
        """min (l2/2) ‖v‖² + Σ ξ over ξ_i ≥ 0 and ξ_i ≥ every plane of example i in use."""
        import scipy.sparse as sp

        l2, slopes, offsets = self._run.oracle.l2, self._slopes[used], self._offsets[used]
        columns = np.unique(slopes.indices)  # the other weights stay at the centre
        owners, owner = np.unique(self._owner[used], return_inverse=True)
        d, n, m = len(columns), len(owners), len(used)
        picks = sp.csr_array((np.ones(m), (np.arange(m), owner)), (m, n))
        A = sp.block_array(
            [[slopes[:, columns], -picks], [sp.csr_array((n, d)), -sp.eye_array(n)]], format="csc"
        )
        P = sp.diags_array(np.concatenate([np.full(d, l2), np.zeros(n)]), format="csc")
        q = np.concatenate([np.zeros(d), np.ones(n)])
        _, z = quadratic_program(P, q, A, np.concatenate([-offsets, np.zeros(n)]), 0)
        # Multipliers that bound from below, whatever the program's accuracy: α ≥ 0, Σ α_i ≤ 1.
        alpha = np.where(np.isfinite(z[:m]), np.maximum(z[:m], 0.0), 0.0)
        alpha /= np.maximum(1.0, np.bincount(owner, alpha, n))[owner]
        v = -(slopes.T @ alpha) / l2
        return v, float(alpha @ offsets) - 0.5 * l2 * float(v @ v), alpha
