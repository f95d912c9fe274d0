"""Answers to several requests from one call of a model."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._entities import entities_in, entity_probabilities
from chordal._kernels import TimeLimitError
from chordal._limits import time_limit
from chordal.metrics import Chunk
from chordal.serve._questions import Question
from chordal.serve._refusal import Refusal
from chordal.serve._results import Found, answer_of
from chordal.serve._shelf import Loaded
from chordal.structures import offsets_of

log = logging.getLogger("chordal.serve")

Floats = NDArray[np.float64]


@dataclass(eq=False, slots=True)
class Task:
    """A question, and the model that answers it."""

    loaded: Loaded
    question: Question


def answers(tasks: Sequence[Task], seconds: float | None = None) -> list[bytes | Refusal]:
    """The answer to each task: JSON, or the reason why there is none.

    Tasks of one model with the same constraints share its calls. If a call fails, each task is
    tried alone, so that one request does not affect others.
    """
    groups: dict[tuple[int, str | None, str | None], list[int]] = defaultdict(list)
    for k, task in enumerate(tasks):
        groups[id(task.loaded), task.question.method, task.question.constrain].append(k)
    out: list[bytes | Refusal] = [b""] * len(tasks)
    with time_limit(seconds):
        for places in groups.values():
            own = [tasks[k] for k in places]
            for k, answer in zip(places, _answers(own), strict=True):
                out[k] = answer
    return out


def _answers(tasks: Sequence[Task]) -> list[bytes | Refusal]:
    try:
        return list(_together(tasks))
    except Exception as error:
        if len(tasks) > 1:
            return [_answers([task])[0] for task in tasks]
        return [_refusal(error)]


def _refusal(error: Exception) -> Refusal:
    """The message for a client when a call of the model fails."""
    if isinstance(error, TimeLimitError):
        return Refusal(503, "there was not enough time for this request", retry_after=1)
    if isinstance(error, MemoryError):
        return Refusal(503, "there is not enough memory for this request", retry_after=1)
    if isinstance(error, (ValueError, TypeError)):  # the library's words for bad input
        return Refusal(422, str(error))
    log.error("an error inside the model", exc_info=error)
    return Refusal(500, "an error inside the server; its log has more")


def _together(tasks: Sequence[Task]) -> list[bytes]:
    """Answers of one model to questions with the same constraints."""
    loaded = tasks[0].loaded
    found = [
        [[Found(x, task.question) for x in sample.X] for sample in task.question.samples]
        for task in tasks
    ]
    every = [one for of_task in found for of_sample in of_task for one in of_sample if len(one.x)]
    _fill(every, loaded)
    return [answer_of(loaded, t.question, own) for t, own in zip(tasks, found, strict=True)]


def _fill(every: list[Found], loaded: Loaded) -> None:
    """Ask the model what the questions about these sequences need, and no more."""
    if not every:
        return
    for one, codes in zip(every, _codes(every, loaded), strict=True):
        one.codes = codes
    soft = [one for one in every if one.question.probabilities or one.question.marginals]
    for one, table in zip(soft, _marginals(soft, loaded), strict=True):
        one.marginals = table
    for k in {one.question.k_best for one in every} - {0}:
        mine = [one for one in every if one.question.k_best == k]
        ranked = loaded.model.k_best([one.x for one in mine], k, **_constraint(mine))
        for one, own in zip(mine, ranked, strict=True):
            one.ranked = own
    if loaded.scheme is not None:
        _fill_entities([one for one in every if one.question.spans], loaded, loaded.scheme)


def _constraint(some: Sequence[Found]) -> dict[str, Any]:
    return {"allowed_transitions": some[0].question.constrain}


def _codes(every: list[Found], loaded: Loaded) -> list[list[int]]:
    """Numbers of the best labels of each sequence."""
    question, X = every[0].question, [one.x for one in every]
    offsets = offsets_of([len(x) for x in X])
    model, scheme = loaded.model, question.constrain
    ask: Callable[..., NDArray[np.int32]] = model.predict_codes
    by_map = (question.method or loaded.method) == "map"
    if scheme is None or scheme != loaded.scheme or loaded.legal is None or not by_map:
        codes = ask(X, method=question.method, allowed_transitions=scheme)
    else:
        # The best labelling of all is the best of the legal ones if it is legal, as it mostly is;
        # and without constraints a single sequence takes the model's quick way.
        codes = ask(X, method=question.method)
        broken = loaded.legal.broken(codes, offsets)
        if len(broken):
            again = ask([X[k] for k in broken], method="map", allowed_transitions=scheme)
            places = np.concatenate([np.arange(offsets[k], offsets[k + 1]) for k in broken])
            codes[places] = again
    flat = codes.tolist()
    return [flat[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


def _marginals(some: list[Found], loaded: Loaded) -> list[Floats]:
    if not some:
        return []
    tables = loaded.model.predict_marginals([one.x for one in some], **_constraint(some))
    return list(tables)


def _fill_entities(some: list[Found], loaded: Loaded, scheme: str) -> None:
    """Entities of labels of a scheme, and their probabilities where they are asked for."""
    names = loaded.labels
    found: list[list[Chunk]] = entities_in([[names[k] for k in one.codes] for one in some], scheme)
    for one, own in zip(some, found, strict=True):
        one.entities = own
    asked = [one for one in some if one.question.probabilities and one.entities]
    if asked:
        X, entities = [one.x for one in asked], [one.entities for one in asked]
        chances = entity_probabilities(loaded.model, X, entities, scheme)
        for one, row in zip(asked, chances, strict=True):
            one.chances = row
