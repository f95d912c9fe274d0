"""Predictions for prepared data sets, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from numbers import Integral
from typing import Any, TypeVar

import numpy as np

from chordal._errors import UnsupportedError
from chordal._estimator import ExampleList
from chordal._validate import generator_from
from chordal.estimators._asking import Model, StoredExamples, best
from chordal.estimators._still import still
from chordal.estimators._training.known import known_parts
from chordal.estimators._training.preparing import datasets_of
from chordal.labels import observed
from chordal.prepared import Dataset
from chordal.progress import Progress

M = TypeVar("M", bound=Model)


def answered(
    model: Any, answer: Callable[..., Any], X: object, args: Any, options: Mapping[str, Any]
) -> Any:
    """The model's answers for all parts of data sets, in order."""
    if options.get("allowed_labels") is not None:
        raise UnsupportedError("allowed_labels needs examples in memory, not a data set")
    model._check_fitted()
    model = of_one_stream(still(model))
    parts = watched_parts(model, answer.__name__, datasets_of(X) or [])
    found = [answer(model, own, *args, **options) for own in parts]
    if isinstance(found[0], np.ndarray):
        return np.concatenate(found)
    return ExampleList([one for part in found for one in part])


def of_one_stream(model: M) -> M:
    """A model whose seed begins one stream of random numbers, not the same one in every part."""
    if isinstance(model.random_state, Integral):
        model = copy(model)
        model.random_state = generator_from(model.random_state)
    return model


def scored(model: Any, X: object, sample_weight: object) -> float:
    """The share of stored labels that a model predicts correctly."""
    if sample_weight is not None:
        raise UnsupportedError("sample_weight needs examples in memory, not a data set")
    right, total = counts_right(model, X)
    if not total:
        raise ValueError("nothing to score: the data set has no observed label")
    return right / total


def counts_right(model: Any, X: object) -> tuple[int, int]:
    """How many stored labels a model predicts correctly, and how many there are."""
    model._check_fitted()
    right = total = 0
    for part in watched_parts(model, "score", datasets_of(X) or []):
        gold, seen = model.labels_.encode(part.labels, unknown=-1), observed(part.labels)
        _, _, numbers = best(model, part, None)
        right, total = right + int((seen & (numbers == gold)).sum()), total + int(seen.sum())
    return right, total


def watched_parts(model: Any, task: str, datasets: Sequence[Dataset]) -> Iterator[StoredExamples]:
    """The parts, with progress as `verbose` of the model says."""
    total = sum(data.n_parts for data in datasets)
    n_done = n_variables = 0
    with Progress(task, total, "part", verbose=model.verbose) as progress:
        for part in parts_of(model, datasets):
            pace = n_variables / max(progress.elapsed, 1e-3)
            progress.update(n_done + 1, f"{pace:,.0f} variables/s", share=n_done / total)
            yield part
            n_done, n_variables = n_done + 1, n_variables + int(part.batch.sizes.sum())


def parts_of(model: Any, datasets: Sequence[Dataset]) -> Iterator[StoredExamples]:
    """The parts of data sets in the model's numbering, without unknown attributes."""
    first = 0
    for part in known_parts(model, model.reader_, datasets):
        yield StoredExamples(part.batch, part.labels, part.shapes, first)
        first += len(part.batch.sizes)
