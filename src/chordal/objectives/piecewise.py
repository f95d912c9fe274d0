"""Piecewise training: each variable and each clique is normalised separately."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_weight
from chordal.inference import Inference
from chordal.objectives._base import Evaluation, Objective, linear_target
from chordal.potentials import Floats, Potentials, refuse_infeasible
from chordal.targets import Target, add_target, score_of

Ints = NDArray[np.int64]


@final
class Piecewise(Objective):
    """Σ over variables and cliques of log Σ exp of its scores, minus the score of the labels.

    Each variable and each clique is a separate model, so no inference is needed. The cost of a tied
    table does not depend on how many cliques share it. The product of the pieces' Z is at least the
    Z of the whole model, so this is an upper bound of −log p(y | x). When the pieces are combined,
    shared evidence counts several times: probabilities are overconfident, and labels are often
    worse than those of the pseudo-likelihood.

    References
    ----------
    Sutton and McCallum (2005), Piecewise training for undirected models.

    Examples
    --------
    >>> from chordal.inference.chain import ChainInference
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([2], n_labels=2), unary=[0, 0, 0, 0], tables=[1, 0, 0, 1])
    >>> values, parts = Piecewise().evaluate(p, [0, 0], ChainInference())
    >>> values.round(4), parts.tables.round(4)
    (array([2.3927]), array([-0.6345,  0.1345,  0.1345,  0.3655]))
    """

    targets: ClassVar[frozenset[str]] = frozenset({"hard", "soft"})
    convex: ClassVar[bool] = True
    smooth: ClassVar[bool] = True
    minus_gold: ClassVar[bool] = True
    curvature_needs: ClassVar[frozenset[str] | None] = frozenset()

    def evaluate(
        self,
        potentials: Potentials,
        labels: Target | None,
        inference: Inference,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Evaluation:
        """The sum of −log p over variables and cliques."""
        known = linear_target(self, labels)
        s, pieces = potentials.structure, _Pieces(potentials, weight)
        values = np.zeros(s.n_examples)
        np.add.at(values, pieces.example_of_variable, pieces.log_z_unary)
        np.add.at(values, pieces.example_of_clique, pieces.log_z_table[potentials.table_of_clique])
        refuse_infeasible(values)
        if known is not None:
            values -= score_of(potentials, known)
        parts = potentials.like(
            pieces.unary * np.repeat(pieces.weight_of_variable, s.label_counts),
            pieces.tables * pieces.spread(pieces.weight_of_table),
        )
        if known is not None:
            add_target(parts, known, scale=-1.0, weight=weight)
        return Evaluation(values if weight is None else weight * values, parts)

    def curvature(
        self,
        potentials: Potentials,
        labels: Target | None,
        inference: Inference,
        direction: Potentials,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Potentials:
        """The directional derivative of the parts."""
        s, pieces = potentials.structure, _Pieces(potentials, weight)
        mean = _sums(pieces.unary * direction.unary, s.state_offsets)
        unary = pieces.unary * (direction.unary - np.repeat(mean, s.label_counts))
        mean = _sums(pieces.tables * direction.tables, potentials.table_offsets)
        tables = pieces.tables * (direction.tables - pieces.spread(mean))
        return potentials.like(
            unary * np.repeat(pieces.weight_of_variable, s.label_counts),
            tables * pieces.spread(pieces.weight_of_table),
        )


class _Pieces:
    """Probabilities and log Z of each variable and of each table."""

    def __init__(self, potentials: Potentials, weight: Floats | None) -> None:
        check_weight(weight, potentials.structure.n_examples)
        s, offsets = potentials.structure, potentials.table_offsets
        self._cells = np.diff(offsets)
        self.unary, self.log_z_unary = _softmax(potentials.unary, s.state_offsets)
        self.tables, self.log_z_table = _softmax(potentials.tables, offsets)
        self.example_of_variable = _owner(s.variable_offsets)
        self.example_of_clique = _owner(s.clique_offsets)
        each = np.ones(s.n_examples) if weight is None else weight
        self.weight_of_variable = each[self.example_of_variable]
        self.weight_of_table = _counted(potentials, each[self.example_of_clique])

    def spread(self, of_table: Floats) -> Floats:
        """A number of each table, for each of its cells."""
        return np.repeat(of_table, self._cells)


def _counted(potentials: Potentials, of_clique: Floats) -> Floats:
    """The sum over each table's cliques."""
    n_tables = len(potentials.table_offsets) - 1
    return np.bincount(potentials.table_of_clique, of_clique, n_tables).astype(np.float64)


def _owner(offsets: Ints) -> Ints:
    """The example of each of the things between its limits."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _sums(values: Floats, offsets: Ints) -> Floats:
    """Sums between the limits; each has one value at least."""
    if len(offsets) == 1:
        return np.zeros(0)
    return np.asarray(np.add.reduceat(values, offsets[:-1]))


def _softmax(scores: Floats, offsets: Ints) -> tuple[Floats, Floats]:
    """exp(score − log Z) between the limits, and log Z: −inf where all scores are."""
    if len(offsets) == 1:
        return np.zeros(0), np.zeros(0)
    counts = np.diff(offsets)
    highest = np.maximum.reduceat(scores, offsets[:-1])
    shift = np.where(highest > -np.inf, highest, 0.0)
    p = np.exp(scores - np.repeat(shift, counts))
    total = _sums(p, offsets)
    with np.errstate(divide="ignore"):
        log_z = shift + np.log(total)
    return p / np.repeat(np.where(total > 0.0, total, 1.0), counts), log_z
