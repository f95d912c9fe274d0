"""Time and memory limits around each question to an inference method."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import inf
from typing import ClassVar, Protocol, TypeVar, cast

import numpy as np

from chordal import _kernels
from chordal._errors import UnsupportedError
from chordal._limits import TimeLimitError, time_limit
from chordal._memory import size_of
from chordal._status import Status
from chordal._validate import check_number, check_weight
from chordal.inference._answers import Convergence, Decoded
from chordal.inference._cliques import most_probable_labels
from chordal.potentials import Potentials
from chordal.structures import Structure

R = TypeVar("R")

#: The methods of `Inference` that answer a question.
QUESTIONS = frozenset(
    {
        "log_partition",
        "marginals",
        "marginals_derivative",
        "map",
        "relaxed_map",
        "k_best",
        "map_by_cost",
        "sample",
        "entropy",
        "span_log_probability",
    }
)
#: The place of `weight` among the arguments after the potentials.
_WEIGHTED = {"marginals": 0, "relaxed_map": 0, "marginals_derivative": 1}
#: Number of states and cells below which memory is not estimated: every machine has enough.
FEW = 100_000
#: Estimates below this are not compared with the available memory: every machine has enough.
SMALL = 1e8


class Limited(Protocol):
    """The limits of an inference method."""

    anytime: ClassVar[bool]
    time_limit: float | None
    memory_limit: float | None

    @property
    def name(self) -> str:
        """Its name in the registry."""

    @property
    def copies(self) -> float:
        """How often something is stored for each variable."""

    @property
    def memory_budget(self) -> float:
        """Bytes that an answer may need."""

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """Bytes that an answer needs, estimated."""


def limited(question: str, answer: Callable[..., R]) -> Callable[..., R]:
    """Wrap a question so that it respects `time_limit` and `memory_limit`."""

    @wraps(answer)
    def ask(self: Limited, potentials: Potentials, *rest: object, **named: object) -> R:
        if not isinstance(potentials, Potentials):
            raise TypeError(
                f"{question} needs Potentials, got {type(potentials).__name__}; see "
                "`estimator.potentials(X)`"
            )
        if question in _WEIGHTED:
            place = _WEIGHTED[question]
            weight = rest[place] if len(rest) > place else named.get("weight")
            check_weight(weight, potentials.structure.n_examples)
        _refuse_large(self, question, potentials, rest, named)
        if self.time_limit is None and _kernels.deadline() == inf:  # nothing more to do
            return answer(self, potentials, *rest, **named)
        with time_limit(self.time_limit):
            try:
                return answer(self, potentials, *rest, **named)
            except TimeLimitError:
                if self.anytime and question == "map":
                    return cast("R", without_time(potentials))
                raise _too_late(self, question, potentials) from None

    return ask


def without_time(potentials: Potentials) -> Decoded:
    """The best label of each single variable: the result if there is no time to iterate."""
    labels = most_probable_labels(potentials)
    score = potentials.score(labels)
    bound = np.maximum(potentials.bound(), score)
    return Decoded(labels, score, bound, Convergence(Status.MAX_TIME, 0, inf))


def late(ended: Convergence | None) -> Convergence:
    """The same convergence with the status of the time limit."""
    n_iter = 0 if ended is None else ended.n_iter
    return Convergence(Status.MAX_TIME, n_iter, inf)


def _too_late(method: Limited, question: str, potentials: Potentials) -> TimeLimitError:
    from chordal.inference import INFERENCE

    within = "the time limit"
    if method.time_limit is not None:
        within = f"time_limit={method.time_limit:g} seconds"
    ranked = sorted(
        (-cls.quality[question], cls.__module__.rpartition(".")[2])
        for cls in INFERENCE.classes()
        if cls.anytime and question in cls.quality and cls().fits(question, potentials.structure)
    )
    instead = "use fewer labels or examples at a time"
    if ranked and question != "sample":
        instead = f"use {ranked[0][1]!r}, which returns the best it has when time is over"
    return TimeLimitError(
        f"inference {method.name!r} did not answer {question!r} within {within}; raise it, or "
        + instead
    )


def _refuse_large(
    method: Limited,
    question: str,
    potentials: Potentials,
    rest: tuple[object, ...],
    named: dict[str, object],
) -> None:
    """Raise an error for an answer that would need too much memory."""
    n = rest[0] if rest else named.get("k", named.get("n"))
    if question == "k_best":
        check_number("k", n, minimum=1, integer=True)
    if question == "sample":
        check_number("n", n, integer=True)
        rng = rest[1] if len(rest) > 1 else named.get("rng")
        if not isinstance(rng, np.random.Generator):
            raise TypeError(
                f"rng must be a numpy Generator, as of np.random.default_rng(0); got {rng!r}"
            )
    count = int(n) if isinstance(n, (int, np.integer)) else 1
    size = len(potentials.unary) + len(potentials.structure.scopes)
    if method.memory_limit is None and count * size * method.copies < FEW:
        return
    needed = method.memory(potentials.structure, question, count)
    if needed <= (SMALL if method.memory_limit is None else method.memory_limit):
        return
    if needed > method.memory_budget:
        raise UnsupportedError(
            f"inference {method.name!r} would need about {size_of(needed)} for {question!r}; "
            f"memory_limit is {size_of(method.memory_budget)}. Raise it, or give smaller batches"
        )
