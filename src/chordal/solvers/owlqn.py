"""OWL-QN: L-BFGS for objectives with an L1 penalty, which sets most weights to zero."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from chordal._saved import Saved, SavedError, State
from chordal._status import Status
from chordal.oracle import Floats
from chordal.solvers._base import Run, Solver, number
from chordal.solvers.lbfgs import LBFGS, curvature_of, two_loop


@final
@dataclass(eq=False)
class OWLQN(Solver):
    """Orthant-wise limited-memory quasi-Newton.

    Each step stays in the orthant chosen by the pseudo-gradient: there ‖w‖₁ is linear, and the
    quasi-Newton model of the smooth part applies. Three things differ from the original. Curvature
    is stored only for free weights (not at zero, or about to leave it), so a long memory is cheap.
    After the first `settling` iterations only weights at zero must move against their
    pseudo-gradient; the others follow the quasi-Newton direction and stop at zero instead of
    crossing it. At the end, weights that do not matter for the objective are set to zero.

    Parameters
    ----------
    l1 : float, default=0.0
        Strength of the penalty l1·‖w‖₁. It does not apply to weights that the oracle lists in
        `without_l1`.
    memory : int, default=200
        Number of stored pairs (step, change of gradient).
    settling : int, default=40
        Number of first iterations in which every weight moves against its pseudo-gradient.

    References
    ----------
    Andrew and Gao (2007), Scalable training of L1-regularized log-linear models.
    """

    l1: float = number(0.0)
    memory: int = number(200, minimum=1)
    settling: int = number(40)

    needs_smooth: ClassVar[bool] = True
    handles_l1: ClassVar[bool] = True

    def _run(self, run: Run) -> Status:
        if self.l1 == 0.0:  # no orthants to keep to
            return LBFGS(self.max_iter, self.tol)._run(run)
        history = run.keep("pairs", SubspaceHistory(self.memory, len(run.weights)))
        pseudo = _pseudo_gradient(run.weights, run.gradient, run.l1)
        run.gradient_norm = float(np.linalg.norm(pseudo))
        status = Status.CONVERGED if not run.resumed and run.converged() else None
        while status is None:
            run.between()
            free = np.flatnonzero((run.weights != 0.0) | (pseudo != 0.0))
            history.restrict(free)
            direction = history.direction(pseudo[free])
            uphill = direction * pseudo[free] >= 0.0
            if isinstance(run.l1, np.ndarray):
                uphill &= run.l1[free] > 0.0
            if run.n_iter >= self.settling:
                uphill &= run.weights[free] == 0.0
            direction[uphill] = 0.0
            point = self._search(run, pseudo, direction, free, first=len(history) == 0)
            if point is None:
                if len(history) == 0:
                    status = Status.STALLED
                history.clear()
                continue
            run.changing()
            weights, value, gradient = point
            history.add((weights - run.weights)[free], (gradient - run.gradient)[free])
            pseudo = _pseudo_gradient(weights, gradient, run.l1)
            status = run.accept(weights, value, gradient, float(np.linalg.norm(pseudo)))
        if status is Status.CONVERGED:
            self._tidy(run)
        return status

    def _search(
        self, run: Run, pseudo: Floats, direction: Floats, free: NDArray[np.int64], first: bool
    ) -> tuple[Floats, float, Floats] | None:
        """Backtrack along the direction, projected onto the orthant, until the value falls."""
        old, slope = run.weights[free], pseudo[free]
        orthant = np.where(old != 0.0, np.sign(old), -np.sign(slope))
        if isinstance(run.l1, np.ndarray):
            orthant[run.l1[free] == 0.0] = np.nan  # not held to any
        step = 1.0 / max(1.0, run.gradient_norm) if first else 1.0
        for _ in range(40):
            new = old + step * direction
            new[new * orthant <= 0.0] = 0.0
            expected = float(np.dot(slope, new - old))
            if expected >= 0.0:
                return None
            weights = run.weights.copy()
            weights[free] = new
            value, gradient = run.evaluate(weights)
            if value <= run.value + 1e-4 * expected:
                return weights, value, gradient
            step *= 0.5
        return None

    def _tidy(self, run: Run) -> None:
        """Set weights to zero that change the objective by less than a tenth of the tolerance."""
        largest = float(np.abs(run.weights).max(initial=0.0))
        for share in (1e-2, 1e-3, 1e-4):
            small = (np.abs(run.weights) < share * largest) & (run.l1 > 0.0)
            weights = np.where(small, 0.0, run.weights)
            if np.array_equal(weights, run.weights):
                return
            value, gradient = run.evaluate(weights)
            if value <= run.value + 0.1 * self.tol * abs(run.value):
                run.weights, run.value, run.gradient = weights, value, gradient
                return


def _pseudo_gradient(weights: Floats, gradient: Floats, l1: float | Floats) -> Floats:
    """The subgradient of least norm."""
    right, left = gradient + l1, gradient - l1
    at_zero = np.where(right < 0.0, right, np.where(left > 0.0, left, 0.0))
    return np.where(weights > 0.0, right, np.where(weights < 0.0, left, at_zero))


class SubspaceHistory:
    """Curvature pairs on the free coordinates, which change from step to step.

    With an L1 penalty few weights are free, and a long memory costs little.
    """

    def __init__(self, memory: int, n_weights: int = 0) -> None:
        self._n_weights = n_weights
        self._steps: deque[tuple[Floats, Floats]] = deque(maxlen=memory)
        self._free: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._steps)

    def to_state(self) -> State:
        """The coordinates, and the pairs on them, a row each."""
        s, y = (np.array([pair[k] for pair in self._steps]) for k in (0, 1))
        shape = (len(self._steps), len(self._free))
        return {"free": self._free, "s": s.reshape(shape), "y": y.reshape(shape)}

    def from_state(self, saved: Saved) -> None:
        """Restore pairs on some of the weights."""
        free = saved.array("free", np.int64, (None,))
        if len(free) and (free[0] < 0 or free[-1] >= self._n_weights or (np.diff(free) <= 0).any()):
            raise SavedError(f"the free weights must rise from 0 to {self._n_weights - 1}")
        s, y = (saved.array(name, np.float64, (None, len(free))) for name in ("s", "y"))
        if len(s) != len(y) or len(s) > (self._steps.maxlen or 0):
            raise SavedError(f"there must be at most {self._steps.maxlen} pairs")
        self._free = free
        self._steps.extend(zip(s, y, strict=True))

    def clear(self) -> None:
        """Forget all pairs."""
        self._steps.clear()

    def restrict(self, free: NDArray[np.int64]) -> None:
        """Keep the pairs on these coordinates (ascending); new ones start at zero."""
        if np.array_equal(free, self._free):
            return
        at = np.minimum(np.searchsorted(self._free, free), max(len(self._free) - 1, 0))
        known = self._free[at] == free if len(self._free) else np.zeros(len(free), dtype=bool)

        def moved(values: Floats) -> Floats:
            return np.where(known, values[at], 0.0)

        self._steps = deque(
            ((moved(s), moved(y)) for s, y in self._steps), maxlen=self._steps.maxlen
        )
        self._free = free

    def add(self, s: Floats, y: Floats) -> None:
        """Remember a pair on the current coordinates."""
        if curvature_of(s, y) > 0.0:
            self._steps.append((s, y))

    def direction(self, gradient: Floats) -> Floats:
        """−H · gradient, all on the current coordinates."""
        pairs = [(s, y, curvature_of(s, y)) for s, y in self._steps]
        return two_loop([pair for pair in pairs if pair[2] > 0.0], gradient)
