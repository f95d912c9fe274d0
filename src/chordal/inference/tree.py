"""Exact inference on trees and forests by two passes of messages, compiled."""

from __future__ import annotations

from typing import final

from chordal.inference._clique_tree import CliqueTreeInference, Plan, plan_of
from chordal.structures import Structure


@final
class TreeInference(CliqueTreeInference):
    """Belief propagation from the leaves to a root and back: linear in the number of cliques.

    It works wherever variables and cliques form no loop (`Structure.is_forest`), with cliques of
    any order. Examples may fall apart into pieces. A graph with loops is for `junction_tree`, or for
    `loopy_bp` where that needs too much memory.

    References
    ----------
    Pearl (1988), Probabilistic reasoning in intelligent systems; Kschischang, Frey and Loeliger
    (2001), Factor graphs and the sum-product algorithm.

    Examples
    --------
    >>> from chordal.potentials import Potentials
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

    def _plan(self, structure: Structure) -> Plan:
        return plan_of(structure, "min_weight")
