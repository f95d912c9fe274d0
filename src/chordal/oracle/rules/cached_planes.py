"""Block-coordinate Frank–Wolfe for any structure, with the planes of every example kept.

An example's loss is at least b + ⟨a, v⟩ for every plane that was found, with v = w − centre. Each
plane has a mass α ≥ 0, those of an example sum to 1 at most, and v = −Σ α a / l2. A visit to an
example finds the plane that touches its loss at the weights. Then it moves masses among the
example's planes to where the dual is highest, by steps towards a plane, away from one, and from
one to another. After the last example of a visit, masses are moved among all planes found so far,
which needs no inference. Planes without mass for some visits are removed.

Where inference is approximate, planes are still below the loss, but the loss itself is
underestimated.

References: Lacoste-Julien et al. (2013), Block-coordinate Frank–Wolfe optimization for structural
SVMs; Shah, Kolmogorov and Lampert (2015), A multi-plane block-coordinate Frank–Wolfe algorithm for
training structural SVMs with a costly max-oracle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._optional import installed, needed
from chordal._saved import Saved, SavedError, State
from chordal.oracle.examples import StructuredExamples
from chordal.oracle.plane_program import PlaneProgram
from chordal.potentials import Floats
from chordal.structures import offsets_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]

EXACTNESS = 0.2  # the gap among known planes, as a share of the gap so far
MAX_IDLE = 5  # visits to all examples after which a plane without mass is forgotten
PASSES = 10  # among known planes, where there is no SciPy


@dataclass
class Plane:
    """loss(centre + v) ≥ offset + Σ values · v[cells]."""

    cells: NDArray[np.int32]
    values: Floats
    offset: float
    mass: float = 0.0
    idle: int = 0

    def height(self, v: Floats) -> float:
        """At v."""
        return self.offset + float(self.values @ v[self.cells])


class CachedPlaneLearner:
    """Moves masses among the planes of one example after another, then among all.

    Where l2 is small beside the squares of the slopes, one example alone would carry the weights
    far away, to where planes say little. Visits then work on the objective plus (κ/2) ‖v − z‖²,
    with z the minimum of all previous planes.
    """

    def __init__(self, examples: StructuredExamples) -> None:
        self._examples, n = examples, examples.n_weights
        self._centre = np.zeros(n) if examples.centre is None else examples.centre
        self._v = np.zeros(n)  # (κ z − Σ α a) / (l2 + κ); between visits −Σ α a / l2
        self._lowest: Floats | None = None  # z
        self._kappa, self._highest = 0.0, 0.0  # no loss is below zero
        self._planes: list[list[Plane]] = [[] for _ in range(examples.n_examples)]
        self._random = np.random.default_rng(0)

    def to_state(self) -> State:
        """The planes of all examples, one after another, and what was reached."""
        planes = [plane for own in self._planes for plane in own]
        none = np.zeros((0, len(self._v)))
        return {
            "counts": np.array([len(own) for own in self._planes], dtype=np.int64),
            "lengths": np.array([len(plane.cells) for plane in planes], dtype=np.int64),
            "cells": np.concatenate([np.zeros(0, np.int32), *(p.cells for p in planes)]),
            "values": np.concatenate([np.zeros(0), *(plane.values for plane in planes)]),
            "offsets": np.array([plane.offset for plane in planes], dtype=np.float64),
            "masses": np.array([plane.mass for plane in planes], dtype=np.float64),
            "idle": np.array([plane.idle for plane in planes], dtype=np.int64),
            "v": self._v,
            "lowest": none if self._lowest is None else self._lowest[None],
            "kappa": float(self._kappa),
            "highest": float(self._highest),
            "random": dict(self._random.bit_generator.state),
        }

    def from_state(self, saved: Saved) -> None:
        """Take over planes of as many examples, in as many dimensions."""
        n_weights = len(self._v)
        counts = saved.array("counts", np.int64, (len(self._planes),))
        offsets = saved.array("offsets", np.float64, (None,))
        masses = saved.array("masses", np.float64, offsets.shape)
        idle = saved.array("idle", np.int64, offsets.shape)
        lengths = saved.array("lengths", np.int64, offsets.shape)
        values = saved.array("values", np.float64, (None,))
        cells = saved.array("cells", np.int32, values.shape)
        sound = (counts >= 0).all() and (lengths >= 0).all()
        sound = sound and counts.sum() == len(offsets) and lengths.sum() == len(cells)
        if not sound or (len(cells) and not 0 <= cells.min() <= cells.max() < n_weights):
            raise SavedError("the planes do not fit the examples or the weights")
        ends = np.cumsum(lengths)[:-1]
        parts = (np.split(cells, ends), np.split(values, ends)) if len(lengths) else ([], [])
        numbers = (offsets.tolist(), masses.tolist(), idle.tolist())
        planes = iter([Plane(*own) for own in zip(*parts, *numbers, strict=True)])
        self._planes = [[next(planes) for _ in range(n)] for n in counts.tolist()]
        self._v = saved.array("v", np.float64, (n_weights,))
        lowest = saved.array("lowest", np.float64, (None, n_weights))
        self._lowest = lowest[0] if len(lowest) else None
        self._kappa, self._highest = saved.number("kappa"), saved.number("highest")
        saved.generator("random", self._random)

    def visit(self, order: Ints) -> None:
        """Improve the masses of these examples in turn, and then of all."""
        l2, kappa = self._examples.l2, self._kappa
        if self._lowest is not None:
            self._v = (l2 * self._v + kappa * self._lowest) / (l2 + kappa)
        met = sum(map(self._improve, self._examples.checked(order).tolist()))
        if any(self._planes):
            self._settle(met)

    def state(self) -> tuple[Floats, float]:
        """The weights at the minimum of the planes, nearly, and the highest dual value so far."""
        v = self._v if self._lowest is None else self._lowest
        return self._centre + v, self._highest

    def _improve(self, i: int) -> float:
        """The loss of an example before its masses moved."""
        loss, slope = self._examples.loss_gradient(i, self._centre + self._v)
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(slope @ slope) or not np.isfinite(self._v).all():
                raise OverflowError
        own = self._planes[i]
        if loss > max((plane.height(self._v) for plane in own), default=0.0):
            cells = np.flatnonzero(slope).astype(np.int32)
            own.append(Plane(cells, slope[cells], loss - float(slope @ self._v)))
            self._ascend(_Rows([own], self._examples.n_weights), 1)
        return loss

    def _ascend(self, rows: _Rows, n_passes: int) -> None:
        """Move masses among the planes of one example after another."""
        alpha, n, l2 = rows.alpha, len(rows.examples) - 1, self._examples.l2 + self._kappa
        order = np.concatenate([self._random.permutation(n) for _ in range(n_passes)])
        rows.kernel().ascend(l2, order, alpha=alpha, v=self._v)
        rows.take(alpha)

    def _settle(self, met: float) -> None:
        """Move masses among all planes, and forget those that have had none for long."""
        l2, z = self._examples.l2, self._v if self._lowest is None else self._lowest
        rows = _Rows([own for own in self._planes if own], len(z))
        if installed("scipy"):
            target = EXACTNESS * max(met + 0.5 * l2 * float(z @ z) - self._highest, 0.0)
            program = PlaneProgram(l2, rows.matrix(), rows.offsets, rows.owner)
            self._lowest, dual, alpha = program.solve(rows.alpha, z, target, self._random)
            self._v, self._kappa = program.weights(alpha), program.kappa
            rows.take(alpha)
        else:  # κ stays 0
            self._ascend(rows, PASSES)
            masses = np.array([plane.mass for plane in rows.planes])
            dual = float(masses @ rows.offsets) - 0.5 * l2 * float(self._v @ self._v)
        self._highest = max(self._highest, dual)
        for plane in rows.planes:
            plane.idle = 0 if plane.mass > 0.0 else plane.idle + 1
        self._planes = [[p for p in own if p.idle < MAX_IDLE] for own in self._planes]


class _Rows:
    """Planes of some examples as sparse rows."""

    def __init__(self, examples: list[list[Plane]], n_weights: int) -> None:
        self.planes = [plane for own in examples for plane in own]
        self.examples = offsets_of([len(own) for own in examples])
        self.alpha = np.array([plane.mass for plane in self.planes])
        self.offsets = np.array([plane.offset for plane in self.planes])
        self._n_weights = n_weights
        self._rows = offsets_of([len(plane.cells) for plane in self.planes])
        self._cells = np.concatenate([plane.cells for plane in self.planes])
        self._values = np.concatenate([plane.values for plane in self.planes])

    def take(self, alpha: Floats) -> None:
        """Give the planes these masses."""
        for plane, mass in zip(self.planes, alpha.tolist(), strict=True):
            plane.mass = mass

    @property
    def owner(self) -> Ints:
        """The example of every plane."""
        return np.repeat(np.arange(len(self.examples) - 1), np.diff(self.examples))

    def kernel(self) -> _kernels.Planes:
        """What moves masses."""
        return _kernels.Planes(
            example_offsets=self.examples,
            row_offsets=self._rows,
            cells=self._cells,
            values=self._values,
            offsets=self.offsets,
            n_weights=self._n_weights,
        )

    def matrix(self) -> csr_array:
        """The rows as SciPy has them."""
        with needed("scipy", "solver 'block_frank_wolfe'"):
            from scipy.sparse import csr_array

        shape = (len(self.planes), self._n_weights)
        return csr_array((self._values, self._cells, self._rows), shape)
