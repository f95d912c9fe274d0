"""Examples of one variable each: what their weights belong to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._validate import is_sparse
from chordal.features import (
    BinaryFeatures,
    ChainFeatures,
    DenseInput,
    Input,
    Rows,
    SparseInput,
)
from chordal.potentials import Floats


class SingleVariables:
    """The rows of a matrix as chains of length one, and the weights of a linear classifier.

    The intercept is a column of ones at the end. Two classes that are told apart by the difference
    of their scores alone share one function; inside, the second class comes first.

    Parameters
    ----------
    X : array or CSR matrix [n_samples, n_features], checked
    n_classes : int
    intercept : bool
    relative : bool
        Whether only differences of scores matter.
    """

    def __init__(self, X: Any, n_classes: int, intercept: bool, relative: bool) -> None:
        self.n_columns, self.n_classes, self.intercept = X.shape[1], n_classes, intercept
        n_outputs = 1 if relative and n_classes == 2 else n_classes
        reader: Input
        if is_sparse(X):
            reader = SparseInput(self.n_columns + intercept)
            data = reader.read([_with_ones(X) if intercept else X], grow=False).data
        else:
            reader = DenseInput(self.n_columns + intercept)
            data = np.column_stack([X, np.ones(len(X), X.dtype)]) if intercept else X
        self.rows = Rows(np.ones(X.shape[0], dtype=np.int64), data)
        node = reader.features(self.rows, np.zeros(0, dtype=np.int32), n_outputs)
        if n_outputs < n_classes:
            node = BinaryFeatures(node)
        self._keys = node.keys()
        none = np.zeros(0, dtype=np.int64)
        self.features = ChainFeatures(n_classes, node, None, none, bias=False, ends=False)

    def labels(self, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Numbers of classes as the features count them."""
        return 1 - codes if self.n_classes == 2 else codes

    def intercepts(self) -> NDArray[np.int64] | None:
        """The weights of the intercept, if there is one."""
        return np.flatnonzero(self._keys.column == self.n_columns) if self.intercept else None

    def penalties(self, l2: float) -> float | Floats:
        """The L2 penalty of each weight: none of the intercept's."""
        if not self.intercept:
            return l2
        return np.where(self._keys.column == self.n_columns, 0.0, l2)

    def coefficients(self, weights: Floats) -> tuple[Floats, Floats]:
        """`coef_` and `intercept_`."""
        table = np.zeros((self.n_classes, self.n_columns + self.intercept))
        table[self._keys.output, self._keys.column] = weights
        if self.n_classes == 2:
            table = table[:1] - table[1:]
        intercept = table[:, -1].copy() if self.intercept else np.zeros(len(table))
        return table[:, : self.n_columns].copy(), intercept

    def weights(self, coef: Floats, intercept: Floats) -> Floats:
        """The weights of these coefficients."""
        table = np.zeros((self.n_classes, self.n_columns + 1))
        table[: len(coef)] = np.column_stack([coef, intercept])
        return table[self._keys.output, self._keys.column]


def _with_ones(X: Any) -> Any:
    import scipy.sparse as sp

    return sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")
