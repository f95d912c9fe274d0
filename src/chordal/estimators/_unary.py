"""The first stage of `TwoStageCRF`: a classifier of single positions, and its scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from chordal._errors import UnsupportedError
from chordal._validate import is_sparse
from chordal.estimators._positions import PositionRows, positions, stacked
from chordal.estimators.chain_crf import ChainCRF, chain_crf
from chordal.features import DenseInput, Input, SparseInput, length_of
from chordal.labels import SequenceLabels
from chordal.potentials import Floats
from chordal.structures import offsets_of


class UnaryPart:
    """Fits a classifier of positions and returns its scores; a `ChainCRF` gets whole sequences."""

    def __init__(self, model: Any, classes: NDArray[Any]) -> None:
        self.own = isinstance(model, ChainCRF)
        if not self.own and not any(
            hasattr(model, name) for name in ("predict_proba", "decision_function")
        ):
            raise TypeError(
                f"unary must be a classifier with predict_proba or decision_function, got {model!r}"
            )
        self.model, self.classes = model, classes

    def fit(self, parts: Sequence[PositionRows]) -> None:
        """Fit a classifier that is not a `ChainCRF` to the positions of all parts."""
        weights = [own.weight for own in parts if own.weight is not None]
        options = {"sample_weight": np.concatenate(weights)} if weights else {}
        labels = np.array([label for own in parts for label in own.labels])
        self.model.fit(stacked([own.rows for own in parts]), labels, **options)

    def scores(self, X: Sequence[Any]) -> list[Floats]:
        """Arrays [length, n_classes], in the order of the classes."""
        lengths = [length_of(x) for x in X]
        if not sum(lengths):
            return [np.zeros((0, len(self.classes))) for _ in X]
        if self.own:
            found = _logarithms(np.concatenate(self.model.predict_marginals(X)))
        elif hasattr(self.model, "predict_proba"):
            found = _logarithms(self.model.predict_proba(positions(X)))
        else:
            found = np.asarray(self.model.decision_function(positions(X)), dtype=np.float64)
            if found.ndim == 1:  # of two labels, the margin of the second
                found = np.stack([np.zeros_like(found), found], axis=1)
        return np.split(self._aligned(found), offsets_of(lengths)[1:-1])

    def _aligned(self, found: Floats) -> Floats:
        """Columns in the order of all classes; an unseen class gets the lowest score."""
        own = self.model.classes_.tolist()
        if found.shape[1] != len(own):
            raise ValueError(
                f"the scores of {type(self.model).__name__} must have a column for each of its "
                f"{len(own)} labels, got {found.shape[1]}; use one-versus-rest scores"
            )
        everyone = self.classes.tolist()
        if own == everyone:
            return found
        out = np.repeat(found.min(axis=1, keepdims=True), len(everyone), axis=1)
        known = [k for k, label in enumerate(own) if label in everyone]
        out[:, [everyone.index(own[k]) for k in known]] = found[:, known]
        return out

    def linear(self, labels: SequenceLabels, kind: str) -> ChainCRF:
        """A CRF of observations of this kind with the same scores, for joint training."""
        if self.own:
            layout = self.model.layout_
            columns = self.model.feature_template is not None
            if columns or layout["edge"].rows or len(layout["transitions"].kept):
                raise UnsupportedError(
                    "joint training needs a unary ChainCRF with transitions='none' and without "
                    "feature_template and transition_features"
                )
            return self.model
        coef, intercept = getattr(self.model, "coef_", None), getattr(self.model, "intercept_", 0.0)
        if coef is None or kind == "tokens":
            raise UnsupportedError(
                f"joint training needs a classifier that is linear in arrays or sparse matrices, "
                f"or a ChainCRF; {type(self.model).__name__} is not"
            )
        if len(self.model.classes_) != len(labels):
            raise ValueError(f"{type(self.model).__name__} must know all {len(labels)} labels")
        coef = np.asarray(coef.toarray() if is_sparse(coef) else coef, dtype=np.float64)
        bias = np.broadcast_to(np.asarray(intercept, dtype=np.float64), (len(coef),))
        if len(coef) == 1:
            coef, bias = np.stack([0.0 * coef[0], coef[0]]), np.array([0.0, bias[0]])
        n = coef.shape[1]
        source: Input = SparseInput(n) if kind == "sparse" else DenseInput(n)
        return chain_crf(labels, source, coef, intercept=bias)


def _logarithms(chances: ArrayLike) -> Floats:
    """Logarithms of probabilities, clipped at the machine epsilon."""
    least = np.exp(np.log(np.finfo(np.float64).eps))
    return np.log(np.maximum(np.asarray(chances, dtype=np.float64), least))
