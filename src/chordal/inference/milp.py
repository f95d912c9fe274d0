"""MAP of any small model by mixed-integer linear programming (HiGHS)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, final

import numpy as np

from chordal._errors import InfeasibleError
from chordal._limits import TimeLimitError, check_time
from chordal._optional import needed
from chordal._status import Status
from chordal._validate import check_number
from chordal.inference._answers import Convergence, Decoded
from chordal.inference._base import Inference
from chordal.inference._highs import solved
from chordal.inference._moves import quick_start
from chordal.inference._polytope import Polytope, n_columns, program_memory, refuse_large
from chordal.potentials import Potentials
from chordal.structures import Structure

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

_OPTIMAL, _LIMIT, _INFEASIBLE = 0, 1, 2


@final
class MILPInference(Inference):
    """The best labelling with a proof, by branch and cut over the local polytope.

    It is the program of `linear_program` with integer variables. It supports any structure, clique
    order and hard constraints, and treewidth does not matter; the tightness of the relaxation does.
    Use it for MAP if the junction tree is too wide. Large loopy models with mixed scores may never
    finish: set `time_limit`.

    Parameters
    ----------
    max_columns : int, default=500_000
        Maximum number of labels and table cells of an example; more are an error.
    time_limit : float, optional
        Seconds for each answer. At the limit, `map` returns the best labelling so far, which no
        tree can improve, and the proved bound.

    Notes
    -----
    Branches that could gain less than 10⁻⁶ are not searched.

    References
    ----------
    Huangfu and Hall (2018), Parallelizing the dual revised simplex method.

    Examples
    --------
    >>> from chordal.structures import Graph
    >>> loop = Graph([3], [[(0, 1), (1, 2), (2, 0)]], n_labels=2)
    >>> p = Potentials(loop, unary=[0, 1, 0, 0, 0, 0], tables=[0.0, 1.0, 1.0, 0.0])
    >>> best = MILPInference().map(p)
    >>> best.score, best.gap
    (array([3.]), array([0.]))
    """

    answers: ClassVar[frozenset[str]] = frozenset({"map"})
    anytime: ClassVar[bool] = True

    def __init__(
        self,
        max_columns: int = 500_000,
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
        """Exact without a time limit."""
        return self.time_limit is None and self.supports(structure)

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """The program of the largest example."""
        return program_memory(structure)

    def require(self, question: str, structure: Structure) -> None:
        """Raise an error for programs that are too large."""
        if question in self.answers:
            refuse_large(self.name, structure, self.max_columns)
        super().require(question, structure)

    def map(self, potentials: Potentials) -> Decoded:
        """The best labelling, by branch and bound."""
        s = potentials.structure
        self.require("map", s)
        labels = np.zeros(s.n_variables, dtype=np.int32)
        bound = potentials.bound()
        found = np.ones(s.n_examples, dtype=bool)
        in_time = np.ones(s.n_examples, dtype=bool)
        n_nodes = 0
        for example in range(s.n_examples):
            try:
                check_time()
                polytope = Polytope(potentials, example)
                result = self._solved(polytope, example)
            except TimeLimitError:
                found[example] = in_time[example] = False
                continue
            if result is None:
                continue
            in_time[example] = result.status == _OPTIMAL
            n_nodes = max(n_nodes, int(result.mip_node_count or 0))
            if result.mip_dual_bound is not None:
                proved = polytope.shift - polytope.unit * result.mip_dual_bound
                bound[example] = min(bound[example], proved)
            found[example] = result.x is not None
            if found[example]:
                variables = slice(*s.variable_offsets[example : example + 2])
                labels[variables] = _labels(s, variables, result.x[: polytope.n_states])
        score = np.where(found, potentials.score(labels), -np.inf)
        if not in_time.all():
            start = quick_start(potentials)
            better = ~in_time & (start.score > score)
            labels = np.where(np.repeat(better, np.diff(s.variable_offsets)), start.labels, labels)
            score = np.where(better, start.score, score)
        # What is optimal within HiGHS's tolerances has its own score as bound.
        bound = np.where(in_time, score, np.maximum(bound, score))
        status = Status.CONVERGED if in_time.all() else Status.MAX_TIME
        gap = float((bound - score).max(initial=0.0))
        return Decoded(labels, score, bound, Convergence(status, n_nodes, gap))

    def _solved(self, polytope: Polytope, example: int) -> OptimizeResult | None:
        """The result of HiGHS, or None if there is nothing to choose."""
        with needed("scipy", "inference 'milp'"):
            from scipy.optimize import Bounds, LinearConstraint

        if polytope.is_empty:
            raise InfeasibleError(example)
        if len(polytope.scores) == 0:
            return None
        whole = np.zeros(len(polytope.scores), dtype=np.uint8)
        whole[: polytope.n_states] = 1
        program = {
            "c": -polytope.scores / polytope.unit,
            "integrality": whole,
            "bounds": Bounds(0.0, polytope.allowed.astype(np.float64)),
            "constraints": LinearConstraint(polytope.matrix, polytope.right, polytope.right),
        }
        result = solved("milp", program, {"mip_rel_gap": 0.0})
        if result.status == _INFEASIBLE:
            raise InfeasibleError(example)
        if result.status not in (_OPTIMAL, _LIMIT):
            raise RuntimeError(f"the program of example {example}: {result.message}")
        return result


def _labels(structure: Structure, variables: slice, x: np.ndarray) -> np.ndarray:
    """The label of each variable whose column is one."""
    offsets = structure.state_offsets[variables.start : variables.stop + 1]
    offsets = offsets - offsets[0]
    chosen = np.flatnonzero(x > 0.5)
    labels = np.zeros(len(offsets) - 1, dtype=np.int32)
    owner = np.searchsorted(offsets, chosen, side="right") - 1
    labels[owner] = chosen - offsets[owner]
    return labels
