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
from chordal.features import Layout, RowEntries, Shard, packed_flags, unit_of
from chordal.objectives import Objective
from chordal.objectives._margin import MarginObjective
from chordal.oracle import Floats, GradientRule, Learner, UpdateRule
from chordal.structures import offsets_of

Ints = NDArray[np.int64]


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
    features : Layout
    shards : list of Shard
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
        features: Layout,
        shards: Sequence[Shard],
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
        node, node_place = _node_entries(features, shards)
        base = -(-node.n_cells // 4) * 4  # flags are kept for four cells at a time
        n, table = features.n_labels, base
        edge, edge_cells, edge_place = _edge_entries(features, shards)
        self.n_cells = base + -(-(n * n if edge is None else edge.n_cells) // 4) * 4
        if self.n_cells >= 2**32:
            raise ValueError("too many weights for online learning: raise min_freq")
        self._cells = np.empty(self.n_weights, dtype=np.int64)
        self._cells[node_place], self._cells[edge_place] = node.cells, base + edge_cells
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


def _node_entries(layout: Layout, shards: Sequence[Shard]) -> tuple[RowEntries, Ints]:
    """The rows of all templates of single variables as one list of entries, and which weights
    these have.
    """
    found: RowEntries | None = None
    places = [np.zeros(0, dtype=np.int64)]
    for k, own in enumerate(layout.templates):
        if own.order > 1 or (own.rows is None and len(own.kept) == 0):
            continue
        first, outputs = layout.slices[own.name].start, own.tables.cell_of_output
        if own.rows is not None:
            if found is not None or any(s.variables[k] is not None for s in shards):
                raise UnsupportedError(
                    "learning from one chain after another takes the features of one template of "
                    "variables; use a solver such as 'lbfgs'"
                )
            found = own.rows.entries([s.rows[k] for s in shards])
            if not own.tables.is_full:
                found = found.of_output(int(outputs[0]), layout.n_labels)
            places.append(first + np.arange(own.n_row_weights))
        if found is not None and len(own.kept):
            rows = _rows_of([s.variables[k] for s in shards], shards)
            found = found.with_wide_row(rows, outputs[own.kept])
            places.append(first + own.n_row_weights + np.arange(len(own.kept)))
    assert found is not None
    return found, np.concatenate(places)


def _rows_of(variables: Sequence[Ints | None], shards: Sequence[Shard]) -> Ints:
    """The variables of a template, counted through all shards."""
    sizes = [shard.frame.structure.n_variables for shard in shards]
    first = offsets_of(sizes)[:-1]
    parts = [
        at + (np.arange(n) if own is None else own)
        for at, n, own in zip(first, sizes, variables, strict=True)
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _edge_entries(
    layout: Layout, shards: Sequence[Shard]
) -> tuple[RowEntries | None, Ints, Ints]:
    """Entries of the rows of transitions, or None for one table; cells of the weights, and which
    weights these are.
    """
    found: RowEntries | None = None
    cells, places = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for k, own in enumerate(layout.templates):
        if own.order == 1:
            continue
        first = layout.slices[own.name].start
        if own.rows is not None:
            found = own.rows.entries([s.rows[k] for s in shards])
            cells.append(found.cells)
            places.append(first + np.arange(own.n_row_weights))
        kept = own.tables.cell_of_output[own.kept]
        if found is not None:
            n = len(found.cells)
            found = found.with_wide_row(np.arange(found.n_rows), kept)
            kept = found.cells[n:]
        cells.append(kept)
        places.append(first + own.n_row_weights + np.arange(len(own.kept)))
    return found, np.concatenate(cells), np.concatenate(places)


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
