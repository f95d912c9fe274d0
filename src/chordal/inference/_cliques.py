"""Shared by methods that iterate over cliques: checks, starts and constraints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal.inference._answers import Convergence, Decoded, Labels
from chordal.potentials import Potentials
from chordal.structures import Structure

#: Sums of scores have to stay finite numbers.
LARGEST = 1e290
#: Number of contradictions after which the search for an allowed labelling gives up.
MAX_FAILURES = 20_000


def at_most_pairs(structure: Structure) -> bool:
    """Whether no clique has more than two variables."""
    return bool((structure.orders <= 2).all())


def message_cells(structure: Structure) -> int:
    """The number of message entries in one direction: labels of all variables of all cliques."""
    return int(structure.label_counts[structure.scopes].sum())


def require_finite_size(potentials: Potentials) -> None:
    """Raise an error for finite scores whose sums would not be finite."""
    for name, scores in (("unary", potentials.unary), ("tables", potentials.tables)):
        if scores.max(initial=0.0) <= LARGEST and scores.min(initial=0.0) >= -LARGEST:
            continue
        large = (np.abs(scores) > LARGEST) & (scores != -np.inf)
        if large.any():
            where = int(np.argmax(large))
            raise ValueError(
                f"{name}[{where}] = {scores[where]:g} is too large to be added to others; scores "
                f"must be at most {LARGEST:g}, or -inf"
            )


def most_probable_labels(parts: Potentials) -> Labels:
    """Maximum posterior marginal decoding: the most probable label of each variable.

    Ties go to the smallest label.
    """
    structure = parts.structure
    counts = structure.label_counts
    if structure.n_variables == 0:
        return np.zeros(0, dtype=np.int32)
    if (counts == counts[0]).all():
        return parts.unary.reshape(-1, counts[0]).argmax(axis=1).astype(np.int32)
    best = np.maximum.reduceat(parts.unary, structure.state_offsets[:-1])
    is_best = parts.unary == np.repeat(best, counts)
    first = np.flatnonzero(is_best)
    variable = np.repeat(np.arange(len(counts)), counts)[first]
    _, keep = np.unique(variable, return_index=True)
    return (first[keep] - structure.state_offsets[:-1]).astype(np.int32)


def with_rough_bound(potentials: Potentials, labels: Labels, ended: Convergence) -> Decoded:
    """The labelling of a method without a bound, with `Potentials.bound`."""
    score = potentials.score(labels)
    return Decoded(labels, score, np.maximum(potentials.bound(), score), ended)


def forbids(potentials: Potentials) -> bool:
    """Whether some table has a score of −inf."""
    return bool(potentials.tables.min(initial=0.0) == -np.inf)


def propagated(potentials: Potentials) -> Potentials:
    """The same model without labels that constraint propagation excludes.

    A label is excluded (its score becomes −inf) if some table has no supporting labels of its other
    variables; this repeats until nothing changes. It excludes no allowed labelling. If a variable
    has no label left, the example is proved to have no allowed labelling.
    """
    if not forbids(potentials):
        return potentials
    unary = potentials.unary.copy()
    _kernels.exclude_labels(potentials.scores, potentials.structure.incidence, unary=unary)
    return potentials.like(unary, potentials.tables)


def allowed_labels(potentials: Potentials, wanted: NDArray[np.bool_]) -> tuple[Labels, Labels]:
    """Allowed labellings (no score of −inf) of the wanted examples, found by search.

    Returns the labels, and for each example 1 if they were found, 0 if there are none (or it was
    not wanted), −1 if the search gave up.
    """
    s = potentials.structure
    labels = np.zeros(s.n_variables, dtype=np.int32)
    outcome = wanted.astype(np.int32)
    _kernels.allowed_labels(
        potentials.scores, s.incidence, MAX_FAILURES, outcome=outcome, labels=labels
    )
    return labels, outcome
