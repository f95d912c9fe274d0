"""Chains learned one by one: features, inference and the update of weights in compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal.features import Shard
from chordal.oracle._chain_arrays import ChainDuals, chains_of
from chordal.oracle._protocols import Planes
from chordal.oracle.examples import StructuredExamples
from chordal.oracle.rules._base import DualLearner, DualRule, Learner, Rule
from chordal.potentials import Floats, Potentials
from chordal.structures import Chain, offsets_of
from chordal.targets import Labels

PIECE = 256  # examples of a task


class ChainExamples(StructuredExamples):
    """Labelled sequences as an oracle of examples, of dual variables and of planes.

    Rules that are compiled run so, with inference "chain"; others take the steps of
    `StructuredExamples`.

    Parameters
    ----------
    features : Layout
    shards : list of Shard
        Of any number of sequences, with gold labels.
    objective, inference, mapper, l2, centre
        As in `StructuredExamples`.
    """

    def _take(self, shards: Sequence[Shard]) -> None:
        # Shards are not kept: what is compiled holds the same.
        self.chains = chains_of(self.features, shards)
        self.n_examples = len(self.chains.lengths)
        self._offsets = offsets_of(self.chains.lengths)
        self._compiled = self.inference.name == "chain"

    @cached_property
    def duals(self) -> ChainDuals:
        """What compiled rules of dual variables take."""
        self.require_one_l2()
        return ChainDuals(self.chains, self.objective)

    def learner(self, rule: Rule, start: Floats) -> Learner:
        """A learner by this rule, from these weights on."""
        if self._compiled:
            return rule.chain_learner(self, self.chains, start)
        return rule.learner(self, start)

    def dual_learner(self, rule: DualRule) -> DualLearner:
        """A learner of dual variables by this rule, at w = centre."""
        if self._compiled:
            return rule.chain_learner(self, self.duals)
        return super().dual_learner(rule)

    def value(self, weights: Floats) -> float:
        """The regularised objective."""
        if self._compiled:
            losses = self.duals.sample_weight * self._leads(weights)
            return float(losses.sum()) + self.penalty(weights)
        each = range(self.n_examples)
        return sum(self.loss_gradient(i, weights)[0] for i in each) + self.penalty(weights)

    def planes(self, weights: Floats) -> Planes:
        """The planes that touch the losses at these weights."""
        if not self._compiled:
            return super().planes(weights)
        import scipy.sparse as sp

        labels, chains = np.empty(len(self.chains.gold), dtype=np.int32), self.chains
        values = self.duals.sample_weight * self._leads(weights, labels)
        offsets, cells, parts = _kernels.chain_differences(chains.arrays, labels)
        parts *= np.repeat(self.duals.sample_weight, np.diff(offsets))
        slopes = sp.csr_array(
            (parts, chains.weight_of(cells), offsets), (self.n_examples, self.n_weights)
        )
        slopes.sum_duplicates()
        return Planes(values, values - slopes @ weights, slopes)

    def gold(self, i: int) -> tuple[Labels, Floats | None]:
        """The gold labels of one sequence, and its weight, if it has one."""
        weight = self.chains.weight
        own = self.chains.gold[self._offsets[i] : self._offsets[i + 1]]
        return own, None if weight is None else weight[i : i + 1]

    def potentials(self, i: int, weights: Floats) -> Potentials:
        """The scores of one sequence."""
        structure = Chain(self.chains.lengths[i : i + 1], self.chains.n_labels)
        n = structure.n_cliques
        n_tables = min(n, 1) if self.chains.tied else n
        limits = np.arange(n_tables + 1, dtype=np.int64) * self.chains.n_labels**2
        index = np.zeros(n) if self.chains.tied else np.arange(n)
        unary, tables = np.empty(structure.n_states), np.empty(int(limits[-1]))
        self.chains.arrays.scores(i, w=self.chains.spread(weights), unary=unary, tables=tables)
        if not np.isfinite(unary).all() or not np.isfinite(tables).all():
            raise OverflowError
        return Potentials.trusted(structure, unary, tables, index.astype(np.int32), limits)

    def adjoint(self, i: int, parts: Potentials) -> Floats:
        """The gradient of parts of one sequence."""
        cells = self.chains.spread(np.zeros(self.n_weights))
        self.chains.arrays.adjoint(i, unary=parts.unary, tables=parts.tables, w=cells)
        return self.chains.gather(cells)

    def _leads(self, weights: Floats, labels: NDArray[np.int32] | None = None) -> Floats:
        """The unweighted losses; `labels` takes the best labellings."""
        duals, arrays = self.duals, self.chains.arrays
        cells, lead = self.chains.spread(weights), np.zeros(self.n_examples)

        def task(begin: int) -> None:
            end = min(begin + PIECE, self.n_examples)
            if duals.soft:
                _kernels.chain_log_partitions(arrays, begin, end, w=cells, lead=lead)
                return
            _kernels.chain_best_with_cost(
                *(arrays, duals.costs, duals.full, begin, end), w=cells, lead=lead, labels=labels
            )

        self._mapper.map(task, range(0, self.n_examples, PIECE))
        return lead
