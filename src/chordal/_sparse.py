"""Sparse matrices as users hand them over: SciPy accepts indices beyond the shape, and compiled
code, its own and ours, would write wherever they point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chordal._optional import needed

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def check_sparse(x: Any, name: str) -> None:
    """Refuse a sparse matrix with indices beyond its shape; the matrix itself is left as it is."""
    if x.format in ("csr", "csc", "bsr"):
        rows, columns = x.shape
        if x.format == "csc":
            rows, columns = columns, rows
        if x.format == "bsr":
            rows, columns = rows // x.blocksize[0], columns // x.blocksize[1]
        if len(x.indptr) != rows + 1 or x.indptr[0] != 0 or x.indptr[-1] > len(x.indices):
            raise _refused(name)
        if (np.diff(x.indptr) < 0).any() or len(x.data) < x.indptr[-1]:
            raise _refused(name)
        _check_range(x.indices[: x.indptr[-1]], columns, name)
    elif x.format == "coo":
        for indices, size in zip((x.row, x.col), x.shape, strict=True):
            if len(indices) != len(x.data):
                raise _refused(name)
            _check_range(indices, size, name)
    elif x.format == "lil":
        lists = [np.asarray(row, dtype=np.int64) for row in x.rows]
        if [len(row) for row in lists] != [len(row) for row in x.data]:
            raise _refused(name)
        _check_range(np.concatenate([np.zeros(0, np.int64), *lists]), x.shape[1], name)
    elif x.format == "dok":
        keys = np.array(list(x.keys()), dtype=np.int64).reshape(-1, 2)
        for indices, size in zip(keys.T, x.shape, strict=True):
            _check_range(indices, size, name)


def stacked_rows(X: Sequence[Any], n_columns: int) -> csr_matrix:
    """The rows of all matrices, each of which has this many columns, as a new one of float64.

    Equal indices of a row are summed. Refuses indices beyond the shape, naming X[i].
    """
    with needed("scipy", "a sparse matrix"):
        import scipy.sparse as sp

    for i, x in enumerate(X):
        if sp.issparse(x) and x.format != "csr":
            check_sparse(x, f"X[{i}]")  # before it is converted
    blocks = [sp.csr_matrix(x) for x in X] or [sp.csr_matrix((0, n_columns))]
    whole = sp.vstack(blocks, format="csr").astype(np.float64)
    try:
        check_sparse(whole, "X")  # those of all together: a look at each takes longer
    except ValueError:
        for i, block in enumerate(blocks):
            check_sparse(block, f"X[{i}]")
        raise
    whole.sum_duplicates()
    return whole


def _check_range(indices: NDArray[Any], size: int, name: str) -> None:
    if len(indices) and (indices.min() < 0 or indices.max() >= size):
        wrong = indices[(indices < 0) | (indices >= size)][0]
        raise ValueError(
            f"{name} is a sparse matrix with the index {wrong} where there are {size} rows or "
            "columns; build it again from data that fit its shape"
        )


def _refused(name: str) -> ValueError:
    return ValueError(
        f"{name} is a sparse matrix whose arrays do not fit each other; see its check_format()"
    )
