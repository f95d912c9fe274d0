"""What methods share that improve one labelling of each example, round by round."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from chordal._status import Status
from chordal.inference._base import Decoded, Labels, Run
from chordal.inference._cliques import clique_arrays
from chordal.potentials import Floats, Potentials


def improved(kernel: Callable[..., None], potentials: Potentials, max_iter: int) -> Decoded:
    """The labelling that a kernel's rounds end at, and how they ended."""
    s = potentials.structure
    labels = np.zeros(s.n_variables, dtype=np.int32)
    iterations = np.zeros(s.n_examples, dtype=np.int64)
    change = np.zeros(s.n_examples)
    kernel(*clique_arrays(potentials), max_iter, labels, iterations, change)
    return with_run(potentials, labels, int(iterations.max(initial=0)), change)


def with_run(potentials: Potentials, labels: Labels, n_iter: int, change: Floats) -> Decoded:
    """Labels with their score; converged where the last round changed nothing; no bound."""
    last = float(change.max(initial=0.0))
    status = Status.CONVERGED if last == 0.0 else Status.MAX_ITERATIONS
    unknown = np.full(potentials.structure.n_examples, np.inf)
    return Decoded(labels, potentials.score(labels), unknown, Run(status, n_iter, last))
