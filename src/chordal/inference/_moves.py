"""Shared by methods that improve one labelling per example, round by round."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import ClassVar, Protocol

import numpy as np

from chordal import _kernels
from chordal._limits import TimeLimitError, check_time, no_time_limit
from chordal._status import Status
from chordal._validate import check_number
from chordal.inference._answers import Convergence, Decoded, Labels
from chordal.inference._base import Inference
from chordal.inference._cliques import (
    allowed_labels,
    at_most_pairs,
    most_probable_labels,
    require_finite_size,
    with_rough_bound,
)
from chordal.inference._limited import late
from chordal.potentials import Potentials
from chordal.structures import Structure

#: Rounds of a start that has to be there soon.
QUICK = 20
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
    """The labelling after a kernel's rounds, and how they ended.

    By default the start is the best label of each single variable. Examples that end at no allowed
    labelling restart from an allowed one, if a search finds it.
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
    if done.late:
        status, last = Status.MAX_TIME, np.inf
    ended = Convergence(status, int(done.n_iter.max(initial=0)), last)
    return with_rough_bound(potentials, labels, ended)


def improved_by_trees(potentials: Potentials, found: Decoded, max_iter: int = 100) -> Decoded:
    """The labelling after rounds in which whole trees take their best labels given the rest.

    Variables are split into a few forests (two on a grid); a round visits all of them. Rounds end
    when no example gains; examples that are proved best are skipped.
    """
    if found.bound is None or not (found.gap > 0.0).any():
        return found
    s, labels, score = potentials.structure, found.labels.copy(), found.score
    ended, in_time = found.convergence, True
    try:
        check_time()
        blocks = _kernels.greedy_forests(s.topology, s.incidence)
    except TimeLimitError:
        return found._replace(convergence=late(ended))
    for _ in range(max_iter):
        before = labels.copy()
        try:
            _kernels.icm_forests(potentials.scores, s.incidence, blocks, labels)
        except TimeLimitError:  # some blocks are done
            ended, in_time = late(ended), False
        now = potentials.score(labels)
        with np.errstate(invalid="ignore"):  # −inf + inf: no labelling is not better than none
            better = now > score + ROUNDING * np.abs(now)
        same = np.repeat(~better, np.diff(s.variable_offsets))
        labels[same] = before[same]
        score = np.where(better, now, score)
        if not better.any() or not in_time:
            break
    bound = np.maximum(found.bound, score)
    return found._replace(labels=labels, score=score, bound=bound, convergence=ended)


def quick_start(potentials: Potentials) -> Decoded:
    """A quick labelling that no single label or tree can improve, as a start for a program.

    Its status says that the time limit was reached.
    """
    sweeps = partial(_kernels.icm_labels, incidence=potentials.structure.incidence)
    with no_time_limit():
        found = improved_by_trees(potentials, improved(sweeps, potentials, QUICK), QUICK)
    return found._replace(convergence=late(None))


class CutMoves(Inference):
    """Rounds of moves of pairwise models, each of them found by a minimum cut."""

    answers: ClassVar[frozenset[str]] = frozenset({"map"})
    # Good where neighbours prefer to be alike, which is not looked at; a rough bound.
    quality: ClassVar[Mapping[str, int]] = {"map": 50}
    anytime: ClassVar[bool] = True

    def __init__(
        self,
        max_iter: int = 100,
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(time_limit=time_limit, memory_limit=memory_limit)
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
        """Never: a labelling that no move improves is not always the best."""
        return False

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """A network with two arcs per edge, and the scores."""
        nodes = 64.0 * structure.n_variables + 8.0 * structure.n_states
        return nodes + 56.0 * structure.n_cliques

    def map(self, potentials: Potentials) -> Decoded:
        """A labelling that no move improves."""
        self.require("map", potentials.structure)
        require_finite_size(potentials)
        return improved(self._kernel, potentials, self.max_iter)
