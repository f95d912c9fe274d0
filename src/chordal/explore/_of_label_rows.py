"""Rows of a table or documents, each with several labels that are present or absent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from chordal._validate import array_of, is_list, is_sparse
from chordal.explore._labels import Coder, Ints, LabelSets
from chordal.explore._links import joined_links, links_of
from chordal.explore._shapes import Shapes
from chordal.explore._subject import Floats, Looks, Subject
from chordal.explore._tables import as_rows, column_names, nonzero, shapes_of_rows
from chordal.explore._weights import Attributes, Weights, renumbered
from chordal.features import WeightKeys

BLOCK = 500  # rows whose potentials are made at a time


@final
class RowsOfLabels(Subject):
    """`MultiLabelCRF`: an example has a variable for each label."""

    least: ClassVar[bool] = True
    whole: ClassVar[bool] = True

    def __init__(self, model: Any, X: Any, looks: Looks) -> None:
        super().__init__(model, X.tocsr() if is_sparse(X) else as_rows(X), looks)

    def label_sets(self) -> LabelSets:
        """Absent and present, of each label."""
        names = [str(name) for name in self.model.label_names_.tolist()]
        both = [text for name in names for text in (f"no {name}", name)]
        return LabelSets([[0, 1]] * len(names), names, both)

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.X.shape[0])

    def predicted(self, coder: Coder, X: Any) -> list[Ints]:
        """The places of absent or present, of all labels of each row."""
        return list(self.sets.first + self.model.predict(X))

    def marginals(self, X: Any) -> list[Floats]:
        """P(absent), P(present) of each label."""
        present = np.asarray(self.model.predict_proba(X))
        return list(np.stack([1.0 - present, present], axis=2))

    def gold(self, y: Any) -> Sequence[Sequence[Any]]:
        """0 and 1 of each label; None where it is not known."""
        names = self.model.label_names_.tolist()
        if isinstance(y, (list, tuple)) and y and isinstance(y[0], (set, frozenset)):
            self._refuse_unknown(y, set(names))
            rows: list[list[Any]] = [[int(name in own) for name in names] for own in y]
        else:
            rows = (y.toarray() if is_sparse(y) else array_of(y)).tolist()
        shape = f"[{self.n}, {len(names)}]"
        if (
            not is_list(rows)
            or len(rows) != self.n
            or any(np.shape(own) != (len(names),) for own in rows)
        ):
            raise ValueError(f"y must be a matrix {shape} of 0 and 1, or a set of labels per row")
        for i, own in enumerate(rows):
            for value in own:
                if value is not None and value not in (0, 1):
                    raise ValueError(f"y must hold 0 and 1, or None, got {value!r} in row {i}")
        return rows

    def _refuse_unknown(self, y: Sequence[Any], known: set[Any]) -> None:
        for i, own in enumerate(y):
            if own - known:
                raise ValueError(
                    f"y[{i}] has the label {min(map(str, own - known))!r}, which the model does "
                    "not know"
                )

    def shapes(self, sizes: Ints) -> Shapes:
        """As other rows, with the names of labels for those of variables."""
        return shapes_of_rows("labels", self.model, self.X, self.looks)

    def weights(self, local: Ints) -> Weights:
        """Weights of columns for each label, and of labels that are joined."""
        local, scores, links = local.reshape(self.n, -1), [], []
        for begin in range(0, self.n, BLOCK):
            found = self.model.potentials(self.X[begin : begin + BLOCK])
            scores.append(found.unary)
            links.append(links_of(found, local[begin : begin + BLOCK].ravel()))
        names = self.sets.titles
        return Weights(
            self._attributes(),
            scores=np.concatenate(scores),
            links=joined_links(links),
            tables={"together": self._together()},
            axes={"together": (names, names)},
        )

    def _attributes(self) -> Attributes | None:
        """Weights for presence; all labels of a row see the same columns."""
        coef = self.model.coef_
        label, column = np.nonzero(coef)
        keys = WeightKeys(column, self.sets.first[label] + 1)
        rows, names = nonzero(self.X), column_names(self.model, coef.shape[1])
        assert rows is not None
        own = renumbered(names.__getitem__, len(names), rows, keys, coef[label, column])
        return Attributes(own.names, own.starts, own.outputs, own.weights, own.rows, shared=True)

    def _together(self) -> Floats:
        """How much two joined labels speak for each other: w11 + w00 − w01 − w10."""
        table = np.zeros((len(self.sets.titles),) * 2)
        w, (a, b) = self.model.pair_coef_, self.model.edges_.T
        if len(w):
            table[a, b] = table[b, a] = w[:, 1, 1] + w[:, 0, 0] - w[:, 0, 1] - w[:, 1, 0]
        return table
