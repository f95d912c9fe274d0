"""Parts of data sets in the numbering of a model, without attributes that it does not know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal.estimators._training.preparing import check_own_facts, labels_of, reader_of
from chordal.estimators._training.stored import naming, read_part, stored_labels, stored_shapes
from chordal.features import Batch, Cliques, Input, Reader, Rows, known_columns
from chordal.prepared import Dataset

if TYPE_CHECKING:
    from chordal.estimators._crf import BaseCRF

Ints = NDArray[np.int64]


class KnownPart(NamedTuple):
    """The examples of a part, their labels (None: unknown) and, of images, their shapes."""

    batch: Batch
    labels: list[list[Any]]
    shapes: Ints | None


def known_parts(model: BaseCRF, reader: Reader, datasets: Sequence[Dataset]) -> Iterator[KnownPart]:
    """The parts of data sets, as the reader of a model would read their examples."""
    for data in datasets:
        own, labels = reader_of(copy(model), data), labels_of(model, data)
        check_own_facts(model._own_facts(), data, "the model")
        columns = _columns(reader, own)
        for k in range(data.n_parts):
            batch = read_part(data, k, own)
            with naming(data, k):
                shapes = stored_shapes(data.part(k)[1], batch.sizes)
            known = _known(batch, reader, columns)
            yield KnownPart(known, stored_labels(data, k, batch, labels), shapes)
            data.release(k)


def _columns(reader: Reader, stored: Reader) -> list[Ints | None]:
    """For each template, the model's number of each data column; −1 if unknown."""
    out: list[Ints | None] = []
    for template, other in zip(reader.templates, stored.templates, strict=True):
        if (template.features is None) != (other.features is None):
            who = ["data have", "model has"][template.features is None]
            raise ValueError(
                f"only one of model and data has features of template {template.name!r}: the {who} "
                "none"
            )
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
