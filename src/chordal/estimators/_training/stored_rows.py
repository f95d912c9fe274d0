"""The rows and cliques of a part of a data set, in the forms in which users give them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._optional import needed
from chordal.estimators._training.row_forms import PLAIN, RowForm
from chordal.features import (
    AttributeInput,
    Batch,
    Input,
    Occurrences,
    Reader,
    Rows,
    SparseInput,
    VectorInput,
)
from chordal.structures import offsets_of

Ints = NDArray[np.int64]


class StoredRows:
    """The rows and cliques of a part, by template and example.

    Parameters
    ----------
    reader : Reader
    batch : Batch
    form : RowForm
        Form of the rows of variables.
    shapes : int64 [n_examples, n_axes], optional
        Shapes of images.
    """

    def __init__(self, reader: Reader, batch: Batch, form: RowForm, shapes: Ints | None) -> None:
        self.reader, self.batch, self.form, self.shapes = reader, batch, form, shapes
        self._known: dict[str, Any] = {}

    def observed(self, name: str, beside: str | None = None) -> list[Any]:
        """The observations of a template's variables, as the user gave them.

        The arrays of the template `beside` stand among named attributes.
        """
        rows = self.rows(name, beside)
        if self.form == PLAIN:
            return rows
        return [self.form.restored(own, self._known) for own in rows]

    def rows(self, name: str, beside: str | None = None) -> list[Any]:
        """The rows of a template, for each example."""
        data = self.table(name)
        if beside is not None and self._cliques(beside).rows is not None:
            data = self._with_vectors(data, beside)
        limits = self._cliques(name).rows.offsets.tolist()
        return [data[a:b] for a, b in pairwise(limits)]

    def table(self, name: str) -> Any:
        """The rows of all examples, one after another."""
        return _readable(self._cliques(name).rows, self.reader.input(name))

    def has_rows(self, name: str) -> bool:
        """Whether the template has observations."""
        return self.reader.input(name) is not None

    def scopes(self, name: str) -> list[Ints]:
        """The cliques of a template, for each example, by numbers of its variables."""
        spelled = self._cliques(name).spelled(self.batch.sizes)
        limits = spelled.offsets.tolist()
        return [np.asarray(spelled.scopes[a:b]) for a, b in pairwise(limits)]

    def _cliques(self, name: str) -> Any:
        names = [template.name for template in self.reader.templates]
        return self.batch.cliques[names.index(name)]

    def _with_vectors(self, tokens: list[Any], name: str) -> list[Any]:
        """Tokens with the arrays that stand among their attributes; absent ones are zeros."""
        source, rows = self.reader.input(name), self._cliques(name).rows
        assert isinstance(source, VectorInput)
        found: list[Any] = [
            own if isinstance(own, dict) else dict.fromkeys(own, 1.0) for own in tokens
        ]
        limits = offsets_of(list(source.widths.values())).tolist()
        for vector, (a, b) in zip(source.widths, pairwise(limits), strict=True):
            own = np.asarray(rows.data[:, a:b])
            for t in np.flatnonzero(own.any(axis=1)).tolist():
                found[t][vector] = own[t]
        return found


def _readable(rows: Rows, source: Input | None) -> Any:
    """Rows as users give them: a matrix of all, or a list of tokens."""
    data = rows.data
    if isinstance(data, np.ndarray):
        return data
    assert isinstance(data, Occurrences)
    if isinstance(source, SparseInput):
        with needed("scipy", "a sparse matrix"):
            from scipy.sparse import csr_array

        values = np.ones(len(data.ids)) if data.values is None else data.values
        return csr_array((values, data.ids, data.offsets), (rows.n_rows, source.n_columns))
    if not isinstance(source, AttributeInput):
        raise UnsupportedError(
            "examples that a feature_template has read cannot be restored from a data set"
        )
    numbers, which = np.unique(data.ids, return_inverse=True)
    names = [source.name(number) for number in numbers.tolist()]
    flat = [names[j] for j in which.tolist()]
    limits = pairwise(data.offsets.tolist())
    if data.values is None:
        return [flat[a:b] for a, b in limits]
    values = data.values.tolist()
    return [_summed(flat[a:b], values[a:b]) for a, b in limits]


def _summed(names: list[str], values: list[float]) -> dict[str, float]:
    token: dict[str, float] = {}
    for name, value in zip(names, values, strict=True):
        token[name] = token.get(name, 0.0) + value
    return token
