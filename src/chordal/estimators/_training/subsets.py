"""Some examples of prepared data sets, as data sets: folds of a cross-validation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chordal.estimators._training.preparing import labels_of, reader_of
from chordal.estimators._training.stored import (
    naming,
    read_part,
    stored_labels,
    stored_shapes,
    stored_weight,
)
from chordal.features import Batch, Reader
from chordal.prepared import Dataset, Writer, target_from_arrays, target_to_arrays, to_arrays

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]


def subsets(
    estimator: BaseCRF, datasets: Sequence[Dataset], chosen: Flags, folder: str
) -> list[Dataset]:
    """The examples that are chosen, written to the folder: a data set for each that has any."""
    os.makedirs(folder)
    made = []
    ends = np.cumsum([data.n_examples for data in datasets])
    for k, (data, own) in enumerate(zip(datasets, np.split(chosen, ends[:-1]), strict=True)):
        if own.any():
            made.append(_subset(estimator, data, own, os.path.join(folder, str(k))))
    return made


def _subset(estimator: BaseCRF, data: Dataset, chosen: Flags, path: str) -> Dataset:
    reader = reader_of(copy(estimator), data)
    ends = np.cumsum([part.examples for part in data.parts])
    with Writer(path) as writer:
        for k, own in enumerate(np.split(chosen, ends[:-1])):
            examples = np.flatnonzero(own)
            if len(examples):
                found, facts, arrays = _some(data, k, reader, examples)
                writer.add(facts, arrays, len(examples), int(found.sizes.sum()))
        writer.finish(data.facts, data.vocabulary)
    return Dataset(path)


def _some(
    data: Dataset, k: int, reader: Reader, examples: Ints
) -> tuple[Batch, dict[str, Any], dict[str, NDArray[Any]]]:
    """These examples of a part: as a batch, and as facts and arrays."""
    facts, arrays = data.part(k)
    batch = read_part(data, k, reader)
    if len(batch.sizes) != data.parts[k].examples:
        raise ValueError(f"{data.path}: part {k} has another number of examples than its index")
    found = batch.reordered(examples)
    kept, stored = to_arrays(found)
    kept |= {"target": facts["target"], "n_labels": facts["n_labels"]}
    with naming(data, k):
        if facts["target"] != "none":
            n, own = int(batch.sizes.sum()), batch.positions(examples)
            target, seen = target_from_arrays(facts["target"], arrays, n, facts["n_labels"])
            seen = np.ones(n, dtype=bool) if seen is None else seen
            stored |= target_to_arrays(target[own], seen[own])[1]
        weight, shapes = stored_weight(arrays), stored_shapes(arrays, batch.sizes)
    if weight is not None:
        stored["weight"] = weight[examples]
    if shapes is not None:
        stored["shapes"] = shapes[examples].ravel()
    return found, kept, stored


def labels_in(estimator: BaseCRF, datasets: Sequence[Dataset]) -> list[list[Any]]:
    """The labels of the examples of data sets; None if no label is known."""
    found: list[list[Any]] = []
    for data in datasets:
        reader, labels = reader_of(copy(estimator), data), labels_of(estimator, data)
        for k in range(data.n_parts):
            found += stored_labels(data, k, read_part(data, k, reader), labels)
            data.release(k)
    return found
