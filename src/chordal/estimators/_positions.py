"""Single positions of sequences, as rows for a classifier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain as chained
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._optional import needed
from chordal._sparse import check_sparse
from chordal._validate import is_sparse
from chordal.estimators._training.on_part import Given
from chordal.features import length_of
from chordal.potentials import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: All positions of some sequences.
Positions = Any


class PositionRows(NamedTuple):
    """Single positions of a part, for a classifier."""

    rows: Positions
    labels: list[Any]
    weight: Floats | None


def kind_of_rows(x: object) -> str:
    """The kind of a sequence: "sparse", "dense" or "tokens"."""
    if is_sparse(x):
        return "sparse"
    return "dense" if isinstance(x, np.ndarray) else "tokens"


def rows_of(part: Given, weighted: bool) -> PositionRows | None:
    """The positions of a part, each with the weight of its sequence; None if there are none."""
    X, y, weight = part
    lengths = [length_of(x) for x in X]
    if not sum(lengths):
        return None
    if weighted:
        weight = np.repeat(np.ones(len(X)) if weight is None else np.asarray(weight), lengths)
    labels = list(chained.from_iterable(_plain(own) for own in y))
    return PositionRows(positions(X), labels, weight if weighted else None)


def positions(X: Sequence[Any]) -> Positions:
    """All positions of all sequences, in the type of the sequences."""
    if is_sparse(X[0]):
        for i, x in enumerate(X):
            check_sparse(x, f"X[{i}]")
    return stacked(X, copy=True)


def stacked(blocks: Sequence[Any], copy: bool = False) -> NDArray[Any] | list[Any] | csr_array:
    """Rows of several blocks as one of the same type; one block is not copied unless asked."""
    if len(blocks) == 1 and not copy:
        found: NDArray[Any] | list[Any] | csr_array = blocks[0]
        return found
    if is_sparse(blocks[0]):
        with needed("scipy", "a sparse matrix"):
            import scipy.sparse as sp

        return sp.vstack(blocks, format="csr")
    if isinstance(blocks[0], np.ndarray):
        return np.concatenate(blocks)
    return list(chained.from_iterable(blocks))


def _plain(labels: Iterable[Any]) -> list[Any]:
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
