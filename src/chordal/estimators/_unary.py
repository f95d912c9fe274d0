"""The unary part of two-stage training: scores of labels, position by position."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal._validate import is_sparse
from chordal.estimators._chain_model import length_of
from chordal.estimators._generative import chain_crf
from chordal.estimators._labels import SequenceLabels
from chordal.estimators.chain_crf import ChainCRF
from chordal.features import DenseInput, Input, SparseInput
from chordal.potentials import Floats
from chordal.structures import offsets_of

FLOOR = float(np.log(np.finfo(np.float64).eps))  # of log-probabilities


class UnaryPart:
    """Fits a classifier of positions, and gives its scores; ours take whole sequences."""

    def __init__(self, model: Any, classes: NDArray[Any]) -> None:
        self.own = isinstance(model, ChainCRF)
        if not self.own and not any(
            hasattr(model, name) for name in ("predict_proba", "decision_function")
        ):
            raise TypeError(
                f"unary must be a classifier with predict_proba or decision_function, got {model!r}"
            )
        self.model, self.classes = model, classes

    def fit(self, X: Sequence[Any], y: Sequence[Any], weight: Floats | None) -> None:
        if self.own:
            self.model.fit(X, y, sample_weight=weight)
            return
        lengths = [length_of(x) for x in X]
        options = {} if weight is None else {"sample_weight": np.repeat(weight, lengths)}
        labels = np.array(list(chain.from_iterable(_plain(s) for s in y)))
        self.model.fit(positions(X), labels, **options)

    def scores(self, X: Sequence[Any]) -> list[Floats]:
        """Arrays [length, n_classes], in the order of the classes."""
        lengths = [length_of(x) for x in X]
        if self.own:
            found = np.concatenate(self.model.predict_marginals(X))
            found = np.log(np.maximum(found, np.exp(FLOOR)))
        elif hasattr(self.model, "predict_proba"):
            found = np.asarray(self.model.predict_proba(positions(X)), dtype=np.float64)
            found = np.log(np.maximum(found, np.exp(FLOOR)))
        else:
            found = np.asarray(self.model.decision_function(positions(X)), dtype=np.float64)
            if found.ndim == 1:  # of two labels, the margin of the second
                found = np.stack([np.zeros_like(found), found], axis=1)
        return np.split(self._aligned(found), offsets_of(lengths)[1:-1])

    def _aligned(self, found: Floats) -> Floats:
        """Columns in the order of all classes; one that was not seen scores as the lowest."""
        own = self.model.classes_.tolist()
        if found.shape[1] != len(own):
            raise ValueError(
                f"the scores of {type(self.model).__name__} must have a column for each of its "
                f"{len(own)} labels, got {found.shape[1]}; take one-versus-rest scores"
            )
        everyone = self.classes.tolist()
        if own == everyone:
            return found
        out = np.repeat(found.min(axis=1, keepdims=True), len(everyone), axis=1)
        known = [k for k, label in enumerate(own) if label in everyone]
        out[:, [everyone.index(own[k]) for k in known]] = found[:, known]
        return out

    def linear(self, labels: SequenceLabels, x: Any) -> ChainCRF:
        """The same scores as a CRF of the observations themselves, to go on training."""
        if self.own:
            features = self.model.features_
            if self.model.template is not None or features.edge or len(features.transitions):
                raise UnsupportedError(
                    "joint training needs a unary ChainCRF with transitions='none' and without "
                    "template and transition_features"
                )
            return self.model
        coef, intercept = getattr(self.model, "coef_", None), getattr(self.model, "intercept_", 0.0)
        if coef is None or not (is_sparse(x) or isinstance(x, np.ndarray)):
            raise UnsupportedError(
                f"joint training needs a unary part that is linear in arrays or sparse matrices, "
                f"or a ChainCRF; {type(self.model).__name__} is not"
            )
        if len(self.model.classes_) != len(labels):
            raise ValueError(f"{type(self.model).__name__} must know all {len(labels)} labels")
        coef = np.asarray(coef.toarray() if is_sparse(coef) else coef, dtype=np.float64)
        bias = np.broadcast_to(np.asarray(intercept, dtype=np.float64), (len(coef),))
        if len(coef) == 1:
            coef, bias = np.stack([0.0 * coef[0], coef[0]]), np.array([0.0, bias[0]])
        n = coef.shape[1]
        source: Input = SparseInput(n) if is_sparse(x) else DenseInput(n)
        return chain_crf(labels, source, coef, intercept=bias)


def positions(X: Sequence[Any]) -> Any:
    """All positions of all sequences, in the form of the sequences."""
    if is_sparse(X[0]):
        import scipy.sparse as sp

        return sp.vstack(X, format="csr")
    if isinstance(X[0], np.ndarray):
        return np.concatenate(X)
    return list(chain.from_iterable(X))


def _plain(labels: Any) -> list[Any]:
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
