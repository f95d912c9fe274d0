"""Tables of numbers, whose rows are examples: how rows look, and the names of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._validate import array_of, is_list, is_sparse, numbers
from chordal.explore._shapes import Shapes, letters
from chordal.explore._subject import Looks
from chordal.explore._weights import Attributes, occurrences_of
from chordal.features import Occurrences
from chordal.structures import offsets_of

PEEK = 6  # columns that the list of examples shows
SPARSE = 0.5  # share of entries that are not zero, at most, for "contains" to tell rows apart


def as_rows(X: Any) -> Any:
    """A table as an array or a sparse matrix."""
    if is_sparse(X):
        return X.tocsr()
    table = array_of(X)
    if table.ndim != 2:
        raise ValueError(f"X must be a table [n_samples, n_features], got shape {table.shape}")
    return table if table.dtype.kind in "fO" else numbers(table, "X")


def column_names(model: Any, n: int) -> list[str]:
    """What the columns are called: by their names in training, else by their numbers."""
    given = getattr(model, "feature_names_in_", None)
    return [f"x{k}" for k in range(n)] if given is None else [str(name) for name in given]


def nonzero(X: Any) -> Occurrences | None:
    """The entries of a table that are not zero; None for rows that are not numbers."""
    if is_sparse(X):
        table = X.tocsr().copy()
        table.sum_duplicates()
        table.eliminate_zeros()
        ids = np.asarray(table.indices, dtype=np.int32)
        return Occurrences(np.asarray(table.indptr, dtype=np.int64), ids, np.asarray(table.data))
    try:
        return occurrences_of(np.asarray(X, dtype=np.float64))
    except (TypeError, ValueError):
        return None


def shapes_of_rows(kind: str, model: Any, X: Any, looks: Looks) -> Shapes:
    """Rows as texts or images if these are given; and what the list shows and finds of columns."""
    n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
    found = nonzero(X)
    width = 0 if found is None else int(np.shape(X)[1])
    columns: dict[str, NDArray[Any]] = {}
    listed: dict[str, list[str]] = {}
    if found is not None and len(found.ids) <= SPARSE * n * width:
        if len(found.ids) <= looks.max_attributes:
            used, ids = np.unique(found.ids, return_inverse=True)
            every = column_names(model, width)
            columns |= {"feature_counts": np.diff(found.offsets), "feature_ids": ids.ravel()}
            listed["features"] = [every[k] for k in used.tolist()]
    elif width:
        dense = X.toarray() if is_sparse(X) else np.asarray(X, dtype=np.float64)
        columns["peek"] = dense[:, :PEEK].astype(np.float32).ravel()
        listed["peek"] = column_names(model, width)[:PEEK]
    if looks.tokens is not None:
        listed["texts"] = _texts(looks.tokens, n)
    pixels, facts = np.zeros(0, dtype=np.uint8), {}
    if looks.image_shape is not None:
        dense = X.toarray() if is_sparse(X) else np.asarray(X, dtype=np.float64)
        drawn = letters(kind, [dense], looks.image_shape)
        pixels, facts = drawn.pixels, drawn.facts
    return Shapes(kind, pixels=pixels, facts=facts, columns=columns, listed=listed)


def _texts(tokens: Any, n: int) -> list[str]:
    """One text for each row; several strings are joined by spaces."""
    for i, own in enumerate(tokens):
        if not isinstance(own, str) and not is_list(own):
            raise TypeError(f"tokens[{i}] must be a text or a list of strings, got {own!r:.60}")
    texts = [own if isinstance(own, str) else " ".join(map(str, own)) for own in tokens]
    if len(texts) != n:
        raise ValueError(f"tokens must have one text per row ({n}), got {len(texts)}")
    return texts


def unweighted(model: Any, X: Any) -> Attributes | None:
    """The columns of rows without weights: values to show beside a score."""
    found = nonzero(X)
    if found is None:
        return None
    names = column_names(model, int(np.shape(X)[1]))
    none = np.zeros(0, dtype=np.int64)
    return Attributes(names, offsets_of(np.zeros(len(names))), none, np.zeros(0), found)
