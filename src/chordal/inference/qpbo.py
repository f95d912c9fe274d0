"""Roof duality (QPBO): labels of an optimal labelling, by one minimum cut."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, final

import numpy as np

from chordal._limits import TimeLimitError, check_time
from chordal.inference._answers import Decoded, Relaxed
from chordal.inference._base import Inference, exact_for
from chordal.inference._cliques import at_most_pairs, require_finite_size
from chordal.inference._mirror import Mirrored
from chordal.inference.max_flow import MaxFlowInference
from chordal.inference.trw_s import ROUGH, TRWSInference
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure


@final
class QPBOInference(Inference):
    """Pairwise models with at most two labels and any scores.

    A cut of the model together with its mirror image solves the linear relaxation, whose variables
    are 0, 1 or undecided. The decided labels are *persistent*: some best labelling has them all.
    `map` keeps them and uses another method for the rest: an exact one if affordable, else `trw_s`.
    `gap` is 0 if the labelling is proved to be the best. If all edges are submodular, only ties
    stay undecided, as in `max_flow`; many strong edges of both kinds decide little.

    `relaxed_map` returns the value and a corner of the relaxation of `linear_program`, on graphs of
    any size.

    References
    ----------
    Boros and Hammer (2002), Pseudo-Boolean optimization; Kolmogorov and Rother (2007), Minimizing
    nonsubmodular functions with graph cuts, a review.

    Examples
    --------
    Neighbours in a square prefer equal labels, except on one edge:

    >>> from chordal.structures import Graph
    >>> square = Graph([4], [[(0, 1), (1, 2), (2, 3), (3, 0)]], n_labels=2)
    >>> like, unlike = [1, 0, 0, 1], [0, 1, 1, 0]
    >>> p = Potentials(square, [3, 0] + [0, 0] * 3, [like, like, like, unlike])
    >>> QPBOInference().relaxed_map(p).parts.unary.reshape(4, 2)[1:]  # all but the first undecided
    array([[0.5, 0.5],
           [0.5, 0.5],
           [0.5, 0.5]])
    >>> best = QPBOInference().map(p)
    >>> best.labels, best.score, best.gap
    (array([0, 0, 0, 0], dtype=int32), array([6.]), array([0.]))
    """

    answers: ClassVar[frozenset[str]] = frozenset({"map", "relaxed_map"})
    # Two labels: the relaxation is solved to its optimum by one cut, and what it decides is part of
    # a best labelling.
    quality: ClassVar[Mapping[str, int]] = {"map": 90, "relaxed_map": 90}

    #: The method for undecided labels if no exact one is affordable.
    _others: TRWSInference = TRWSInference()

    def in_training(self) -> QPBOInference:
        """The method with a coarser tolerance for undecided labels."""
        made = QPBOInference(time_limit=self.time_limit, memory_limit=self.memory_limit)
        made._others = TRWSInference(tol=ROUGH)
        return made

    def supports(self, structure: Structure) -> bool:
        """At most two labels, cliques of one or two variables."""
        return bool((structure.label_counts <= 2).all()) and at_most_pairs(structure)

    def exact_on(self, structure: Structure) -> bool:
        """Exact on forests."""
        return self.supports(structure) and structure.is_forest

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """The network of two models."""
        cells = 16.0 * structure.n_states + 100.0 * structure.n_cliques
        return cells + 128.0 * structure.n_variables + 112.0 * structure.n_cliques

    def relaxed_map(self, potentials: Potentials, weight: Floats | None = None) -> Relaxed:
        """The half-integral optimum of the relaxation."""
        self.require("relaxed_map", potentials.structure)
        if _submodular(potentials):
            best, parts = MaxFlowInference().map(potentials), potentials.zeros()
            parts.add_indicators(best.labels, 1.0, weight)
            return Relaxed(best.score, parts)
        mirrored, found = _cut(potentials)
        both = mirrored.potentials.zeros()
        both.add_indicators(found.labels, 1.0, weight)
        parts = potentials.zeros()
        mirrored.fold(both, parts)
        return Relaxed(0.5 * found.score, parts)

    def map(self, potentials: Potentials) -> Decoded:
        """Labels that the cut decides, and the rest by another method."""
        self.require("map", potentials.structure)
        if _submodular(potentials):
            best = MaxFlowInference().map(potentials)
            return best._replace(bound=best.score)
        mirrored, found = _cut(potentials)
        labels, others = mirrored.labels(found.labels)
        rest = potentials.given(labels, labels == others)
        best = self._best_of(rest)
        labels = np.where(labels == others, labels, best.labels)
        score = potentials.score(labels)
        with np.errstate(invalid="ignore"):  # −inf − −inf: `best` has found no labelling
            bound = np.fmin(0.5 * found.score, score + best.gap)
        return Decoded(labels, score, np.maximum(bound, score), best.convergence)

    def _best_of(self, rest: Potentials) -> Decoded:
        """The undecided labels, exactly if that is affordable and there is time."""
        try:
            exact = exact_for(rest, "map")
            if exact is not None:
                return exact.map(rest)
        except TimeLimitError:
            pass
        return self._others.map(rest)


def _submodular(potentials: Potentials) -> bool:
    """Whether the model is submodular: its own cut is half the work and decides all labels."""
    return MaxFlowInference().refusal_of(potentials) is None


def _cut(potentials: Potentials) -> tuple[Mirrored, Decoded]:
    """The model beside its image, and the best labels of both."""
    require_finite_size(potentials)
    mirrored = Mirrored.of(potentials)
    check_time()
    return mirrored, MaxFlowInference().map(mirrored.potentials)
