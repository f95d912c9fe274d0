"""Targets: one label per variable, a distribution over labels, or a set of labels."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal import _kernels
from chordal._validate import check_weight, whole_numbers
from chordal.potentials import Floats, Potentials
from chordal.structures import offsets_of, read_only

Labels = NDArray[np.int32]
Ints = NDArray[np.int64]

#: Tolerance for the sum of a variable's probabilities.
TOLERANCE = 1e-6


class _PerState:
    """A number per label of every variable; a slice or an index selects variables."""

    def __init__(self, values: NDArray[np.generic], label_counts: ArrayLike) -> None:
        self.state_offsets = read_only(offsets_of(whole_numbers(label_counts, "label_counts")))
        if values.shape != (self.state_offsets[-1],):
            raise ValueError(
                f"targets must have a number per label of every variable "
                f"({self.state_offsets[-1]}), got shape {values.shape}"
            )

    def __len__(self) -> int:
        return len(self.state_offsets) - 1

    def _cut(self, variables: slice | Ints) -> tuple[slice | Ints, Ints]:
        """The states of these variables, and the number of each."""
        counts = np.diff(self.state_offsets)[variables]
        if not isinstance(variables, slice):
            moved = self.state_offsets[variables] - offsets_of(counts)[:-1]
            return np.repeat(moved, counts) + np.arange(counts.sum()), counts
        first, last, step = variables.indices(len(self))
        if step != 1:
            raise ValueError("targets are sliced in steps of 1")
        return slice(int(self.state_offsets[first]), int(self.state_offsets[last])), counts


class SoftLabels(_PerState):
    """A distribution over the labels of every variable; variables are independent.

    Parameters
    ----------
    probability : float64 [n_states]
        Variable by variable; they sum to one for each variable.
    label_counts : int [n_variables]

    Examples
    --------
    >>> from chordal.structures import Chain
    >>> q = SoftLabels(np.array([0.5, 0.5, 1.0, 0.0]), [2, 2])
    >>> p = Potentials(Chain([2], n_labels=2), unary=[0, 1, 2, 0], tables=[4, 0, 0, 0])
    >>> score_of(p, q)
    array([4.5])
    >>> q[1:2].probability
    array([1., 0.])
    """

    def __init__(self, probability: Floats, label_counts: ArrayLike) -> None:
        self.probability = np.ascontiguousarray(probability, dtype=np.float64)
        super().__init__(self.probability, label_counts)
        if not (self.probability >= 0.0).all() or not np.isfinite(self.probability).all():
            raise ValueError("probabilities of soft targets must be finite and not negative")
        sums = _sums(self.probability, self.state_offsets)
        wrong = np.flatnonzero(np.abs(sums - 1.0) > TOLERANCE)
        if len(wrong):
            raise ValueError(
                f"the probabilities of variable {wrong[0]} must sum to 1, got {sums[wrong[0]]:.6g}"
            )

    def __getitem__(self, variables: slice | Ints) -> SoftLabels:
        states, counts = self._cut(variables)
        return SoftLabels(self.probability[states], counts)


class PartialLabels(_PerState):
    """A set of possible labels for every variable; an unobserved variable has all labels.

    Parameters
    ----------
    allowed : bool [n_states]
        Variable by variable, with at least one label each.
    label_counts : int [n_variables]

    Examples
    --------
    >>> PartialLabels(np.array([True, False, True, True]), [2, 2])[1:].allowed
    array([ True,  True])
    """

    def __init__(self, allowed: NDArray[np.bool_], label_counts: ArrayLike) -> None:
        self.allowed = np.ascontiguousarray(allowed, dtype=bool)
        super().__init__(self.allowed, label_counts)
        none = np.flatnonzero(_sums(self.allowed.astype(np.float64), self.state_offsets) == 0.0)
        if len(none):
            raise ValueError(f"variable {none[0]} must have at least one possible label")

    def __getitem__(self, variables: slice | Ints) -> PartialLabels:
        states, counts = self._cut(variables)
        return PartialLabels(self.allowed[states], counts)

    def known(self) -> tuple[NDArray[np.bool_], Labels] | None:
        """Which variables have a single possible label, and those labels, if all others may have
        any label. None if some variable has a proper subset.

        >>> PartialLabels(np.array([False, True, True, True]), [2, 2]).known()
        (array([ True, False]), array([1], dtype=int32))
        """
        counts = np.diff(self.state_offsets)
        possible = _sums(self.allowed.astype(np.float64), self.state_offsets)
        one = possible == 1
        if not (one | (possible == counts)).all():
            return None
        single = np.flatnonzero(self.allowed & np.repeat(one, counts))
        return one, (single - self.state_offsets[:-1][one]).astype(np.int32)

    def clamped(self, potentials: Potentials) -> Potentials:
        """The same potentials with −inf at labels that are not possible; unary scores are new."""
        return potentials.like(np.where(self.allowed, potentials.unary, -np.inf), potentials.tables)


#: The targets of an objective.
Target: TypeAlias = Labels | SoftLabels | PartialLabels


def kind_of(target: Target) -> str:
    """ "hard", "soft" or "partial"."""
    if isinstance(target, SoftLabels):
        return "soft"
    return "partial" if isinstance(target, PartialLabels) else "hard"


def score_of(potentials: Potentials, target: Labels | SoftLabels) -> Floats:
    """The score of the labels in each example, or its expectation."""
    if not isinstance(target, SoftLabels):
        return potentials.score(target)
    out = np.empty(potentials.structure.n_examples)
    probability = _fitting(potentials, target)
    _kernels.soft_score(potentials.scores, probability=probability, out=out)
    return out


def add_target(
    parts: Potentials,
    target: Labels | SoftLabels,
    scale: float = 1.0,
    weight: Floats | None = None,
) -> None:
    """Add `scale` times each example's weight times the labels' probabilities, in place.

    This is the derivative of `score_of` by the potentials.
    """
    if isinstance(target, SoftLabels):
        probability = _fitting(parts, target)
        check_weight(weight, parts.structure.n_examples)
        _kernels.soft_add_indicators(
            parts.writable, probability=probability, weight=weight, scale=float(scale)
        )
    else:
        parts.add_indicators(target, scale, weight)


def _fitting(potentials: Potentials, target: SoftLabels) -> Floats:
    """The probabilities, checked against the structure."""
    s = potentials.structure
    if not np.array_equal(target.state_offsets, s.state_offsets):
        raise ValueError(f"soft targets of {len(target)} variables do not fit {s!r}")
    return target.probability


def _sums(values: Floats, offsets: NDArray[np.int64]) -> Floats:
    """The sum over each variable's labels; every variable has one at least."""
    if len(offsets) == 1:
        return np.zeros(0)
    return np.asarray(np.add.reduceat(values, offsets[:-1]))
