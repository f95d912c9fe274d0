"""Prepared data of estimators that wrap a CRF: writing examples, and getting them back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from chordal._errors import InfeasibleError, UnsupportedError
from chordal._estimator import ExampleList
from chordal._scratch import scratch_folder
from chordal._validate import check_sample_weight
from chordal.estimators._by_parts import of_one_stream
from chordal.estimators._training.choosing import validation_pair
from chordal.estimators._training.crews import Handle, Tasks
from chordal.estimators._training.examples import examples_of
from chordal.estimators._training.here import LocalCrew, train_here
from chordal.estimators._training.on_part import Given, PreparedPart
from chordal.estimators._training.preparing import datasets_of, is_stored, is_stream, prepare
from chordal.estimators._training.row_forms import RowForm
from chordal.features import length_of
from chordal.potentials import Floats
from chordal.prepared import Dataset, DatasetError

if TYPE_CHECKING:
    from chordal.estimators._wrapped import Train, Wrapped


def keep(
    model: Wrapped,
    path: str | os.PathLike[str],
    X: Any,
    y: object = None,
    sample_weight: object = None,
    append: bool = False,
) -> Dataset:
    """Write examples for a wrapped estimator; see `Wrapped.prepare`."""
    model._check()
    first = X
    if y is None and is_stream(X):
        first, X = _first_batch(model, X)
    keeping = model._keeping(first)._replace(name=type(model).__name__)
    return prepare(model._keeper(), path, X, y, sample_weight, append, keeping)


def _first_batch(model: Wrapped, batches: Iterator[Any]) -> tuple[Any, Iterator[Any]]:
    """The examples of the first batch that shows what they are like, and all batches."""
    seen = []
    for batch in batches:
        seen.append(batch)
        some = isinstance(batch, tuple) and len(batch) and length_of(batch[0])
        if some and model._tells(batch[0]):
            return batch[0], chain(seen, batches)
    return [], iter(seen)


def kept_examples(model: Wrapped, data: Dataset, k: int) -> Given:
    """The examples of part k of a data set, as a wrapped estimator takes them."""
    part = examples_of(model._keeper(), data, k)
    try:
        return model._restored(part, RowForm.of(data.facts))
    except (TypeError, ValueError) as error:
        raise DatasetError(
            data.path,
            f"was prepared for another model, a {data.facts.get('class')}: {error}; prepare the "
            f"data again with this {type(model).__name__}",
        ) from error


def kept_part(part: Given, model: Wrapped) -> Given:
    """Examples of a partition, which may be a part of a data set."""
    if isinstance(part.X, PreparedPart):
        return kept_examples(model, part.X.opened(), 0)
    return part


def kept_validation(model: Wrapped, given: object) -> tuple[Any, Any]:
    """X and y of validation data; those of data sets are read into memory."""
    X, y = validation_pair(given)
    datasets = None if y is not None else datasets_of(X)
    if datasets is None:
        return X, y
    parts = [kept_examples(model, data, k) for data in datasets for k in range(data.n_parts)]
    return [x for part in parts for x in part.X], [own for part in parts for own in part.y]


def fit_wrapped(
    model: Wrapped, crew: Tasks, parts: list[Handle], train: Train, **options: Any
) -> None:
    """Fit a wrapped estimator to parts, which may belong to a data set; see `Wrapped._fit_parts`.

    It does not change if an error occurs.
    """
    made = copy(model)
    shared = crew.share(made)
    examples = crew.map(kept_part, parts, shared)
    parts.clear()  # what is read takes their place in memory
    held = options.get("validation_data")
    if isinstance(held, list):  # of handles
        options["validation_data"] = crew.map(kept_part, held, shared)
    made._fit_parts(crew, examples, train, **options)
    vars(model).update(vars(made))


def is_kept(X: object, y: object) -> bool:
    """Whether X names data sets, or is an iterator of batches."""
    return is_stored(X, y) or (y is None and is_stream(X))


def fit_kept(model: Wrapped, X: object, y: object, sample_weight: object, **options: Any) -> None:
    """Fit a wrapped estimator to data sets or batches, part by part.

    It does not change if an error occurs.
    """
    if y is not None:
        raise ValueError("a prepared data set includes its labels: do not pass y")
    with _opened(model, X) as datasets:
        weights = _weights(datasets, sample_weight)
        crew = LocalCrew()
        places = [(data, k) for data in datasets for k in range(data.n_parts)]
        parts = crew.start(
            [
                partial(_read, model, *own, weight)
                for own, weight in zip(places, weights, strict=True)
            ]
        )
        fit_wrapped(model, crew, list(parts), train_here, **options)


@contextmanager
def _opened(model: Wrapped, X: object) -> Iterator[list[Dataset]]:
    """The data sets that X names; batches are first written to a temporary folder."""
    if not is_stream(X):
        yield datasets_of(X) or []
        return
    with scratch_folder("batches") as folder:
        yield [keep(model, os.path.join(folder, "data"), X)]


def _weights(datasets: Sequence[Dataset], given: object) -> list[Floats | None]:
    """The given weights of the examples of every part, if any."""
    sizes = [part.examples for data in datasets for part in data.parts]
    weight = check_sample_weight(given, sum(sizes))
    if weight is None:
        return [None] * len(sizes)
    return list(np.split(weight, np.cumsum(sizes)[:-1]))


def _read(model: Wrapped, data: Dataset, k: int, weight: Floats | None) -> Given:
    part = kept_examples(model, data, k)
    if weight is None:
        return part
    if part.weight is not None:
        raise ValueError("the data set includes weights of its examples: do not pass sample_weight")
    return part._replace(weight=weight)


def answered(
    model: Wrapped, answer: Callable[..., Any], X: object, args: Any, options: Mapping[str, Any]
) -> Any:
    """The answers of a wrapped estimator for all parts of data sets, in order."""
    if options.get("allowed_labels") is not None:
        raise UnsupportedError("allowed_labels needs examples in memory, not a data set")
    model._check_fitted()
    model = copy(model)
    model.crf_ = of_one_stream(model.crf_)
    found: list[Any] = []
    first = 0
    for part in _parts(model, X):
        try:
            found.append(answer(model, part.X, *args, **options))
        except InfeasibleError as error:
            raise error.moved(first) from None
        first += length_of(part.X)
    if isinstance(found[0], np.ndarray):
        return np.concatenate(found)
    return ExampleList([one for part in found for one in part])


def kept_right(model: Wrapped, X: object) -> tuple[int, int]:
    """How many stored labels a wrapped estimator predicts correctly, and how many there are."""
    model._check_fitted()
    numbers = {label: k for k, label in enumerate(model.classes_.tolist())}
    right = total = 0
    for part in _parts(model, X):
        labels = part.y if model.classifies else chain.from_iterable(map(_row, part.y))
        found = model.predict_codes(part.X).tolist()
        for label, code in zip(labels, found, strict=True):
            if label is not None and not isinstance(label, (set, dict)):
                total += 1
                right += numbers.get(label, -1) == code
    return right, total


def _row(labels: Any) -> Any:
    """The labels of an example, also of an image, in a row."""
    return labels.ravel().tolist() if isinstance(labels, np.ndarray) else labels


def scored(model: Wrapped, X: object, sample_weight: object) -> float:
    """The share of stored labels that a wrapped estimator predicts correctly."""
    if sample_weight is not None:
        raise UnsupportedError("sample_weight needs examples in memory, not a data set")
    right, total = kept_right(model, X)
    if not total:
        raise ValueError("nothing to score: the data set has no observed label")
    return right / total


def _parts(model: Wrapped, X: object) -> Iterator[Given]:
    """The parts of data sets, one at a time."""
    for data in datasets_of(X) or []:
        for k in range(data.n_parts):
            yield kept_examples(model, data, k)
            data.release(k)
