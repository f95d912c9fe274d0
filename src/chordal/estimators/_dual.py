"""Chains with dual variables: what max-margin and exponentiated-gradient solvers ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._errors import UnsupportedError
from chordal.costs import Cost
from chordal.estimators._examples import ChainExamples
from chordal.estimators._exponentiated import ExponentiatedLearner
from chordal.estimators._frank_wolfe import FrankWolfeLearner
from chordal.features import Layout, Shard, unit_of
from chordal.objectives import Objective
from chordal.oracle import DualLearner, Floats, Mapper, Planes
from chordal.structures import offsets_of

Ints = NDArray[np.int64]

PIECE = 256  # examples of a task
GRAM_ROWS = 100  # products of positions that may be kept for each position


class ChainDual:
    """Labelled sequences as a `DualOracle`, and for the hinge as a `PlaneOracle`.

    Parameters
    ----------
    features : Layout
    shards : list of Shard
        With gold labels.
    objective : Objective
        Whose cost is a sum over the labels of single positions.
    mapper : Mapper
        Runs what concerns all examples at once.
    l2 : float
        The regularisation is (l2/2) ‖w − centre‖².
    centre : array [n_weights], optional
    """

    def __init__(
        self,
        features: Layout,
        shards: Sequence[Shard],
        objective: Objective,
        mapper: Mapper,
        l2: float,
        centre: Floats | None = None,
    ) -> None:
        cost: Cost | None = getattr(objective, "cost", None)
        self.soft = objective.name == "likelihood"  # log Σ exp in place of the maximum
        self.costs = label_costs(cost, objective, shards, features.n_labels)
        self.examples = ChainExamples(features, shards, l2, centre)
        self.n_examples, self.n_weights = self.examples.n_examples, features.n_weights
        self.l2, self.centre, self._mapper = l2, centre, mapper
        lengths = [np.diff(s.frame.structure.variable_offsets) for s in shards]
        self.lengths = np.concatenate(lengths)
        weights = [s.weight for s in shards if s.weight is not None]
        self.sample_weight = np.concatenate(weights) if weights else np.ones(self.n_examples)
        self._gold = np.concatenate([s.labels for s in shards if s.labels is not None])
        self.n_labels = features.n_labels
        self.tied = all(own.order == 1 or own.rows is None for own in features.templates)
        sizes = self.lengths * (self.lengths + 1) // 2
        self.gram_offsets, self.gram = offsets_of(sizes), None
        #: Whether every attribute has a weight for every label.
        self.full = bool(_kernels.chain_is_full(self.examples.chains))
        if self.full and sizes.sum() <= GRAM_ROWS * self._gold.size:
            self.gram = _kernels.chain_gram(self.examples.chains, self.examples.n_cells)

    def gold_keys(self) -> tuple[Ints, Ints]:
        """Where the gold labels lie in padded rows of an example's labels, and the gold
        transitions in padded rows of its tables; example after example.
        """
        n, unit = self.n_labels, unit_of(self.n_labels)
        stride, gold = -(-n // unit) * unit, self._gold.astype(np.int64)
        position = np.arange(len(gold)) - np.repeat(offsets_of(self.lengths)[:-1], self.lengths)
        right = np.flatnonzero(position > 0)
        transitions = gold[right - 1] * stride + gold[right]
        if not self.tied:
            transitions += (position[right] - 1) * n * stride
        return position * stride + gold, transitions

    def value(self, weights: Floats) -> float:
        """The regularised objective."""
        losses = self.sample_weight * self._leads(weights)
        return float(losses.sum()) + self.examples.penalty(weights)

    def planes(self, weights: Floats) -> Planes:
        """The planes that touch the losses at these weights."""
        labels = np.empty(int(self.lengths.sum()), dtype=np.int32)
        values = self.sample_weight * self._leads(weights, labels)
        slopes = self._slopes(labels)
        return Planes(values, values - slopes @ weights, slopes)

    def dual_learner(self, rule: str) -> DualLearner:
        """A learner by this rule, at w = centre."""
        if rule == "exponentiated_gradient":
            return ExponentiatedLearner(self)
        return FrankWolfeLearner(self)

    def _leads(self, weights: Floats, labels: NDArray[np.int32] | None = None) -> Floats:
        """The unweighted losses; `labels` takes the best labellings."""
        cells, lead = self.examples.spread(weights), np.zeros(self.n_examples)

        def task(begin: int) -> None:
            end = min(begin + PIECE, self.n_examples)
            if self.soft:
                _kernels.chain_log_partitions(self.examples.chains, begin, end, cells, lead)
                return
            _kernels.chain_best_with_cost(
                *(self.examples.chains, *self.costs, self.full, begin, end, cells, lead, labels)
            )

        self._mapper.map(task, range(0, self.n_examples, PIECE))
        return lead

    def _slopes(self, labels: NDArray[np.int32]) -> Any:
        """ω_i (φ(labels) − φ(gold)), a sparse row per example."""
        import scipy.sparse as sp

        examples = self.examples
        offsets, cells, values = _kernels.chain_differences(
            examples.chains, examples.n_cells, labels
        )
        values *= np.repeat(self.sample_weight, np.diff(offsets))
        slopes = sp.csr_array(
            (values, examples.weight_of(cells), offsets), (self.n_examples, self.n_weights)
        )
        slopes.sum_duplicates()
        return slopes


def check_margin_cost(objective: Objective, solver: str) -> None:
    """Refuse, before any work, a loss whose dual is no sum over the parts of a labelling."""
    if getattr(objective, "scaling", "margin") != "margin":
        raise UnsupportedError(
            f"solver {solver!r} keeps dual variables of single labels and transitions, into which "
            f"objective {objective.name!r} with scaling={objective.scaling!r} does not decompose: "  # type: ignore[attr-defined]
            "use scaling='margin', or another solver"
        )


def label_costs(
    cost: Cost | None, objective: Objective, shards: Sequence[Shard], n_labels: int
) -> tuple[Floats, NDArray[np.int32]]:
    """The distinct rows of costs of a position's labels, and which of them each position has."""
    rows, where, known = [np.zeros((1, n_labels))], [], 1
    for shard in shards:
        frame = shard.frame
        n = frame.structure.n_variables
        if cost is None or not isinstance(shard.labels, np.ndarray):
            where.append(np.zeros(n, dtype=np.int32))
            continue
        priced = frame.like(np.zeros(n * n_labels), np.zeros(len(frame.tables)))
        priced = cost.add(priced, shard.labels)
        if priced.tables.any():
            raise UnsupportedError(
                f"cost {cost.name!r} of objective {objective.name!r} does not decompose into "
                "prices of single labels, which solvers with dual variables of examples need: use "
                "cost 'hamming', or solver 'one_slack'"
            )
        distinct, index = np.unique(priced.unary.reshape(n, n_labels), axis=0, return_inverse=True)
        rows.append(distinct)
        where.append((known + index.ravel()).astype(np.int32))
        known += len(distinct)
    return np.concatenate(rows).ravel(), np.concatenate(where)
