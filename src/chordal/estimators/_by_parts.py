"""Predictions for prepared data sets, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._estimator import ExampleList
from chordal.estimators._asking import StoredExamples, best
from chordal.estimators._training.preparing import datasets_of, labels_of, reader_of
from chordal.estimators._training.stored import read_part, stored_labels
from chordal.features import Batch, Cliques, Input, Reader, Rows, known_columns
from chordal.labels import observed
from chordal.prepared import Dataset
from chordal.progress import Progress

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

Ints = NDArray[np.int64]


def answered(
    model: Any, answer: Callable[..., Any], X: object, args: Any, options: Mapping[str, Any]
) -> Any:
    """The model's answers for all parts of data sets, in order."""
    if options.get("allowed_labels") is not None:
        raise UnsupportedError("allowed_labels needs examples in memory, not a data set")
    model._check_fitted()
    parts = watched_parts(model, answer.__name__, datasets_of(X) or [])
    found = [answer(model, own, *args, **options) for own in parts]
    if isinstance(found[0], np.ndarray):
        return np.concatenate(found)
    return ExampleList([one for part in found for one in part])


def scored(model: Any, X: object, sample_weight: object) -> float:
    """The share of stored labels that a model predicts correctly."""
    if sample_weight is not None:
        raise UnsupportedError("sample_weight needs examples in memory, not a data set")
    model._check_fitted()
    right = total = 0
    for part in watched_parts(model, "score", datasets_of(X) or []):
        gold, seen = model.labels_.encode(part.labels, unknown=-1), observed(part.labels)
        _, _, numbers = best(model, part, None)
        right, total = right + int((seen & (numbers == gold)).sum()), total + int(seen.sum())
    if not total:
        raise ValueError("nothing to score: the data set has no observed label")
    return right / total


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
    for data in datasets:
        own, labels = reader_of(_unfitted(model), data), labels_of(model, data)
        columns = _columns(model.reader_, own)
        for k in range(data.n_parts):
            batch = read_part(data, k, own)
            yield StoredExamples(
                _known(batch, model.reader_, columns), stored_labels(data, k, batch, labels)
            )
            data.release(k)


def _unfitted(model: BaseCRF) -> BaseCRF:
    """An unfitted copy that can take the facts of a data set."""
    return copy(model)


def _columns(reader: Reader, stored: Reader) -> list[Ints | None]:
    """For each template, the model's number of each data column; −1 if unknown."""
    out: list[Ints | None] = []
    for template, mine, own in zip(reader.templates, reader.inputs, stored.inputs, strict=True):
        if mine is None or own is None:
            out.append(None)
            continue
        try:
            out.append(known_columns(mine, own))
        except ValueError as error:
            raise ValueError(f"features of template {template.name!r} {error}") from None
    return out


def _known(batch: Batch, reader: Reader, columns: list[Ints | None]) -> Batch:
    """A batch in the model's numbering."""
    cliques = [
        _known_rows(own, source, numbers)
        for own, source, numbers in zip(batch.cliques, reader.inputs, columns, strict=True)
    ]
    return replace(batch, cliques=cliques)


def _known_rows(own: Cliques, source: Input | None, numbers: Ints | None) -> Cliques:
    rows = own.rows
    if source is None:
        return replace(own, rows=None)
    if rows is None:  # arrays that no token of the data has
        return replace(
            own, rows=Rows(own.counts, np.zeros((int(own.counts.sum()), source.n_columns)))
        )
    if numbers is None:
        return own
    if isinstance(rows.data, np.ndarray):
        data = np.zeros((len(rows.data), source.n_columns), dtype=rows.data.dtype)
        data[:, numbers] = rows.data
        return replace(own, rows=Rows(rows.lengths, data))
    return replace(own, rows=Rows(rows.lengths, rows.data.renumbered(numbers)))
