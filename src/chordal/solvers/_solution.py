"""What a run tells: the state after each iteration, and the solution at its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any, NamedTuple

from chordal._status import Status
from chordal.oracle import Floats


class Iteration(NamedTuple):
    """The state after one iteration.

    `weights` belong to the solver: do not write to them, and copy them if you keep them.
    `gradient_norm` is NaN if the solver does not compute the whole gradient; `gap` (the duality
    gap) is NaN if it does not compute one.

    An estimator's callback gets a copy of the model's weights. `score` is the validation score if
    one was computed after this iteration, else NaN. `scores` are all of them so far, as pairs
    (iteration, score). `model` builds a fitted copy of the estimator with the current weights.

    Examples
    --------
    Stop by your own rule, here as soon as all training labels are correct:

    >>> from chordal import ChainCRF
    >>> X, y = [[["a"], ["b"]], [["b"]]], [["A", "B"], ["B"]]
    >>> crf = ChainCRF().fit(X, y, callback=lambda state: state.model().score(X, y) == 1.0)
    >>> crf.fit_report_.status.name, crf.n_iter_
    ('STOPPED', 1)

    Or by validation scores, which are computed every `validation_interval` iterations:

    >>> def enough(state):
    ...     return len(state.scores) > 1 and state.score <= state.scores[0][1]
    >>> crf = ChainCRF(validation_interval=1)
    >>> crf = crf.fit(X, y, validation_data=(X, y), callback=enough)
    >>> crf.fit_report_.validation
    [(1, 1.0), (2, 1.0)]
    """

    iteration: int
    value: float
    gradient_norm: float
    n_evaluations: int
    elapsed: float
    weights: Floats
    gap: float = nan
    score: float = nan
    scores: Sequence[tuple[int, float]] = ()
    model: Callable[[], Any] | None = None

    @property
    def best_score(self) -> float:
        """The best validation score so far; NaN if there is none yet."""
        return max((score for _, score in self.scores), default=nan)


#: Called after each iteration; returning True stops the solver.
Callback = Callable[[Iteration], "bool | None"]


@dataclass
class Solution:
    """The weights found, their objective, and how the run went.

    `details` has further figures of the solver, one number per iteration each.
    """

    weights: Floats
    value: float
    gradient_norm: float
    status: Status
    n_iter: int
    n_evaluations: int
    elapsed: float
    history: list[float] = field(default_factory=list)  # the value after each iteration
    gap: float = nan  # the duality gap, where the solver knows one
    details: dict[str, list[float]] = field(default_factory=dict)
    n_products: int = 0  # Hessian–vector products
    times: list[float] = field(default_factory=list)  # seconds until the end of each iteration
