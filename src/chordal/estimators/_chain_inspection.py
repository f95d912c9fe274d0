"""What a fitted chain model has learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from chordal.estimators._chain_model import ChainModel
from chordal.features import DenseInput, SparseInput
from chordal.potentials import Floats


class ChainInspection(ChainModel):
    """Weights by name, in the order of `classes_`."""

    @property
    def transitions_(self) -> Floats:
        """Weights of transitions, from row to column, in the order of `classes_`."""
        order = self._fitted_labels().order
        n = self.features_.n_labels
        table = self._expanded_weights().table.reshape(n, n)
        return table[np.ix_(order, order)]

    @property
    def coef_(self) -> Any:
        """Weights of node features [n_classes, n_features]; sparse for named attributes."""
        import scipy.sparse as sp

        number = np.argsort(self._fitted_labels().order)
        keys = self.features_.node.keys()
        weights = self.weights_[self.features_.slices["node"]]
        shape = (self.features_.n_labels, self._inputs[0].n_columns)
        matrix = sp.csr_array((weights, (number[keys.output], keys.column)), shape=shape)
        dense = isinstance(self._inputs[0], (DenseInput, SparseInput))
        return matrix.toarray() if dense else matrix

    @property
    def transition_coef_(self) -> Floats:
        """Weights of `transition_features` [n_classes, n_classes, n_features], (from, to, …)."""
        order, n = self._fitted_labels().order, self.features_.n_labels
        edge, source = self.features_.edge, self._inputs[1]
        if edge is None or source is None:
            return np.zeros((n, n, 0))
        keys = edge.keys()
        table = np.zeros((n * n, source.n_columns))
        table[keys.output, keys.column] = self.weights_[self.features_.slices["edge"]]
        return table.reshape(n, n, -1)[np.ix_(order, order)]

    @property
    def start_(self) -> Floats:
        """Weights of labels at the first position; zeros without `ends`."""
        return self._per_label("start")

    @property
    def end_(self) -> Floats:
        """Weights of labels at the last position; zeros without `ends`."""
        return self._per_label("end")

    @property
    def intercept_(self) -> Floats:
        """Weights of labels anywhere; zeros without `bias`."""
        return self._per_label("bias")

    def _per_label(self, group: str) -> Floats:
        order = self._fitted_labels().order
        weights = self.weights_[self.features_.slices[group]]
        return weights[order] if len(weights) else np.zeros(len(order))

    def top_features(self, n: int = 10, label: Any = None) -> list[tuple[str, Any, float]]:
        """The n node weights of largest magnitude: (feature, label, weight).

        With `label`, those that speak most for it come first and most against it last.
        """
        labels = self._fitted_labels()
        keys, weights = self.features_.node.keys(), self.weights_[self.features_.slices["node"]]
        if label is None:
            chosen = np.argsort(-np.abs(weights), kind="stable")[:n]
        else:
            mine = np.flatnonzero(keys.output == labels.number(label))
            chosen = mine[np.argsort(-weights[mine], kind="stable")][:n]
        name = self._inputs[0].name
        return [
            (name(int(keys.column[k])), labels.labels[keys.output[k]], float(weights[k]))
            for k in chosen
        ]

    def top_transitions(self, n: int = 10) -> list[tuple[Any, Any, float]]:
        """The n transitions of largest magnitude: (from, to, weight)."""
        table, names = self.transitions_, self.classes_.tolist()
        chosen = np.argsort(-np.abs(table).ravel(), kind="stable")[:n]
        rows, columns = np.divmod(chosen, len(table))
        return [
            (names[i], names[j], float(table[i, j])) for i, j in zip(rows, columns, strict=True)
        ]
