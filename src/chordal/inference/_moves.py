"""What methods share that improve one labelling of each example, round by round."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Protocol

import numpy as np

from chordal import _kernels
from chordal._status import Status
from chordal._validate import check_number
from chordal.inference._answers import Convergence, Decoded, Labels
from chordal.inference._base import Inference, most_probable_labels
from chordal.inference._cliques import (
    allowed_labels,
    at_most_pairs,
    require_finite_size,
    with_rough_bound,
)
from chordal.potentials import Potentials
from chordal.structures import Structure

#: Gains below this share of a score are rounding.
ROUNDING = 1e-13


class Kernel(Protocol):
    """Rounds that improve the labels in place."""

    def __call__(
        self, scores: _kernels.Scores, *, max_iter: int, labels: Labels
    ) -> _kernels.Iterations: ...


def improved(
    kernel: Kernel, potentials: Potentials, max_iter: int, start: Labels | None = None
) -> Decoded:
    """The labelling that a kernel's rounds end at, and how they ended.

    The start is, if not given, the best label of each variable by itself. Examples that end at no
    allowed labelling start again from one that is, if a search finds one.
    """
    labels = most_probable_labels(potentials) if start is None else start.copy()
    found = _rounds(kernel, potentials, max_iter, labels)
    lost = found.score == -np.inf
    if lost.any():
        allowed, outcome = allowed_labels(potentials, lost)
        again = np.repeat(outcome == 1, np.diff(potentials.structure.variable_offsets))
        labels[again] = allowed[again]
        found = _rounds(kernel, potentials, max_iter, labels)
    return found


def _rounds(kernel: Kernel, potentials: Potentials, max_iter: int, labels: Labels) -> Decoded:
    done = kernel(potentials.scores, max_iter=max_iter, labels=labels)
    last = float(done.change.max(initial=0.0))
    status = Status.CONVERGED if last == 0.0 else Status.MAX_ITERATIONS
    ended = Convergence(status, int(done.n_iter.max(initial=0)), last)
    return with_rough_bound(potentials, labels, ended)


def improved_by_trees(potentials: Potentials, found: Decoded, max_iter: int = 100) -> Decoded:
    """The labelling after rounds in which whole trees take their best labels given the rest.

    Variables are split into few forests, on a grid two; a round visits them all. Rounds end when no
    example gains, and examples that are proved best are left alone.
    """
    if found.bound is None or not (found.gap > 0.0).any():
        return found
    s, labels, score = potentials.structure, found.labels.copy(), found.score
    blocks = _kernels.greedy_forests(s.topology, s.incidence)
    for _ in range(max_iter):
        before = labels.copy()
        _kernels.icm_forests(potentials.scores, s.incidence, blocks, labels)
        now = potentials.score(labels)
        with np.errstate(invalid="ignore"):  # −inf + inf: no labelling is not better than none
            better = now > score + ROUNDING * np.abs(now)
        same = np.repeat(~better, np.diff(s.variable_offsets))
        labels[same] = before[same]
        score = np.where(better, now, score)
        if not better.any():
            break
    return found._replace(labels=labels, score=score, bound=np.maximum(found.bound, score))


class CutMoves(Inference):
    """Rounds of moves of pairwise models, each of them found by a minimum cut."""

    answers: ClassVar[frozenset[str]] = frozenset({"map"})
    # Good where neighbours prefer to be alike, which is not looked at; a rough bound.
    quality: ClassVar[Mapping[str, int]] = {"map": 50}

    def __init__(self, max_iter: int = 100) -> None:
        check_number("max_iter", max_iter, minimum=1, integer=True)
        self.max_iter = max_iter

    @property
    @abstractmethod
    def _kernel(self) -> Kernel:
        """What makes the rounds."""

    def supports(self, structure: Structure) -> bool:
        """Structures with cliques of at most two variables."""
        return at_most_pairs(structure)

    def exact_on(self, structure: Structure) -> bool:
        """Never: a labelling that no move improves need not be best."""
        return False

    def map(self, potentials: Potentials) -> Decoded:
        """A labelling that no move improves."""
        self.require("map", potentials.structure)
        require_finite_size(potentials)
        return improved(self._kernel, potentials, self.max_iter)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(max_iter={self.max_iter})"
