"""Exact inference on trees and forests by two passes of messages, compiled."""

from __future__ import annotations

from typing import final
from weakref import WeakKeyDictionary

import numpy as np

from chordal import _kernels
from chordal.inference._answers import Decoded, Marginals
from chordal.inference._clique_tree import CliqueTreeInference, Plan, plan_of
from chordal.potentials import Floats, Potentials, refuse_infeasible
from chordal.structures import Structure, offsets_of


@final
class TreeInference(CliqueTreeInference):
    """Belief propagation from the leaves to a root and back: linear in the number of cliques.

    It works if variables and cliques form no loop (`Structure.is_forest`), with cliques of any
    order. Examples may be disconnected. For graphs with loops use `junction_tree`, or `loopy_bp` if
    that needs too much memory.

    Sums over pairs run in scaled probabilities if the range of scores allows it, else in log space,
    example by example.

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
        """Forests."""
        return structure.is_forest

    def cost(self, structure: Structure, question: str) -> float:
        """One pass over all table cells."""
        return 1.0

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """Messages in both directions, and the requested labels."""
        return 16.0 * structure.n_states + 12.0 * structure.n_variables * n

    def log_partition(self, potentials: Potentials) -> Floats:
        """log Z, by messages to the roots."""
        structure = potentials.structure
        if not structure.is_pairwise:
            return super().log_partition(potentials)
        self.require("log_partition", structure)
        out, done = np.empty(structure.n_examples), np.zeros(structure.n_examples, dtype=np.uint8)
        scores = potentials.scores
        _kernels.tree_log_partition(scores, _order_of(structure), out, done)
        if not done.all():
            tree = self._plan(structure).tree
            _kernels.clique_tree_log_partition(scores, tree, done, out)
        return out

    def marginals(
        self, potentials: Potentials, weight: Floats | None = None, overwrite: bool = False
    ) -> Marginals:
        """Marginals, by messages to the roots and back."""
        structure = potentials.structure
        if not structure.is_pairwise:
            return super().marginals(potentials, weight, overwrite)
        self.require("marginals", structure)
        log_z, done = np.empty(structure.n_examples), np.zeros(structure.n_examples, dtype=np.uint8)
        parts, scores = potentials.zeros(), potentials.scores
        _kernels.tree_marginals(
            scores,
            _order_of(structure),
            parts.writable,
            done,
            weight=weight,
            log_partition=log_z,
        )
        if not done.all():
            tree = self._plan(structure).tree
            _kernels.clique_tree_marginals(
                scores, tree, parts.writable, True, done, weight=weight, log_partition=log_z
            )
        refuse_infeasible(log_z)
        return Marginals(log_z, parts)

    def map(self, potentials: Potentials) -> Decoded:
        """The best labelling, by messages to the roots and back-tracking."""
        structure = potentials.structure
        if not structure.is_pairwise:
            return super().map(potentials)
        self.require("map", structure)
        labels = np.zeros(structure.n_variables, dtype=np.int32)
        score = np.empty(structure.n_examples)
        _kernels.tree_best_labelling(potentials.scores, _order_of(structure), score, labels)
        refuse_infeasible(score)
        return Decoded(labels, score)

    def _plan(self, structure: Structure) -> Plan:
        return _plan_of(structure) if structure.is_pairwise else plan_of(structure, "min_weight")


_orders: WeakKeyDictionary[Structure, _kernels.TreePlan] = WeakKeyDictionary()


def _order_of(structure: Structure) -> _kernels.TreePlan:
    """Edges from the roots down, and the edge to each variable's parent; cached."""
    if structure not in _orders:
        _orders[structure] = _kernels.TreePlan(structure.topology, structure.incidence)
    return _orders[structure]


_plans: WeakKeyDictionary[Structure, Plan] = WeakKeyDictionary()


def _plan_of(structure: Structure) -> Plan:
    """The clique tree of a forest of edges: a cluster for every variable, with its parent.

    It takes linear time, even if a variable has many neighbours, and is cached.
    """
    if structure not in _plans:
        order, parent_edge = _order_of(structure).order, _order_of(structure).parent_edge
        ends, inner = structure.scopes.reshape(-1, 2), np.flatnonzero(parent_edge >= 0)
        parent = np.full(structure.n_variables, -1)
        parent[inner] = ends[parent_edge[inner]].sum(axis=1) - inner
        rank = np.full(structure.n_variables, -1)  # −1 for roots, which come last
        rank[inner] = np.argsort(order)[parent_edge[inner]]
        example = np.repeat(np.arange(structure.n_examples), np.diff(structure.variable_offsets))
        heads = np.lexsort((-rank, example))
        number = np.argsort(heads)
        up, has_parent = parent[heads], parent[heads] >= 0
        above = np.where(has_parent, number[up], -1)
        members = np.column_stack([heads, up])
        tree = _kernels.CliqueTree(
            cluster_offsets=structure.variable_offsets,
            member_offsets=offsets_of(1 + has_parent),
            members=members[members >= 0],
            residual=np.ones(len(heads), dtype=np.int64),
            parent=above,
            factor_offsets=offsets_of(has_parent),
            factors=parent_edge[heads][has_parent],
        )
        _plans[structure] = Plan(tree)  # how much memory it takes is not asked: it is linear
    return _plans[structure]
