"""The linear programming relaxation of MAP, solved by HiGHS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, final

import numpy as np

from chordal._errors import InfeasibleError
from chordal._limits import TimeLimitError, check_time
from chordal._validate import check_number
from chordal.inference._answers import Decoded, Relaxed
from chordal.inference._base import Inference
from chordal.inference._highs import solved
from chordal.inference._moves import improved_by_trees, quick_start
from chordal.inference._polytope import Polytope, n_columns, program_memory, refuse_large, rounded
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure

_SOLVED, _LIMIT, _INFEASIBLE = 0, 1, 2


@final
class LinearProgramInference(Inference):
    """The best locally consistent distributions of clique labels.

    They form a polytope whose corners include all labellings; on a forest there are no other
    corners. Elsewhere the best corner may be fractional. Its value is then an upper bound of all
    scores, and `map` returns a labelling near it with this bound. If bound and score agree, the
    labelling is proved to be the best. Cliques may have any order. For more than about 100,000
    columns, `ad3` solves the same relaxation faster and less precisely.

    Parameters
    ----------
    max_columns : int, default=1_000_000
        Maximum number of labels and table cells of an example; more are an error.
    time_limit : float, optional
        Seconds for each answer. At the limit, `map` returns a labelling that no tree improves and a
        rough bound; `relaxed_map` raises `TimeLimitError`.

    References
    ----------
    Schlesinger (1976), Syntactic analysis of two-dimensional visual signals in noisy conditions.
    Wainwright, Jaakkola and Willsky (2005), MAP estimation via agreement on trees.

    Examples
    --------
    Three neighbours prefer to differ, with two labels: the relaxation chooses halves.

    >>> from chordal.structures import Graph
    >>> loop = Graph([3], [[(0, 1), (1, 2), (2, 0)]], n_labels=2)
    >>> p = Potentials(loop, unary=np.zeros(6), tables=[0.0, 1.0, 1.0, 0.0])
    >>> relaxed = LinearProgramInference().relaxed_map(p)
    >>> relaxed.value, relaxed.parts.unary[:2]
    (array([3.]), array([0.5, 0.5]))
    >>> best = LinearProgramInference().map(p)
    >>> best.score, best.gap
    (array([2.]), array([1.]))
    """

    answers: ClassVar[frozenset[str]] = frozenset({"map", "relaxed_map"})
    # The relaxation of `ad3` to more digits, in more time and memory.
    quality: ClassVar[Mapping[str, int]] = {"map": 60, "relaxed_map": 60}
    anytime: ClassVar[bool] = True

    def __init__(
        self,
        max_columns: int = 1_000_000,
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(time_limit=time_limit, memory_limit=memory_limit)
        check_number("max_columns", max_columns, minimum=1, integer=True)
        self.max_columns = max_columns

    def supports(self, structure: Structure) -> bool:
        """Structures whose programs have at most `max_columns` columns."""
        return bool((n_columns(structure) <= self.max_columns).all())

    def exact_on(self, structure: Structure) -> bool:
        """Exact on forests, where the relaxation is tight."""
        return structure.is_forest and self.supports(structure)

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """The program of the largest example."""
        return program_memory(structure)

    def require(self, question: str, structure: Structure) -> None:
        """Raise an error for programs that are too large."""
        if question in self.answers:
            refuse_large(self.name, structure, self.max_columns)
        super().require(question, structure)

    def relaxed_map(self, potentials: Potentials, weight: Floats | None = None) -> Relaxed:
        """The optimum of the linear program."""
        self.require("relaxed_map", potentials.structure)
        parts = potentials.zeros()
        value = np.zeros(potentials.structure.n_examples)
        for example in range(len(value)):
            check_time()
            polytope = Polytope(potentials, example)
            x, value[example] = _solved(polytope, example)
            scale = 1.0 if weight is None else weight[example]
            parts.unary[polytope.states] = scale * x[: polytope.n_states]
            np.add.at(parts.tables, polytope.cells, scale * x[polytope.n_states :])
        return Relaxed(value, parts)

    def map(self, potentials: Potentials) -> Decoded:
        """The optimum of the linear program, rounded."""
        self.require("map", potentials.structure)
        try:
            relaxed = self.relaxed_map(potentials)
        except TimeLimitError:
            return quick_start(potentials)
        labels = rounded(potentials, relaxed.parts.unary)
        score = potentials.score(labels)
        best = Decoded(labels, score, np.maximum(relaxed.value, score))
        return improved_by_trees(potentials, best)


def _solved(polytope: Polytope, example: int) -> tuple[Floats, float]:
    """The best corner, and the bound proved by its multipliers."""
    if polytope.is_empty:
        raise InfeasibleError(example)
    if len(polytope.scores) == 0:
        return polytope.scores, 0.0
    program = {
        "c": -polytope.scores / polytope.unit,
        "A_eq": polytope.matrix,
        "b_eq": polytope.right,
        "bounds": np.stack([np.zeros(len(polytope.allowed)), polytope.allowed], axis=1),
        "method": "highs-ds",  # simplex: a corner
    }
    found = solved("linprog", program, {})
    if found.status == _LIMIT:
        raise TimeLimitError("the time limit is over")
    if found.status == _INFEASIBLE:
        raise InfeasibleError(example)
    if found.status != _SOLVED:
        raise RuntimeError(f"the linear program of example {example}: {found.message}")
    x = np.where(polytope.allowed, np.clip(found.x, 0.0, 1.0), 0.0)
    return x, polytope.bound_by(-polytope.unit * found.eqlin.marginals)
