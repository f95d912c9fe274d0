"""The best matching, as an assignment problem."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np

from chordal._errors import InfeasibleError, UnsupportedError
from chordal._limits import check_time
from chordal._optional import needed
from chordal.inference._answers import Decoded
from chordal.inference._base import Inference
from chordal.potentials import Floats, Potentials
from chordal.structures import Matching, Structure
from chordal.structures.matching import exclusion_table


@final
class MatchingInference(Inference):
    """The best matching of source and target items, exact, in cubic time.

    Each source item gets its own column for "no target" beside the targets; the rest is a linear
    assignment, solved by SciPy. Sums over all matchings are permanents, which have no efficient
    algorithm. So train with "perceptron" or "hinge", or for tiny examples with a method that lists
    labellings. Costs that are a sum over source items, such as "hamming", do not make it harder.

    References
    ----------
    Taskar, Lacoste-Julien and Klein (2005), A discriminative matching approach to word alignment;
    Crouse (2016), On implementing 2D rectangular assignment algorithms.

    Examples
    --------
    >>> from chordal.potentials import matching_potentials
    >>> scores = np.array([[2.0, 1.9], [1.5, -1.0]])  # of two source and two target items
    >>> best = MatchingInference().map(matching_potentials([scores], [[0.0, 0.0]]))
    >>> best.labels, best.score  # the first takes its second choice
    (array([1, 0], dtype=int32), array([3.4]))
    """

    answers: ClassVar[frozenset[str]] = frozenset({"map"})
    any_scores: ClassVar[bool] = False

    def supports(self, structure: Structure) -> bool:
        """Matchings."""
        return isinstance(structure, Matching)

    def exact_on(self, structure: Structure) -> bool:
        """Exact on every supported structure."""
        return self.supports(structure)

    def cost(self, structure: Structure, question: str) -> float:
        """Cubic in the number of items."""
        return 10.0  # below one look at all pairs of labels, but a call from Python per example

    def refusal_of(self, potentials: Potentials) -> str | None:
        """Why these tables are not those of a matching, or None."""
        s = potentials.structure
        if not isinstance(s, Matching) or _same_tables(potentials, s):
            return None
        for clique in range(s.n_cliques):
            table = potentials.table(clique)
            if not np.array_equal(table, exclusion_table(len(table) - 1)):
                return (
                    f"inference {self.name!r} forbids equal targets and scores no pairs of "
                    f"choices besides, and the table of clique {clique} does; use inference such "
                    "as 'milp' or 'exhaustive', or a cost that is a sum over variables"
                )
        return None

    def map(self, potentials: Potentials) -> Decoded:
        """The best assignment of each example."""
        structure = potentials.structure
        self.require("map", structure)
        refusal = self.refusal_of(potentials)
        if refusal is not None:
            raise UnsupportedError(refusal)
        labels = np.zeros(structure.n_variables, dtype=np.int32)
        for example in range(structure.n_examples):
            check_time()
            first, last = structure.variable_offsets[example : example + 2]
            if last > first:
                states = slice(*structure.state_offsets[[first, last]])
                scores = potentials.unary[states].reshape(last - first, -1)
                labels[first:last] = _assigned(scores, example)
        return Decoded(labels, potentials.score(labels))


def _assigned(scores: Floats, example: int) -> np.ndarray:
    """The best column of each row; any number of rows may take the last column."""
    with needed("scipy", "inference 'matching'"):
        from scipy.optimize import linear_sum_assignment

    n_target = scores.shape[1] - 1
    none = np.repeat(scores[:, -1:], len(scores), axis=1)
    try:
        _, column = linear_sum_assignment(np.hstack([scores[:, :-1], none]), maximize=True)
    except ValueError as error:
        if "infeasible" not in str(error):
            raise
        raise InfeasibleError(example) from None
    return np.minimum(column, n_target)


def _same_tables(potentials: Potentials, structure: Matching) -> bool:
    """Whether tables and tying are the structure's own, by a quick check."""
    return np.array_equal(potentials.table_of_clique, structure.table_of_clique) and np.array_equal(
        potentials.tables, structure.exclusion_tables
    )
