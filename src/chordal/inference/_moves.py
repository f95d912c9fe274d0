"""What methods share that improve one labelling of each example, round by round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chordal._status import Status
from chordal.inference._base import Decoded, Labels, Run, most_probable_labels
from chordal.inference._cliques import allowed_labels, clique_arrays
from chordal.potentials import Potentials

Kernel = Callable[..., None]


def improved(
    kernel: Kernel, potentials: Potentials, max_iter: int, start: Labels | None = None
) -> Decoded:
    """The labelling that a kernel's rounds end at, and how they ended; no bound.

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
    return Decoded(labels, potentials.score(labels), np.full(n, np.inf), run)
