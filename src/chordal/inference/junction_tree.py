"""Exact inference on graphs of low treewidth by a junction tree, compiled."""

from __future__ import annotations

from typing import final

from chordal._validate import check_choice
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
from chordal.inference.elimination import EliminationInference
from chordal.structures import Structure


@final
class JunctionTreeInference(CliqueTreeInference):
    """Exact on any graph whose clique tree fits into memory.

    An elimination order makes the graph chordal. Its maximal cliques, joined to a tree, each get a
    table. Messages along the tree give log Z, all marginals, the best labellings, samples and the
    entropy. Time and memory grow with the tables: exponentially in the treewidth, linearly in the
    rest. `tree_size` predicts them, and a structure beyond `memory_limit` is an error. The tree is
    planned once per structure and kept with it. Variables with a single label cost nothing.

    `elimination` handles wider graphs with the same memory: it holds one table at a time, and
    computes it twice. The derivative of marginals needs twice the predicted memory.

    Parameters
    ----------
    order : {"auto", "min_fill", "min_weight", "sweep", "search"}, default="auto"
        How the next variable to eliminate is chosen. "min_fill": the one that adds the fewest
        edges. "min_weight": the one with the smallest table. "sweep": from one end of the graph to
        the other, by the smallest table next to eliminated variables. "auto" tries these and
        randomised variants, as long as that costs less than using the tree once, and takes the
        cheapest tree. "search" tries longer, up to some seconds, even if every tree so far exceeds
        `memory_limit`.

    References
    ----------
    Lauritzen and Spiegelhalter (1988), Local computations with probabilities on graphical
    structures and their application to expert systems.

    Examples
    --------
    >>> from chordal.potentials import Potentials
    >>> from chordal.structures import Grid
    >>> grid = Grid([(3, 50)], n_labels=2)
    >>> method = JunctionTreeInference()
    >>> method.tree_size(grid).treewidth
    3
    >>> p = Potentials(grid, [0.0, 0.1] * 150, tables=[1, 0, 0, 1])
    >>> method.log_partition(p).round(4)
    array([272.8788])
    """

    def __init__(
        self,
        order: str = "auto",
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(time_limit=time_limit, memory_limit=memory_limit)
        check_choice("order", order, ORDERS)
        self.order = order

    def supports(self, structure: Structure) -> bool:
        """Structures whose tables of clusters fit into `memory_limit`."""
        plan = self._plan(structure)
        return len(plan.stuck) == 0 and 8.0 * plan.most_cells <= self.memory_budget

    def cost(self, structure: Structure, question: str) -> float:
        """Exponential in the treewidth, within the memory limit."""
        return MOST_CELLS

    def require(self, question: str, structure: Structure) -> None:
        """Raise an error for a structure that needs too much memory; it says if 'elimination'
        fits.
        """
        if question in self.answers and not self.supports(structure):
            lean = self._fits_without_tables(question, structure)
            hint = ". 'elimination' answers this question within the same memory" if lean else ""
            raise too_large(self.name, self.tree_size(structure), self.memory_budget, hint)
        super().require(question, structure)

    def tree_size(self, structure: Structure) -> TreeSize:
        """The size of the clique tree, without inference."""
        return plan_beyond(structure, self.order, self.memory_budget).size(structure)

    def _fits_without_tables(self, question: str, structure: Structure) -> bool:
        if question not in EliminationInference.answers:
            return False
        plan = self._plan(structure)
        return (
            len(plan.stuck) == 0 and 8.0 * plan.cells_without_tables(question) <= self.memory_budget
        )

    def _plan(self, structure: Structure) -> Plan:
        return plan_within(structure, self.order, self.memory_budget)
