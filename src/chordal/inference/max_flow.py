"""Minimum cuts: the best labelling of submodular models with two labels."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from chordal import _kernels
from chordal._errors import UnsupportedError
from chordal.inference._answers import Decoded, Labels
from chordal.inference._base import Inference
from chordal.inference._cliques import at_most_pairs, require_finite_size
from chordal.potentials import Floats, Potentials, refuse_infeasible
from chordal.structures import Structure


@final
class MaxFlowInference(Inference):
    """The best labelling of pairwise models with at most two labels, by maximum flow.

    It is exact, and fast enough for images of millions of pixels, if every edge is *submodular*.
    That means that equal labels score, in sum, at least as much as different ones (s₀₀ + s₁₁ ≥ s₀₁
    + s₁₀). Other scores are an error that names the first edge; `alpha_beta_swap` and `trw_s`
    support them. Edges at a variable with one allowed label may have any scores. Among equally good
    labellings it returns the one with most labels 0.

    References
    ----------
    Boykov and Kolmogorov (2004), An experimental comparison of min-cut/max-flow algorithms for
    energy minimization in vision; Kolmogorov and Zabih (2004), What energy functions can be
    minimized via graph cuts?

    Examples
    --------
    >>> from chordal.structures import Grid
    >>> pixels = [[2, 0], [0, 1], [2, 0], [0, 3], [0, 3], [0, 3]]  # scores of labels 0 and 1
    >>> p = Potentials(Grid([(2, 3)], n_labels=2), pixels, tables=[1, 0, 0, 1])
    >>> best = MaxFlowInference().map(p)
    >>> best.labels.reshape(2, 3), best.score
    (array([[0, 0, 0],
           [1, 1, 1]], dtype=int32), array([17.]))
    """

    answers: ClassVar[frozenset[str]] = frozenset({"map"})
    any_scores: ClassVar[bool] = False

    def supports(self, structure: Structure) -> bool:
        """Structures with at most two labels and cliques of at most two variables."""
        few = bool((structure.label_counts <= 2).all())
        return few and at_most_pairs(structure)

    def exact_on(self, structure: Structure) -> bool:
        """Exact on every supported structure."""
        return self.supports(structure)

    def cost(self, structure: Structure, question: str) -> float:
        """About 100 passes over all table cells, on images."""
        return 100.0

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """A network with two arcs per edge."""
        return 64.0 * structure.n_variables + 56.0 * structure.n_cliques

    def refusal_of(self, potentials: Potentials) -> str | None:
        """Which clique is not submodular, or None."""
        clique = self._solve(potentials, np.zeros(0, dtype=np.int32), np.zeros(0))
        return None if clique < 0 else self._not_submodular(potentials, clique)

    def map(self, potentials: Potentials) -> Decoded:
        """The best labelling, as a minimal cut."""
        structure = potentials.structure
        self.require("map", structure)
        require_finite_size(potentials)
        labels = np.zeros(structure.n_variables, dtype=np.int32)
        feasible = np.zeros(structure.n_examples)
        clique = self._solve(potentials, labels, feasible)
        if clique >= 0:
            raise UnsupportedError(self._not_submodular(potentials, clique))
        refuse_infeasible(feasible)
        return Decoded(labels, potentials.score(labels))

    def _solve(self, potentials: Potentials, labels: Labels, feasible: Floats) -> int:
        return _kernels.max_flow_labels(potentials.scores, labels, feasible)

    def _not_submodular(self, potentials: Potentials, clique: int) -> str:
        s = potentials.structure
        example = int(np.searchsorted(s.clique_offsets, clique, side="right")) - 1
        i, j = s.scope(clique) - s.variable_offsets[example]
        (a, b), (c, d) = potentials.table(clique)
        return (
            f"inference {self.name!r} needs submodular scores, but edge "
            f"{clique - s.clique_offsets[example]} of example {example}, between variables {i} and "
            f"{j}, prefers different labels: {b:g} + {c:g} is more than {a:g} + {d:g}; use "
            "'alpha_beta_swap', or an exact method"
        )
