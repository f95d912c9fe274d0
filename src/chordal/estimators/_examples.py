"""Chains learned one by one: features, inference and the update of weights in one compiled loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._blocks import aligned_zeros
from chordal._errors import UnsupportedError
from chordal.costs._matrix import cost_matrix
from chordal.features import ChainFeatures, ChainShard, RowEntries
from chordal.features._entries import packed_flags, unit_of
from chordal.objectives import Objective
from chordal.objectives._margin import MarginObjective
from chordal.oracle import Floats, GradientRule, Learner, UpdateRule
from chordal.structures import offsets_of


class ExampleLoss(NamedTuple):
    """softmax over y of [score(y) + cost(y)] − score(gold), as the compiled loop knows it."""

    soft: bool  # log Σ exp, or else max
    cost: Floats | None  # [gold * n_labels + label]
    normalised: bool  # cost over length

    @classmethod
    def of(cls, objective: Objective | None, n_labels: int) -> ExampleLoss:
        """That of an objective; refuses what is not of this form."""
        if objective is None:
            return cls(True, None, False)
        if not isinstance(objective, MarginObjective):
            raise UnsupportedError(
                f"objective {objective.name!r} cannot be learned from one sequence after another "
                "by solver 'sgd': it is no softmax or maximum of scores and costs; use another "
                "solver"
            )
        if objective.cost is None:
            return cls(bool(objective.temperature), None, False)
        values, normalised = cost_matrix(objective.cost, n_labels)
        return cls(bool(objective.temperature), values.ravel(), normalised)


class ChainExamples:
    """Labelled sequences as an `ExampleOracle`.

    All weights lie in one array of cells: first those of the rows of nodes, with bias, start and
    end as rows of weights that every, the first and the last position hold; then those of the
    rows of transitions, or one table for all of them.

    Parameters
    ----------
    features : ChainFeatures
    shards : list of ChainShard
        With gold labels.
    l2 : float or array [n_weights]
        The regularisation is (l2/2) ‖w − centre‖²; it concerns the gradient rule alone. In an
        array, weights may be exempt by 0; all others have the same.
    centre : array [n_weights], optional
    objective : Objective, optional
        What the gradient rule goes down; the likelihood by default.
    """

    def __init__(
        self,
        features: ChainFeatures,
        shards: Sequence[ChainShard],
        l2: float | Floats = 0.0,
        centre: Floats | None = None,
        objective: Objective | None = None,
    ) -> None:
        self.loss = ExampleLoss.of(objective, features.n_labels)
        lengths = np.concatenate([np.diff(s.frame.structure.variable_offsets) for s in shards])
        self.n_examples, self.n_weights = len(lengths), features.n_weights
        self.l2, self.centre = float(np.max(l2, initial=0.0)), centre
        self._exempt = _exempt(l2, self.n_weights)
        node_offsets = offsets_of(lengths)
        node = _node_entries(features, shards, node_offsets)
        base = -(-node.n_cells // 4) * 4  # flags are kept for four cells at a time
        n, table, edge = features.n_labels, base, None
        if features.edge is None:
            edge_cells = base + features.transitions
            self.n_cells = base + -(-n * n // 4) * 4
        else:
            edge = features.edge.entries([s.edge for s in shards])
            edge = edge.with_wide_row(np.arange(edge.n_rows), features.transitions)
            edge_cells = base + edge.cells
            self.n_cells = base + -(-edge.n_cells // 4) * 4
        if self.n_cells >= 2**32:
            raise ValueError("too many weights for online learning: raise min_freq")
        split = features.slices["node"].stop  # weights of bias, start and end come last
        self._cells = np.concatenate([node.cells[:split], edge_cells, node.cells[split:]])
        labels = [s.labels for s in shards if isinstance(s.labels, np.ndarray)]
        weights = [s.weight for s in shards if s.weight is not None]
        self.chains = _kernels.OnlineChains(
            node_offsets,
            offsets_of(np.maximum(lengths - 1, 0)),
            np.concatenate(labels).astype(np.int32),
            np.concatenate(weights) if weights else None,
            packed_flags(self._cells, self.n_cells),
            _kernel_rows(node, 0),
            None if edge is None else _kernel_rows(edge, base),
            table,
            n,
        )

    def learner(self, rule: UpdateRule | GradientRule, start: Floats) -> Learner:
        """A learner by this rule, from these weights on."""
        if isinstance(rule, GradientRule):
            return ChainDescent(self, rule, start)
        return ChainLearner(self, rule, start)

    def checked(self, order: NDArray[np.int64]) -> NDArray[np.int64]:
        """An order of examples, each of which is there."""
        order = np.ascontiguousarray(order, dtype=np.int64)
        if len(order) and not 0 <= order.min() <= order.max() < self.n_examples:
            raise IndexError(f"order must name examples 0 to {self.n_examples - 1}")
        return order

    def penalty(self, weights: Floats) -> float:
        """(l2/2) ‖w − centre‖²."""
        offset = weights if self.centre is None else weights - self.centre
        if len(self._exempt):
            offset = np.delete(offset, self._exempt)
        with np.errstate(over="ignore"):
            return 0.5 * self.l2 * float(np.dot(offset, offset))

    def spread(self, weights: Floats) -> Floats:
        """Weights in their cells; padding is zero."""
        cells = aligned_zeros(self.n_cells)
        cells[self._cells] = weights
        return cells

    def weight_of(self, cells: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Which weight lies in each of these cells."""
        weights = np.zeros(self.n_cells, dtype=np.int64)
        weights[self._cells] = np.arange(self.n_weights)
        return weights[cells]

    def exempt(self) -> NDArray[np.int64]:
        """The cells of weights without regularisation."""
        return self._cells[self._exempt]

    def gather(self, cells: Floats) -> Floats:
        """The weights in these cells."""
        return cells[self._cells]


class ChainLearner:
    """Weights that sequences change, one after another."""

    def __init__(self, examples: ChainExamples, rule: UpdateRule, start: Floats) -> None:
        self._examples, self._rule = examples, rule
        self._parameters = np.array(rule.parameters, dtype=np.float64)
        self._counts = np.array([1.0, 0.0])  # steps, from 1, and losses
        variance = rule.parameters[1] if rule.name == "arow" else 0.0
        self._second = examples.spread(np.full(examples.n_weights, variance))
        self._cells = examples.spread(start)

    def visit(self, order: NDArray[np.int64]) -> float:
        """Learn from these sequences in turn; the sum of the losses met on the way."""
        order = self._examples.checked(order)
        self._counts[1] = 0.0
        self._examples.chains.visit(
            self._rule.name, self._parameters, order, self._cells, self._second, self._counts
        )
        return float(self._counts[1])

    def weights(self) -> Floats:
        """What has been learned so far."""
        gather = self._examples.gather
        weights = gather(self._cells)
        if self._rule.averaged:
            weights -= gather(self._second) / self._counts[0]
        return weights


class ChainDescent:
    """Weights that sequences take down their losses, one after another."""

    def __init__(self, examples: ChainExamples, rule: GradientRule, start: Floats) -> None:
        self._examples, centre, loss = examples, examples.centre, examples.loss
        self._parameters = np.array([*rule.parameters, loss.soft, loss.normalised], np.float64)
        self._counts = np.zeros(3)  # steps, losses, steps averaged
        self._cells = examples.spread(start if centre is None else start - centre)
        self._fixed = None if centre is None else examples.spread(centre)
        self._velocity = np.zeros_like(self._cells) if rule.momentum else None
        self._total = np.zeros_like(self._cells) if rule.averaged else None
        self._exempt = examples.exempt()
        if len(self._exempt) and rule.radius < np.inf:
            raise UnsupportedError(
                "projection shortens all weights, and cannot go with weights that have no l2; "
                "leave projection out, or regularise all weights"
            )

    def visit(self, order: NDArray[np.int64]) -> float:
        """Learn from these sequences in turn; the sum of the losses met on the way."""
        order = self._examples.checked(order)
        self._counts[1] = 0.0
        self._examples.chains.descend(
            self._parameters,
            order,
            self._cells,
            self._velocity,
            self._total,
            self._fixed,
            self._examples.loss.cost,
            self._exempt,
            self._counts,
        )
        return float(self._counts[1])

    def weights(self) -> Floats:
        """What has been learned so far."""
        examples, averaged = self._examples, self._counts[2]
        if self._total is not None and averaged > 0.0:
            weights = examples.gather(self._total) / averaged
        else:
            weights = examples.gather(self._cells)
        if examples.centre is not None:
            weights += examples.centre
        return weights


def _exempt(l2: float | Floats, n_weights: int) -> NDArray[np.int64]:
    """Which weights have no regularisation though others have."""
    penalties = np.broadcast_to(l2, n_weights)
    free, most = penalties == 0.0, np.max(l2, initial=0.0)
    if not (free | (penalties == most)).all():
        raise UnsupportedError(
            "online learning takes one l2 for all weights but those that have none; use a solver "
            "such as 'lbfgs'"
        )
    return np.flatnonzero(free) if most > 0.0 else np.zeros(0, dtype=np.int64)


def _node_entries(
    features: ChainFeatures, shards: Sequence[ChainShard], offsets: NDArray[np.int64]
) -> RowEntries:
    """The rows of nodes, with the weights of bias, start and end after their own."""
    entries = features.node.entries([s.node for s in shards])
    labels = np.arange(features.n_labels)
    filled = np.diff(offsets) > 0
    if features.bias:
        entries = entries.with_wide_row(np.arange(entries.n_rows), labels)
    if features.ends:
        entries = entries.with_wide_row(offsets[:-1][filled], labels)
        entries = entries.with_wide_row(offsets[1:][filled] - 1, labels)
    return entries


def _kernel_rows(entries: RowEntries, base: int) -> _kernels.OnlineRows:
    """Entries for the kernel, their cells counted from `base` on."""
    moved = replace(entries, narrow_cells=entries.narrow_cells + np.uint32(base))
    return _kernels.OnlineRows(
        moved.wide_offsets,
        moved.wide_codes,
        moved.wide_values,
        moved.narrow_offsets,
        moved.narrow_outputs,
        moved.narrow_cells,
        moved.narrow_values,
        moved.n_outputs,
        unit_of(moved.n_outputs),
        base,
    )
