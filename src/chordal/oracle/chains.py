"""Chains learned one by one: features, inference and the update of weights in compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._optional import needed
from chordal.features import Shard
from chordal.oracle._chain_arrays import ChainDuals, chains_of
from chordal.oracle.examples import Planes, StructuredExamples
from chordal.potentials import Floats, Potentials
from chordal.structures import Chain
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
    objective, inference, mapper, l2, centre, cuts
        As in `StructuredExamples`.
    """

    def _take(self, shards: Sequence[Shard], cuts: Sequence[int]) -> None:
        # Shards are not kept: what is compiled holds the same.
        self.chains = chains_of(self.features, shards, cuts)
        self.limits = self.chains.limits
        self.n_examples = int(self.limits[-1])
        self.compiled = self.chains if self.inference.name == "chain" else None

    def _pages(self, block: int) -> Sequence[Any]:
        return self.chains.blocks[block : block + 1]

    def value(self, weights: Floats) -> float:
        """The regularised objective."""
        duals = self.duals
        if duals is not None:
            losses = duals.sample_weight * self._leads(duals, weights)
            return float(losses.sum()) + self.penalty(weights)
        each = range(self.n_examples)
        return sum(self.loss_gradient(i, weights)[0] for i in each) + self.penalty(weights)

    def planes(self, weights: Floats) -> Planes:
        """The planes that touch the losses at these weights."""
        duals, chains = self.duals, self.chains
        if duals is None:
            return super().planes(weights)
        with needed("scipy", "a solver of cutting planes"):
            from scipy.sparse import csr_array

        self.require_one_l2()
        labels = np.empty(len(chains.gold), dtype=np.int32)
        values = duals.sample_weight * self._leads(duals, weights, labels)
        offsets, cells, parts = _kernels.chain_differences(chains.arrays, labels)
        parts *= np.repeat(duals.sample_weight, np.diff(offsets))
        where = (chains.weight_of(cells), offsets)
        slopes = csr_array((parts, *where), (self.n_examples, self.n_weights))
        slopes.sum_duplicates()
        return Planes(values, values - slopes @ weights, slopes)

    def gold(self, i: int) -> tuple[Labels, Floats | None]:
        """The gold labels of one sequence, and its weight, if it has one."""
        block, k = self.chains.place(i)
        own = self.chains.blocks[block]
        labels = own.gold[own.offsets[k] : own.offsets[k + 1]]
        return labels, None if own.weight is None else own.weight[k : k + 1]

    def potentials(self, i: int, weights: Floats) -> Potentials:
        """The scores of one sequence."""
        block, k = self.chains.place(i)
        lengths = np.diff(self.chains.blocks[block].offsets[k : k + 2])
        structure = Chain(lengths, self.chains.n_labels)
        n = structure.n_cliques
        n_tables = min(n, 1) if self.chains.tied else n
        limits = np.arange(n_tables + 1, dtype=np.int64) * self.chains.n_labels**2
        index = np.zeros(n) if self.chains.tied else np.arange(n)
        unary, tables = np.empty(structure.n_states), np.empty(int(limits[-1]))
        cells = self.chains.spread(weights)
        self.chains.bound[block].scores(k, w=cells, unary=unary, tables=tables)
        if not np.isfinite(unary).all() or not np.isfinite(tables).all():
            raise OverflowError
        return Potentials.trusted(structure, unary, tables, index.astype(np.int32), limits)

    def adjoint(self, i: int, parts: Potentials) -> Floats:
        """The gradient of parts of one sequence."""
        cells, (block, k) = self.chains.spread(np.zeros(self.n_weights)), self.chains.place(i)
        self.chains.bound[block].adjoint(k, unary=parts.unary, tables=parts.tables, w=cells)
        return self.chains.gather(cells)

    def _leads(
        self, duals: ChainDuals, weights: Floats, labels: NDArray[np.int32] | None = None
    ) -> Floats:
        """The unweighted losses; `labels` takes the best labellings."""
        arrays, cells = self.chains.arrays, self.chains.spread(weights)
        lead = np.zeros(self.n_examples)

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
