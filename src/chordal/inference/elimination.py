"""Exact log Z and best labelling by variable elimination, compiled."""

from __future__ import annotations

from typing import ClassVar, final

from chordal._validate import check_choice, check_number
from chordal.inference._base import Decoded, Inference
from chordal.inference._clique_tree import (
    RULES,
    Cost,
    Plan,
    best_labelling,
    limit_of,
    log_partition,
    plan_of,
    too_large,
)
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure


@final
class EliminationInference(Inference):
    """log Z and the best labelling of graphs that are too wide for a whole junction tree.

    Variables are summed (or maximised) out one clique after the other, and a clique's table is
    given up as soon as its message is there. Memory holds the largest table and the messages on
    their way, instead of all tables as in `junction_tree`, which answers everything else too.

    Parameters
    ----------
    order : {"auto", "min_fill", "min_weight", "sweep"}
        As for `junction_tree`.
    max_bytes : float
        Refuse structures with an example that needs more memory than this at one time.

    References
    ----------
    Dechter (1999), Bucket elimination: a unifying framework for reasoning.

    Examples
    --------
    >>> from chordal.structures import Grid
    >>> grid = Grid([(10, 200)], n_labels=2)
    >>> p = Potentials(grid, [0.0, 0.1] * 2000, tables=[1, 0, 0, 1])
    >>> EliminationInference().map(p).score
    array([3990.])
    """

    answers: ClassVar[frozenset[str]] = frozenset({"log_partition", "map"})

    def __init__(self, order: str = "auto", max_bytes: float = 1e9) -> None:
        check_choice("order", order, ["auto", *RULES])
        check_number("max_bytes", max_bytes, strict=True)
        self.order = order
        self.max_bytes = max_bytes

    def supports(self, structure: Structure) -> bool:
        plan = self._plan(structure)
        return len(plan.stuck) == 0 and 8.0 * plan.streamed.max(initial=0.0) <= self.max_bytes

    def exact_on(self, structure: Structure) -> bool:
        return self.supports(structure)

    def require(self, question: str, structure: Structure) -> None:
        if question in self.answers and not self.supports(structure):
            raise too_large(self.name, self.cost(structure), self.max_bytes)
        super().require(question, structure)

    def cost(self, structure: Structure) -> Cost:
        """What inference on the structure takes; `cells` are those needed at one time."""
        plan = self._plan(structure)
        plan = plan_of(structure, self.order) if len(plan.stuck) else plan
        cost = plan.cost(structure)
        if not cost.complete:
            return cost
        cells = int(plan.streamed.max(initial=0.0))
        return cost._replace(cells=cells, bytes=8 * cells)

    def log_partition(self, potentials: Potentials) -> Floats:
        self.require("log_partition", potentials.structure)
        return log_partition(self._plan(potentials.structure), potentials)

    def map(self, potentials: Potentials) -> Decoded:
        self.require("map", potentials.structure)
        return best_labelling(self._plan(potentials.structure), potentials)

    def _plan(self, structure: Structure) -> Plan:
        return plan_of(structure, self.order, limit_of(self.max_bytes))

    def __repr__(self) -> str:
        return f"EliminationInference(order={self.order!r}, max_bytes={self.max_bytes:g})"
