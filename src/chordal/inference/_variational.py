"""The start of mean field: label probabilities that allow some labelling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chordal._blocks import blocks_of
from chordal._errors import UnsupportedError
from chordal._limits import check_time
from chordal.inference._answers import Labels
from chordal.inference.loopy_bp import LoopyBPInference
from chordal.potentials import Floats, Potentials
from chordal.structures import offsets_of

#: Variables that NumPy takes at a time.
AT_ONCE = 1 << 15


def start(potentials: Potentials, name: str) -> Floats:
    """A probability for every label (float64 [n_states]).

    They follow the label scores if tables forbid nothing. Otherwise they are one allowed labelling;
    the iterations add labels that are compatible with all others.
    """
    shares = _softmax(potentials)
    hard = _with_constraints(potentials)
    if hard.any():
        s = potentials.structure
        labels = _allowed_labels(potentials, hard, name)
        of_variable = np.repeat(hard, np.diff(s.variable_offsets))
        shares[np.repeat(of_variable, s.label_counts)] = 0.0
        shares[(s.state_offsets[:-1] + labels)[of_variable]] = 1.0
    return shares


def _softmax(potentials: Potentials) -> Floats:
    """Labels by their own scores; zeros for a variable without allowed labels."""
    s = potentials.structure
    if s.n_variables == 0:
        return np.zeros(0)
    shares = np.empty(s.n_states)
    for block in blocks_of(s.n_variables, AT_ONCE):  # so that Ctrl-C is heard
        counts, begin = s.label_counts[block], s.state_offsets[block]
        states = slice(begin[0], s.state_offsets[block.stop])
        unary, begin = potentials.unary[states], begin - begin[0]
        highest = np.maximum.reduceat(unary, begin)
        highest = np.where(highest > -np.inf, highest, 0.0)
        share = np.exp(unary - np.repeat(highest, counts))
        total = np.add.reduceat(share, begin)
        shares[states] = share / np.repeat(np.where(total > 0.0, total, 1.0), counts)
    return shares


def _with_constraints(potentials: Potentials) -> NDArray[np.bool_]:
    """Which examples have −inf in a table."""
    s = potentials.structure
    before = offsets_of(potentials.tables == -np.inf)
    of_table = np.diff(before[potentials.table_offsets])
    of_clique = offsets_of(of_table[potentials.table_of_clique] > 0)
    return np.asarray(np.diff(of_clique[s.clique_offsets]) > 0)


def _allowed_labels(potentials: Potentials, hard: NDArray[np.bool_], name: str) -> Labels:
    """One allowed labelling of each such example, by max-product and search."""
    labels = LoopyBPInference(damping=0.1, max_iter=200).map(potentials).labels
    lost = hard & (potentials.score(labels) == -np.inf)
    if lost.any():
        check_time()
        raise UnsupportedError(
            f"inference {name!r} found no allowed labelling of example "
            f"{int(np.argmax(lost))} to start from; use an exact method, or relax the constraints"
        )
    return labels
