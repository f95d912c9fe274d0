"""Rows of a table or documents, each with one label: classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, final

import numpy as np

from chordal._validate import is_list, is_sparse
from chordal.explore._labels import Coder, Ints
from chordal.explore._shapes import Shapes
from chordal.explore._subject import Floats, Looks, Subject
from chordal.explore._tables import as_rows, shapes_of_rows, unweighted
from chordal.explore._unary import unary_attributes
from chordal.explore._weights import Weights


@final
class RowsOfTable(Subject):
    """`CRFClassifier` and `NaiveBayes`: an example is one variable."""

    least: ClassVar[bool] = True
    whole: ClassVar[bool] = True

    def __init__(self, model: Any, X: Any, looks: Looks) -> None:
        if not is_sparse(X) and not is_list(X):
            raise TypeError(f"X must be a table of rows, got {type(X).__name__}")
        super().__init__(model, X.tocsr() if is_sparse(X) else X, looks)

    @property
    def n(self) -> int:
        """How many rows there are."""
        return int(self.X.shape[0]) if hasattr(self.X, "shape") else len(self.X)

    def part(self, begin: int, end: int) -> Any:
        """Some rows."""
        return self.X.iloc[begin:end] if hasattr(self.X, "iloc") else self.X[begin:end]

    def predicted(self, coder: Coder, X: Any) -> list[Ints]:
        """The place of the class of each row."""
        return list(coder.predicted(self.model.predict(X).tolist())[:, None])

    def marginals(self, X: Any) -> list[Floats]:
        """P(class) of each row."""
        return list(np.asarray(self.model.predict_proba(X))[:, None, :])

    def gold(self, y: Any) -> Sequence[Sequence[Any]]:
        """The true class of each row."""
        found = np.asarray(y, dtype=object) if isinstance(y, (list, tuple)) else np.asarray(y)
        if found.shape != (self.n,):
            raise ValueError(f"y must have one label per row of X ({self.n}), got {found.shape}")
        return [[label] for label in found.tolist()]

    def shapes(self, sizes: Ints) -> Shapes:
        """Texts, images, or some columns of the table."""
        return shapes_of_rows("row", self.model, self.X, self.looks)

    def weights(self, local: Ints) -> Weights:
        """Weights of columns; of a model whose scores are not such a sum, the scores."""
        scores = np.asarray(self.model.node_scores(self.X)).reshape(self.n, len(self.sets))
        if self.crf is not self.model:
            return Weights(unweighted(self.model, self.X), scores=scores.ravel())
        batch = self.crf.reader_.read(as_rows(self.X), grow=False)
        node = unary_attributes(self.crf, batch, self.sets)
        constant = self.crf.template_weights("intercept").get("intercept")
        tables = {} if constant is None else {"intercept": np.asarray(constant)}
        return Weights(node, scores=scores.ravel(), tables=tables)
