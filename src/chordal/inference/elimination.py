"""Exact inference on graphs that are too wide for a junction tree, compiled."""

from __future__ import annotations

from typing import ClassVar, final

from chordal._validate import check_choice
from chordal.inference._base import Pace
from chordal.inference._clique_tree import (
    MOST_CELLS,
    ORDERS,
    CliqueTreeInference,
    Plan,
    TreeSize,
    plan_beyond,
    plan_within,
    too_large,
)
from chordal.structures import Structure


@final
class EliminationInference(CliqueTreeInference):
    """The answers of the junction tree with one table at a time: less memory, more time.

    Variables are summed (or maximised) out clique by clique, and a table is freed once its message
    is computed. log Z needs memory for the largest table and the pending messages. Marginals,
    samples and the entropy need all messages, and compute each table a second time. `junction_tree`
    keeps all tables and answers all questions.

    Parameters
    ----------
    order : {"auto", "min_fill", "min_weight", "sweep", "search"}, default="search"
        As for `junction_tree`.

    References
    ----------
    Dechter (1999), Bucket elimination: a unifying framework for reasoning; Shafer and Shenoy
    (1990), Probability propagation.

    Examples
    --------
    >>> from chordal.potentials import Potentials
    >>> from chordal.structures import Grid
    >>> grid = Grid([(10, 200)], n_labels=2)
    >>> p = Potentials(grid, [0.0, 0.1] * 2000, tables=[1, 0, 0, 1])
    >>> method = EliminationInference(order="sweep")
    >>> method.map(p).score
    array([3990.])
    >>> [method.tree_size(grid, question).bytes for question in ("log_partition", "marginals")]
    [32768, 16023560]
    """

    answers: ClassVar[frozenset[str]] = frozenset(
        {"log_partition", "marginals", "map", "sample", "entropy"}
    )
    keeps_tables: ClassVar[bool] = False
    pace: ClassVar[Pace] = Pace.MINUTES  # the search for an order alone takes seconds

    def __init__(
        self,
        order: str = "search",
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(time_limit=time_limit, memory_limit=memory_limit)
        check_choice("order", order, ORDERS)
        self.order = order

    def supports(self, structure: Structure) -> bool:
        """Whether log Z fits into memory; other answers may need more: see `fits`."""
        return self.fits("log_partition", structure)

    def fits(self, question: str, structure: Structure) -> bool:
        """Whether the question fits into memory."""
        if question not in self.answers:
            return False
        plan = self._plan(structure)
        return (
            len(plan.stuck) == 0 and 8.0 * plan.cells_without_tables(question) <= self.memory_budget
        )

    def cost(self, structure: Structure, question: str) -> float:
        """As `junction_tree`, and all tables twice."""
        return 2.0 * MOST_CELLS

    def require(self, question: str, structure: Structure) -> None:
        """Raise an error for a structure that needs more than `memory_limit`."""
        if question in self.answers and not self.fits(question, structure):
            raise too_large(self.name, self.tree_size(structure, question), self.memory_budget)
        super().require(question, structure)

    def tree_size(self, structure: Structure, question: str = "log_partition") -> TreeSize:
        """The size of an answer; `cells` is the maximum at one time."""
        plan = plan_beyond(structure, self.order, self.memory_budget)
        size = plan.size(structure)
        if not size.complete:
            return size
        cells = int(plan.cells_without_tables(question))
        return size._replace(cells=cells, bytes=8 * cells)

    def _plan(self, structure: Structure) -> Plan:
        return plan_within(structure, self.order, self.memory_budget)
