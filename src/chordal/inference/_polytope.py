"""The local polytope of one example, as rows and columns of a linear program."""

from __future__ import annotations

import numpy as np

from chordal import _kernels
from chordal._errors import UnsupportedError
from chordal._optional import needed
from chordal.inference._answers import Labels
from chordal.potentials import Floats, Potentials
from chordal.structures import Ints, Structure, offsets_of

#: The largest size of a score that HiGHS gets; from about 1e15 on it gives up.
_LARGEST = 1e12


class Polytope:
    """Consistent distributions of each variable's labels and of each clique's labellings.

    The columns are the states (variable, label) of the example, then the cells of the cliques'
    tables, clique by clique:

        Σ_l μ_v(l) = 1,    Σ_{y_c: y_v = l} μ_c(y_c) = μ_v(l)  for each clique c, v in c and l

    Attributes
    ----------
    matrix, right : sparse array [n_rows, n_columns] and float64 [n_rows]
        The rows: first one per variable, then one per (clique, variable, label).
    scores : float64 [n_columns]
        The scores (0 in place of −inf), minus the highest score of each variable and clique;
        `shift` is the sum of those.
    allowed : bool [n_columns]
        Whether the score is not −inf.
    unit : float
        The power of two by which `scores` are divided for HiGHS; 1 unless they are huge.
    """

    def __init__(self, potentials: Potentials, example: int) -> None:
        with needed("scipy", "inference by linear programs ('milp', 'linear_program')"):
            from scipy.sparse import csr_array

        s = potentials.structure
        first, last = s.variable_offsets[example : example + 2]
        cliques = np.arange(s.clique_offsets[example], s.clique_offsets[example + 1])
        self.states = slice(*s.state_offsets[[first, last]])
        self.cells = _cells(potentials, cliques)
        self.n_states = self.states.stop - self.states.start
        self._groups = np.concatenate([s.label_counts[first:last], s.table_sizes[cliques]])
        raw = np.concatenate([potentials.unary[self.states], potentials.tables[self.cells]])
        self.allowed = raw > -np.inf
        begins = offsets_of(self._groups)[:-1]
        self.highest = np.maximum.reduceat(raw, begins) if len(raw) else np.zeros(0)
        self.shift = float(self.highest.sum())
        with np.errstate(invalid="ignore"):
            scores = raw - np.repeat(self.highest, self._groups)
        self.scores = np.where(self.allowed, scores, 0.0)
        _, exponent = np.frexp(np.abs(self.scores).max(initial=0.0) / _LARGEST)
        self.unit = float(np.ldexp(1.0, max(0, int(exponent))))
        row, column, value = _entries(s, cliques, s.state_offsets[first], self.n_states)
        variable = np.repeat(np.arange(last - first), s.label_counts[first:last])
        self.n_variables = int(last - first)
        n_rows = self.n_variables + (row.max(initial=-1) + 1)
        self.matrix: csr_array = csr_array(
            (
                np.concatenate([np.ones(self.n_states), value]),
                (
                    np.concatenate([variable, row + self.n_variables]),
                    np.concatenate([np.arange(self.n_states), column]),
                ),
            ),
            shape=(n_rows, len(raw)),
        )
        self.right = np.zeros(n_rows)
        self.right[: self.n_variables] = 1.0

    @property
    def is_empty(self) -> bool:
        """Whether some variable or clique has no label left."""
        return bool((self.highest == -np.inf).any())

    def bound_by(self, multipliers: Floats) -> float:
        """An upper bound of all scores, from any multipliers of the rows.

        The multipliers of the consistency rows move scores between cliques and variables; then each
        takes its highest score. Rounding errors in the multipliers do no harm.
        """
        if len(self.scores) == 0:
            return 0.0
        moved = multipliers.copy()
        moved[: self.n_variables] = 0.0
        scores = np.where(self.allowed, self.scores - self.matrix.T @ moved, -np.inf)
        highest = np.maximum.reduceat(scores, offsets_of(self._groups)[:-1])
        return float(highest.sum()) + self.shift


def n_columns(structure: Structure) -> Ints:
    """The number of columns of each example's program (int64 [n_examples])."""
    states = np.diff(structure.state_offsets[structure.variable_offsets])
    cells = np.diff(offsets_of(structure.table_sizes)[structure.clique_offsets])
    return np.asarray(states + cells)


def program_memory(structure: Structure) -> float:
    """Bytes for the program of the largest example, in SciPy and in the solver."""
    entries = offsets_of(structure.table_sizes * structure.orders)
    per_example = np.diff(entries[structure.clique_offsets]) + n_columns(structure)
    return 100.0 * float(per_example.max(initial=0))


def refuse_large(name: str, structure: Structure, limit: int) -> None:
    """Raise if the program of some example has more columns than the limit."""
    columns = n_columns(structure)
    if columns.max(initial=0) > limit:
        example = int(np.argmax(columns))
        raise UnsupportedError(
            f"inference {name!r} would need a program of {columns[example]:,} columns for example "
            f"{example}, more than max_columns ({limit:,}); raise max_columns, or use an "
            "approximation"
        )


def _cells(potentials: Potentials, cliques: Ints) -> Ints:
    """Where the cells of the cliques' tables lie, one clique after another."""
    sizes = potentials.structure.table_sizes[cliques]
    starts = potentials.table_offsets[potentials.table_of_clique[cliques]]
    cells: Ints = np.repeat(starts - offsets_of(sizes)[:-1], sizes) + np.arange(sizes.sum())
    return cells


def _entries(
    s: Structure, cliques: Ints, first_state: int, n_states: int
) -> tuple[Ints, Ints, Floats]:
    """Rows, columns and values of the consistency rows, (clique, variable, label) in order."""
    if len(cliques) == 0:
        none = np.zeros(0, dtype=np.int64)
        return none, none, np.zeros(0)
    places = np.arange(s.scope_offsets[cliques[0]], s.scope_offsets[cliques[-1] + 1])
    clique = np.repeat(np.arange(len(cliques)), s.orders[cliques])
    variables = s.scopes[places]
    counts = s.label_counts[variables]
    rows = offsets_of(counts)
    of_states = s.state_offsets[variables] - first_state
    strides = np.ones(len(places), dtype=np.int64)  # cells between two labels of an axis
    after = s.scope_offsets[cliques[clique] + 1] - 1 - places  # axes that follow
    for depth in range(1, int(after.max()) + 1):
        k = np.flatnonzero(after == depth)
        strides[k] = strides[k + 1] * counts[k + 1]
    sizes = s.table_sizes[cliques]
    starts = n_states + offsets_of(sizes)[:-1]
    repeats = sizes[clique]
    within = np.arange(repeats.sum()) - np.repeat(offsets_of(repeats)[:-1], repeats)
    label = within // np.repeat(strides, repeats) % np.repeat(counts, repeats)
    cell_rows = np.repeat(rows[:-1], repeats) + label
    cell_columns = np.repeat(starts[clique], repeats) + within
    state_rows = np.arange(rows[-1])
    state_columns = np.repeat(of_states - rows[:-1], counts) + state_rows
    value = np.concatenate([np.ones(len(cell_rows)), -np.ones(len(state_rows))])
    return (
        np.concatenate([cell_rows, state_rows]),
        np.concatenate([cell_columns, state_columns]),
        value,
    )


def rounded(potentials: Potentials, beliefs: Floats) -> Labels:
    """A labelling near these distributions of the variables' labels (float64 [n_states]).

    Variables are labelled in order of certainty, within the constraints. Then each takes its best
    label given the others, until nothing changes.
    """
    s = potentials.structure
    labels = np.zeros(s.n_variables, dtype=np.int32)
    _kernels.round_beliefs(potentials.scores, beliefs, labels)
    return labels
