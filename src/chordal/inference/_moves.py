"""What methods share that improve one labelling of each example, round by round."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np

from chordal import _kernels
from chordal._status import Status
from chordal._validate import check_number
from chordal.inference._base import Decoded, Inference, Labels, Run, most_probable_labels
from chordal.inference._cliques import (
    allowed_labels,
    at_most_pairs,
    clique_arrays,
    require_finite_size,
    with_rough_bound,
)
from chordal.inference._sweeps import topology
from chordal.potentials import Potentials
from chordal.structures import Structure

Kernel = Callable[..., None]

#: Gains below this share of a score are rounding.
ROUNDING = 1e-13


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
    n = potentials.structure.n_examples
    iterations, change = np.zeros(n, dtype=np.int64), np.zeros(n)
    kernel(*clique_arrays(potentials), max_iter, labels, iterations, change)
    last = float(change.max(initial=0.0))
    status = Status.CONVERGED if last == 0.0 else Status.MAX_ITERATIONS
    run = Run(status, int(iterations.max(initial=0)), last)
    return with_rough_bound(potentials, labels, run)


def improved_by_trees(potentials: Potentials, found: Decoded, max_iter: int = 100) -> Decoded:
    """The labelling after rounds in which whole trees take their best labels given the rest.

    Variables are split into few forests, on a grid two; a round visits them all. Rounds end when no
    example gains, and examples that are proved best are left alone.
    """
    if found.bound is None or not (found.gap > 0.0).any():
        return found
    s, labels, score = potentials.structure, found.labels.copy(), found.score
    arrays = topology(potentials)
    forests = _kernels.greedy_forests(*arrays)
    for _ in range(max_iter):
        before = labels.copy()
        _kernels.icm_forests(*arrays, *forests, potentials.unary, potentials.tables, labels)
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
        return at_most_pairs(structure)

    def exact_on(self, structure: Structure) -> bool:
        return False

    def map(self, potentials: Potentials) -> Decoded:
        self.require("map", potentials.structure)
        require_finite_size(potentials)
        return improved(self._kernel, potentials, self.max_iter)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(max_iter={self.max_iter})"
