"""Clique trees: planned once per structure, and message passing on them."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from chordal import _kernels
from chordal._errors import UnsupportedError
from chordal._memory import AUTO_LIMIT, size_of
from chordal.inference._answers import Decoded, Labels, Marginals, Ranked
from chordal.inference._base import Inference
from chordal.potentials import Floats, Potentials, refuse_infeasible, refuse_other_shape
from chordal.structures import Ints, Structure

UNIFORMS = 2_000_000  # drawn at a time when sampling
ORDERS = ("min_fill", "min_weight", "sweep", "auto", "search")  # as the kernel numbers them
#: The work that planning may spend on a variable in `auto`, in cells.
MOST_CELLS = AUTO_LIMIT / 8
#: Tables above this size (log2 of cells) are not considered.
FARTHEST = 60.0


class TreeSize(NamedTuple):
    """The size of a clique tree, in the largest example.

    treewidth : int, number of variables of the largest clique minus one; variables with one label
    do not count
    largest : int, number of cells of its table
    cells : int, number of cells of all tables and messages
    bytes : int, their memory
    clique : tuple of int, the variables of the largest clique, by their number in the batch
    complete : bool, False if the search stopped at a clique that is too large: then all numbers are
    those of this clique, and the whole tree needs more
    """

    treewidth: int
    largest: int
    cells: int
    bytes: int
    clique: tuple[int, ...]
    complete: bool


@dataclass(frozen=True, eq=False)
class Plan:
    """A clique tree of every example, or the clique that was too large (`stuck`)."""

    tree: _kernels.CliqueTree

    @property
    def stuck(self) -> Ints:
        """The variables of the clique that was too large; empty if there is none."""
        return self.tree.stuck

    @property
    def most_cells(self) -> float:
        """Number of cells, in the largest example."""
        return float(self.tree.cells.max(initial=0.0))

    def cells_without_tables(self, question: str) -> float:
        """Number of cells if tables are made one at a time, in the largest example."""
        tree = self.tree
        if question == "log_partition":
            needed = tree.streamed
        elif question == "map":  # the best rows take four bytes a column
            needed = tree.streamed + np.ceil(tree.messages / 2.0)
        else:
            needed = tree.messages + tree.largest
        return float(needed.max(initial=0.0))

    @property
    def n_clusters(self) -> int:
        """Number of clusters of all examples."""
        return len(self.tree)

    def size(self, structure: Structure) -> TreeSize:
        """The size, in the largest example."""
        if len(self.stuck):
            size = math.prod(structure.label_counts[self.stuck].tolist())
            clique = tuple(sorted(self.stuck.tolist()))
            return TreeSize(len(clique) - 1, size, size, 8 * size, clique, False)
        offsets, members = self.tree.member_offsets, self.tree.members
        cells = int(self.most_cells)
        if len(members) == 0:
            return TreeSize(0, 0, cells, 8 * cells, (), True)
        counts = structure.label_counts[members]
        log_size = np.add.reduceat(np.log2(counts), offsets[:-1])
        orders = np.add.reduceat(counts > 1, offsets[:-1], dtype=np.int64)
        k = int(np.argmax(log_size))
        in_it = members[offsets[k] : offsets[k + 1]]
        largest = math.prod(structure.label_counts[in_it].tolist())
        width = max(0, int(orders.max()) - 1)
        return TreeSize(width, largest, cells, 8 * cells, tuple(sorted(in_it.tolist())), True)


_plans: WeakKeyDictionary[Structure, dict[tuple[str, float], Plan]] = WeakKeyDictionary()


def plan_of(structure: Structure, order: str, limit: float = FARTHEST) -> Plan:
    """The clique tree of a structure, planned in the first call and kept with the structure.

    order : one of ORDERS
    limit : give up at a table of more than 2^limit cells
    """
    kept = _plans.setdefault(structure, {})
    for (its_order, its_limit), plan in kept.items():
        if its_order == order and its_limit <= limit and len(plan.stuck) == 0:
            return plan  # found within a smaller limit
    if (order, limit) not in kept:
        tree = _kernels.clique_tree_plan(structure.topology, ORDERS.index(order), limit)
        kept[order, limit] = Plan(tree)
    return kept[order, limit]


def plan_within(structure: Structure, order: str, n_bytes: float) -> Plan:
    """The clique tree, if its largest table fits into memory."""
    return plan_of(structure, order, limit_of(n_bytes))


def plan_beyond(structure: Structure, order: str, n_bytes: float) -> Plan:
    """The same; if memory is too small, a tree that tells how much is needed."""
    plan = plan_within(structure, order, n_bytes)
    if len(plan.stuck) == 0:
        return plan
    return plan_of(structure, "auto" if order == "search" else order)


def limit_of(n_bytes: float) -> float:
    """log2 of the number of cells of a table; a row number must fit into 31 bits."""
    return min(math.log2(max(n_bytes, 8.0) / 8.0), 31.0)


def too_large(name: str, size: TreeSize, limit: float, hint: str = "") -> UnsupportedError:
    """The error for a structure that needs too much memory."""
    named = ", ".join(map(str, size.clique[:8])) + (", …" if len(size.clique) > 8 else "")
    need = "at least " if not size.complete else ""
    return UnsupportedError(
        f"inference {name!r} would need {need}{size_of(size.bytes)} ({size.cells:,} cells of 8 "
        f"bytes), of which {size.largest:,} are for the clique of {len(size.clique)} variables "
        f"({named}); memory_limit is {size_of(limit)}. Raise it, use smaller cliques or fewer "
        f"labels, order='search', or an approximate method such as 'loopy_bp'{hint}"
    )


def log_partition(plan: Plan, potentials: Potentials) -> Floats:
    """log Z of every example, by messages up the tree of cliques."""
    out = np.empty(potentials.structure.n_examples)
    _kernels.clique_tree_log_partition(potentials.scores, plan.tree, None, out)
    return out


def best_labelling(plan: Plan, potentials: Potentials) -> Decoded:
    """The best labelling, by messages up the tree of cliques and a walk back."""
    structure = potentials.structure
    labels = np.zeros(structure.n_variables, dtype=np.int32)
    score = np.empty(structure.n_examples)
    _kernels.clique_tree_best_labelling(potentials.scores, plan.tree, score, labels)
    refuse_infeasible(score)
    return Decoded(labels, score)


class CliqueTreeInference(Inference):
    """All answers from a clique tree; a final subclass chooses the tree."""

    #: Whether tables are kept until the answer is complete; if not, they are made twice.
    keeps_tables: ClassVar[bool] = True

    answers: ClassVar[frozenset[str]] = frozenset(
        {
            "log_partition",
            "marginals",
            "marginals_derivative",
            "map",
            "k_best",
            "sample",
            "entropy",
        }
    )

    def exact_on(self, structure: Structure) -> bool:
        """Exact on every supported structure."""
        return self.supports(structure)

    def work(self, structure: Structure, question: str) -> float:
        """The cells of all tables and messages, divided by the cells of the model's tables."""
        own = structure.n_states + int(structure.table_sizes.sum())
        return float(self._plan(structure).tree.cells.sum()) / max(1, own)

    @abstractmethod
    def _plan(self, structure: Structure) -> Plan:
        """The clique tree of the structure."""

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """The labellings asked for; `require` checks the tables of the tree."""
        return n * (4.0 * structure.n_variables + 8.0 * structure.n_examples)

    def log_partition(self, potentials: Potentials) -> Floats:
        """log Z, by messages up the tree."""
        return log_partition(self._plan_for("log_partition", potentials), potentials)

    def marginals(
        self, potentials: Potentials, weight: Floats | None = None, overwrite: bool = False
    ) -> Marginals:
        """Marginals, by messages up and down the tree."""
        plan = self._plan_for("marginals", potentials)
        parts, log_z = potentials.zeros(), np.empty(potentials.structure.n_examples)
        _kernels.clique_tree_marginals(
            potentials.scores,
            plan.tree,
            parts.writable,
            self.keeps_tables,
            None,
            weight=weight,
            log_partition=log_z,
        )
        refuse_infeasible(log_z)
        return Marginals(log_z, parts)

    def marginals_derivative(
        self,
        potentials: Potentials,
        direction: Potentials,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Potentials:
        """The derivative, by messages of values and slopes."""
        plan = self._plan_for("marginals_derivative", potentials)
        refuse_other_shape(potentials, direction)
        parts, log_z = potentials.zeros(), np.empty(potentials.structure.n_examples)
        _kernels.clique_tree_marginals_derivative(
            potentials.scores,
            plan.tree,
            parts.writable,
            direction=direction.scores,
            weight=weight,
            log_partition=log_z,
        )
        refuse_infeasible(log_z)
        return parts

    def map(self, potentials: Potentials) -> Decoded:
        """The best labelling, by messages up the tree."""
        return best_labelling(self._plan_for("map", potentials), potentials)

    def k_best(self, potentials: Potentials, k: int) -> Ranked:
        """The best labellings, each found by excluding those already found."""
        plan, structure = self._plan_for("k_best", potentials), potentials.structure
        labels = np.zeros(k * structure.n_variables, dtype=np.int32)
        score = np.empty(k * structure.n_examples)
        _kernels.clique_tree_k_best(potentials.scores, plan.tree, k, score, labels)
        ranked = Ranked(labels.reshape(k, -1), score.reshape(-1, k))
        refuse_infeasible(ranked.score[:, 0])
        return ranked

    def sample(self, potentials: Potentials, n: int, rng: np.random.Generator) -> Labels:
        """Exact draws, from the roots of the tree down."""
        plan, structure = self._plan_for("sample", potentials), potentials.structure
        out = np.zeros((n, structure.n_variables), dtype=np.int32)
        log_z = np.empty(structure.n_examples)
        at_once = max(1, UNIFORMS // max(1, plan.n_clusters))  # random numbers need memory too
        for first in range(0, n, at_once):
            rows = out[first : first + at_once]
            uniform = rng.random(len(rows) * plan.n_clusters)
            _kernels.clique_tree_sample(
                potentials.scores,
                plan.tree,
                self.keeps_tables,
                uniform=uniform,
                log_partition=log_z,
                labels=rows.reshape(-1),
            )
            refuse_infeasible(log_z)
        return out

    def entropy(self, potentials: Potentials) -> Floats:
        """The entropy, by messages of the tree."""
        plan = self._plan_for("entropy", potentials)
        log_z, out = np.empty((2, potentials.structure.n_examples))
        _kernels.clique_tree_entropy(
            potentials.scores, plan.tree, self.keeps_tables, log_partition=log_z, out=out
        )
        refuse_infeasible(log_z)
        return out

    def _plan_for(self, question: str, potentials: Potentials) -> Plan:
        self.require(question, potentials.structure)
        return self._plan(potentials.structure)
