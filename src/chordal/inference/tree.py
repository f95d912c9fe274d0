"""Exact inference on trees and forests by two passes of messages, compiled."""

from __future__ import annotations

from typing import Any, final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal.inference._base import Decoded, Marginals
from chordal.inference._clique_tree import CliqueTreeInference, Plan, arrays_of, plan_of
from chordal.potentials import Floats, Potentials, refuse_infeasible
from chordal.structures import Structure
from chordal.structures._base import Ints


@final
class TreeInference(CliqueTreeInference):
    """Belief propagation from the leaves to a root and back: linear in the number of cliques.

    It works wherever variables and cliques form no loop (`Structure.is_forest`), with cliques of
    any order. Examples may fall apart into pieces. A graph with loops is for `junction_tree`,
    or for `loopy_bp` where that needs too much memory.

    Sums over pairs run in scaled probabilities where the scores' range allows it, and in log space
    elsewhere, example by example.

    References
    ----------
    Pearl (1988), Probabilistic reasoning in intelligent systems; Kschischang, Frey and Loeliger
    (2001), Factor graphs and the sum-product algorithm.

    Examples
    --------
    >>> from chordal.structures import Tree
    >>> p = Potentials(Tree([[-1, 0, 0]], n_labels=2), [0, 1, 0, 0, 3, 0], tables=[1, 0, 0, 1])
    >>> best = TreeInference().map(p)
    >>> best.labels, best.score
    (array([0, 0, 0], dtype=int32), array([5.]))
    >>> TreeInference().marginals(p).parts.unary.round(2)
    array([0.47, 0.53, 0.49, 0.51, 0.93, 0.07])
    """

    def supports(self, structure: Structure) -> bool:
        return structure.is_forest

    def log_partition(self, potentials: Potentials) -> Floats:
        structure = potentials.structure
        if not structure.is_pairwise:
            return super().log_partition(potentials)
        self.require("log_partition", structure)
        out, done = np.empty(structure.n_examples), np.zeros(structure.n_examples, dtype=np.uint8)
        _kernels.tree_log_partition(*_edge_arrays(potentials), out, done)
        if not done.all():
            arrays = arrays_of(self._plan(structure), potentials)
            _kernels.clique_tree_log_partition(*arrays, done, out)
        return out

    def marginals(
        self, potentials: Potentials, weight: Floats | None = None, overwrite: bool = False
    ) -> Marginals:
        structure = potentials.structure
        if not structure.is_pairwise:
            return super().marginals(potentials, weight, overwrite)
        self.require("marginals", structure)
        log_z, done = np.empty(structure.n_examples), np.zeros(structure.n_examples, dtype=np.uint8)
        parts = potentials.zeros()
        of_parts = (parts.unary, parts.tables)
        _kernels.tree_marginals(*_edge_arrays(potentials), weight, log_z, done, *of_parts)
        if not done.all():
            arrays = arrays_of(self._plan(structure), potentials)
            _kernels.clique_tree_marginals(*arrays, True, done, weight, log_z, *of_parts)
        refuse_infeasible(log_z)
        return Marginals(log_z, parts)

    def map(self, potentials: Potentials) -> Decoded:
        structure = potentials.structure
        if not structure.is_pairwise:
            return super().map(potentials)
        self.require("map", structure)
        labels = np.zeros(structure.n_variables, dtype=np.int32)
        score = np.empty(structure.n_examples)
        _kernels.tree_best_labelling(*_edge_arrays(potentials), score, labels)
        refuse_infeasible(score)
        return Decoded(labels, score)

    def _plan(self, structure: Structure) -> Plan:
        return plan_of(structure, "min_weight")


_orders: WeakKeyDictionary[Structure, tuple[Ints, Ints]] = WeakKeyDictionary()


def _order_of(structure: Structure) -> tuple[Ints, Ints]:
    """Edges from the roots down, and the edge to each variable's parent; made once."""
    if structure not in _orders:
        order = np.empty(structure.n_cliques, dtype=np.int64)
        parent = np.empty(structure.n_variables, dtype=np.int64)
        _kernels.tree_plan(structure.scopes, *structure.cliques_of_variable, order, parent)
        _orders[structure] = order, parent
    return _orders[structure]


def _edge_arrays(potentials: Potentials) -> tuple[NDArray[Any], ...]:
    s = potentials.structure
    return (
        s.state_offsets,
        s.variable_offsets,
        s.clique_offsets,
        s.scopes,
        potentials.table_offsets,
        potentials.table_of_clique,
        *_order_of(s),
        potentials.unary,
        potentials.tables,
    )
