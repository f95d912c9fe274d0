"""From a part of a prepared data set back to examples.

A data set stores what the reader of a CRF has read. That is enough to make examples which the same
CRF reads in the same way, for estimators that learn from examples: networks, classifiers of
positions, counts.
"""

from __future__ import annotations

from copy import copy
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chordal.estimators._training.on_part import Given
from chordal.estimators._training.preparing import labels_of, reader_of
from chordal.estimators._training.row_forms import RowForm
from chordal.estimators._training.stored import naming, read_part, stored_shapes, stored_weight
from chordal.estimators._training.stored_rows import StoredRows
from chordal.labels import SequenceLabels
from chordal.prepared import Dataset, target_from_arrays
from chordal.structures import offsets_of
from chordal.targets import PartialLabels, SoftLabels

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

Ints = NDArray[np.int64]


def examples_of(estimator: BaseCRF, data: Dataset, k: int) -> Given:
    """The examples (X, y, weight) of part k of a data set, as the estimator reads them.

    Rows of numbers come back as arrays, sparse rows as CSR matrices, and named attributes as lists
    of text, or as dicts if they have values. Symbols and small arrays come back as they were given
    (`RowForm`). Labels that are not observed are None; there may be sets, and dicts of
    probabilities. The weight is None if the part has no weights.

    Parameters
    ----------
    estimator : BaseCRF
        The estimator that prepared the data, or one that reads examples in the same way. A data set
        of another model is a `DatasetError` that says what differs.
    data : Dataset
    k : int
        The number of the part.
    """
    facts, arrays = data.part(k)
    form = RowForm.of(data.facts)
    estimator = copy(estimator)
    reader, labels = reader_of(estimator, data, form), labels_of(estimator, data)
    batch = read_part(data, k, reader)
    with naming(data, k):
        shapes = stored_shapes(arrays, batch.sizes)
        X = estimator._restored(StoredRows(reader, batch, form, shapes))
        weight = stored_weight(arrays)
        n = int(batch.sizes.sum())
        flat = _labels(facts, arrays, n, labels)
        y = estimator._restored_labels(_split(flat, batch.sizes), X)
    return Given(X, y, weight)


def _labels(facts: Any, arrays: Any, n: int, labels: SequenceLabels) -> list[Any] | NDArray[Any]:
    """The labels of all variables of a part."""
    kind, named = facts["target"], labels.labels
    if kind == "none":
        return [None] * n
    target, observed = target_from_arrays(kind, arrays, n, facts["n_labels"])
    if isinstance(target, PartialLabels):
        assert observed is not None
        table = target.allowed.reshape(n, -1)
        single = (table.sum(axis=1) == 1).tolist()
        best = table.argmax(axis=1).tolist()
        return [
            None if not seen else named[code] if one else {named[j] for j in np.flatnonzero(row)}
            for seen, one, code, row in zip(observed.tolist(), single, best, table, strict=True)
        ]
    if isinstance(target, SoftLabels):
        rows = target.probability.reshape(n, -1)
        return [{named[j]: float(row[j]) for j in np.flatnonzero(row)} for row in rows]
    if labels.as_list:
        return [named[code] for code in target.tolist()]
    (found,) = labels.decode(target, np.array([n], dtype=np.int64))
    return np.asarray(found)


def _split(flat: list[Any] | NDArray[Any], sizes: Ints) -> list[Any]:
    return [flat[a:b] for a, b in pairwise(offsets_of(sizes).tolist())]
