"""Training of a chain model: from data to weights, in the steps every estimator shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from math import isnan, nan

import numpy as np
from numpy.typing import NDArray

from chordal._status import Status
from chordal.execution import EXECUTION, Execution
from chordal.features import ChainFeatures, ChainShard, RowFeatures, Rows
from chordal.solvers import Callback, Iteration, Solution
from chordal.targets import Target

Floats = NDArray[np.float64]

SHARD_CELLS = 180_000  # scores of a shard: large enough to hide Python, small enough for the cache


@dataclass(frozen=True)
class FitReport:
    """How a fit went.

    Attributes
    ----------
    status : Status
        Why it ended; `status.succeeded` is True when it converged.
    objective : float
        The final value of the regularised objective; of an online solver, the losses met during
        its last pass (of "sgd", its best).
    gradient_norm : float
        NaN for online solvers, which compute no gradient of the whole objective.
    n_evaluations : int
        Evaluations of the objective, or of a mini-batch's; of online solvers, visits to single
        sequences.
    history : list of float
        The objective after each iteration.
    gap : float
        The duality gap, of solvers that know it; else NaN.
    details : dict of lists of float
        What the solver reports besides, a number per iteration each.
    n_products : int
        Hessian–vector products.
    exact : bool
        Whether inference was exact in training; if not, an objective that asks for log Z,
        marginals or the best labelling is an approximation.
    validation : list of (iteration, score)
        Scores on the validation data, when given.
    """

    status: Status
    solver: str
    inference: str
    objective: float
    gradient_norm: float
    n_iter: int
    n_evaluations: int
    n_weights: int
    n_nonzero: int
    elapsed: float
    history: list[float] = field(repr=False, default_factory=list)
    validation: list[tuple[int, float]] = field(repr=False, default_factory=list)
    gap: float = field(default=nan, compare=False)  # NaN is not equal to itself
    details: dict[str, list[float]] = field(repr=False, default_factory=dict)
    n_products: int = 0
    exact: bool = True

    def __str__(self) -> str:
        norm = "" if isnan(self.gradient_norm) else f"‖gradient‖ {self.gradient_norm:.3g}, "
        gap = "" if isnan(self.gap) else f"gap {self.gap:.3g}, "
        approximate = "" if self.exact else f", inference {self.inference!r} is approximate"
        return (
            f"{self.status.value} after {self.n_iter} iterations ({self.n_evaluations} "
            f"evaluations, {self.elapsed:.2f} s): objective {self.objective:.6f}, "
            f"{norm}{gap}{self.n_nonzero} of {self.n_weights} weights are not zero{approximate}"
        )


def execution_for(n_jobs: int) -> Execution:
    """One thread needs no pool."""
    return EXECUTION.resolve("threads" if n_jobs > 1 else "serial", n_jobs=n_jobs)


def shard_limits(
    lengths: NDArray[np.int64], cells_per_row: int, at_least: int = 1
) -> list[tuple[int, int]]:
    """Cut sequences into runs (begin, end) of about SHARD_CELLS cells, or fewer.

    Depends on the data only. Many shards come in fours, so that threads have equal work; there
    are `at_least` so many if there are as many sequences of equal length.

    >>> shard_limits(np.array([3, 3, 3]), 60_000)
    [(0, 1), (1, 2), (2, 3)]
    """
    ends = np.cumsum(lengths)
    rows = max(1, min(SHARD_CELLS // cells_per_row, -(-int(ends[-1]) // max(1, at_least))))
    if ends[-1] <= rows:
        return [(0, len(lengths))]
    count = -(-int(ends[-1]) // rows)
    if count > 4:
        rows = max(1, -(-int(ends[-1]) // ((count + 2) // 4 * 4)))
    cuts = np.searchsorted(ends, np.arange(rows, ends[-1], rows), side="left") + 1
    limits = np.unique(np.concatenate([[0], cuts, [len(lengths)]]))
    limits = limits[limits <= len(lengths)]
    return list(pairwise(limits.tolist()))


def compile_shards(
    features: ChainFeatures,
    node_rows: Rows,
    edge_rows: Rows | None,
    labels: Target | None = None,
    weight: Floats | None = None,
) -> list[ChainShard]:
    """The whole batch as shards."""
    cells = features.n_labels ** (1 if features.edge is None else 2)
    return [
        features.compile(node_rows, edge_rows, a, b, labels, weight)
        for a, b in shard_limits(node_rows.lengths, cells)
    ]


def compile_batches(
    features: ChainFeatures,
    node_rows: Rows,
    edge_rows: Rows | None,
    labels: Target,
    weight: Floats | None,
    order: NDArray[np.int64],
    size: int,
) -> tuple[list[ChainShard], list[int]]:
    """Shards of the sequences in this order, and where each mini-batch of `size` begins.

    Shards end where mini-batches do. A mini-batch of some size is cut in four, so that threads
    have something to share.
    """
    labels = labels[node_rows.positions(order)]
    node_rows = node_rows.reordered(order)
    edge_rows = None if edge_rows is None else edge_rows.reordered(order)
    weight = None if weight is None else weight[order]
    cells = features.n_labels ** (1 if features.edge is None else 2)
    shards: list[ChainShard] = []
    cuts = [0]
    for first in range(0, len(order), size):
        lengths = node_rows.lengths[first : first + size]
        for a, b in shard_limits(lengths, cells, min(4, int(lengths.sum()) * cells // 20_000)):
            shards.append(
                features.compile(node_rows, edge_rows, first + a, first + b, labels, weight)
            )
        cuts.append(len(shards))
    return shards, cuts


def transferred(old: ChainFeatures, weights: Floats, new: ChainFeatures) -> Floats:
    """Weights of a new layout, taken over from an old one whose labels keep their numbers."""
    out = np.zeros(new.n_weights)

    def copy(old_rows: RowFeatures, new_rows: RowFeatures, group: str, pairs: bool) -> None:
        a, b = old_rows.keys(), new_rows.keys()
        output = _renumbered(a.output, old.n_labels, new.n_labels) if pairs else a.output
        old_key = a.column * new_rows.n_outputs + output
        new_key = b.column * new_rows.n_outputs + b.output
        order = np.argsort(old_key)
        at = np.searchsorted(old_key, new_key, sorter=order)
        at[at == len(order)] = 0
        found = old_key[order[at]] == new_key if len(order) else np.zeros(len(new_key), bool)
        target = out[new.slices[group]]
        target[found] = weights[old.slices[group]][order[at[found]]]

    copy(old.node, new.node, "node", pairs=False)
    if old.edge is not None and new.edge is not None:
        copy(old.edge, new.edge, "edge", pairs=True)
    table = np.zeros(new.n_labels**2)
    table[_renumbered(old.transitions, old.n_labels, new.n_labels)] = weights[
        old.slices["transitions"]
    ]
    out[new.slices["transitions"]] = table[new.transitions]
    for group in ("bias", "start", "end"):
        taken = weights[old.slices[group]]
        if new.slices[group].stop > new.slices[group].start:
            out[new.slices[group]][: len(taken)] = taken
    return out


def _renumbered(pairs: NDArray[np.int64], n_old: int, n_new: int) -> NDArray[np.int64]:
    """Label pairs i * n_old + j as i * n_new + j."""
    i, j = np.divmod(pairs, n_old)
    return i * n_new + j


class Monitor:
    """The callback of a fit: progress, validation scores, early stopping, the user's own."""

    def __init__(
        self,
        show: Callable[[Iteration, float | None], None],
        callback: Callback | None,
        validate: Callable[[Floats], float] | None,
        interval: int,
        patience: int | None,
        spread: Callable[[Floats], Floats],
    ) -> None:
        self._show, self._callback, self._validate = show, callback, validate
        self._interval, self._patience = interval, patience
        self._spread = spread  # from the solver's weights to a copy that is the model's
        self.scores: list[tuple[int, float]] = []
        self.best: tuple[float, Iteration] | None = None
        self._waited = 0

    def __call__(self, state: Iteration) -> bool:
        score = None
        if self._validate is not None and state.iteration % self._interval == 0:
            weights = self._spread(state.weights)
            score = self._validate(weights)
            self.scores.append((state.iteration, score))
            if self.best is None or score > self.best[0]:
                self.best = (score, state._replace(weights=weights))
                self._waited = 0
            else:
                self._waited += 1
        self._show(state, score)
        stop = False
        if self._callback is not None:  # users may keep the weights
            stop = bool(self._callback(state._replace(weights=self._spread(state.weights))))
        return stop or (self._patience is not None and self._waited >= self._patience)

    def chosen(self, solution: Solution) -> tuple[Floats, float, float, float]:
        """Weights, objective, gradient norm and gap: the solution's, or the best validated ones."""
        if self._patience is not None and self.best is not None:
            best = self.best[1]
            return best.weights, best.value, best.gradient_norm, best.gap
        weights = self._spread(solution.weights)
        return weights, solution.value, solution.gradient_norm, solution.gap
