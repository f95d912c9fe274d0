"""A `NeuralCRF` of tokens, asked about files of columns, JSON Lines and raw text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from chordal._validate import check_sequences
from chordal.model_file import ModelFileError
from chordal.potentials import Floats
from chordal.text import Columns

if TYPE_CHECKING:
    from chordal.estimators import FitReport
    from chordal.torch import NeuralCRF

Answer = list[Any]


class TokenModel:
    """Reads the first column of rows, or the first string of a token, as the token."""

    feature_template = None
    input_ = None

    def __init__(self, model: NeuralCRF, path: str) -> None:
        inputs, structure = model.inputs_, type(model.crf_).__name__
        if structure != "ChainCRF" or inputs.shape != ():
            what = "arrays or images" if structure == "ChainCRF" else f"examples of a {structure}"
            raise ModelFileError(
                path, f"its network reads {what}, but files have tokens; use chordal.load in Python"
            )
        self.model, self.classes_ = model, model.classes_
        self._numbers = all(isinstance(token, int) for token in inputs.tokens)

    @property
    def fit_report_(self) -> FitReport:
        """How the last stage of training went."""
        return self.model.fit_report_

    def set_params(self, **parameters: object) -> TokenModel:
        """Set parameters of the model."""
        self.model.set_params(**parameters)
        return self

    def columns_template(self) -> None:
        """It has no template."""

    def tokens(self, X: object) -> list[list[str | int]]:
        """The tokens of sequences of rows."""
        if isinstance(X, Columns):
            found: list[list[str]] = X.column(0)
        else:
            found = [
                [_first(row, i, t) for t, row in enumerate(x)]
                for i, x in enumerate(check_sequences(X, empty=True))
            ]
        return [[self._token(token) for token in own] for own in found]

    def _token(self, text: str) -> str | int:
        if not self._numbers:
            return text
        try:
            return int(text)
        except ValueError:
            raise ValueError(
                f"the model's tokens are whole numbers, but the data have {text!r}"
            ) from None

    def predict(self, X: object, **options: object) -> Answer:
        """The labels of each sequence."""
        found: Answer = self.model.predict(self.tokens(X), **options)
        return found

    def predict_codes(self, X: object, **options: object) -> NDArray[np.int32]:
        """The same as places in the classes."""
        found: NDArray[np.int32] = self.model.predict_codes(self.tokens(X), **options)
        return found

    def predict_marginals(self, X: object, **options: object) -> Answer:
        """The probabilities of labels."""
        found: Answer = self.model.predict_marginals(self.tokens(X), **options)
        return found

    def k_best(self, X: object, k: int, **options: object) -> Answer:
        """The best labellings."""
        found: Answer = self.model.k_best(self.tokens(X), k, **options)
        return found

    def span_probabilities(
        self, X: object, spans: Sequence[Sequence[tuple[int, int, Any]]]
    ) -> list[Floats]:
        """The probabilities of entities."""
        found: list[Floats] = self.model.span_probabilities(self.tokens(X), spans)
        return found


def _first(row: object, i: int, t: int) -> str:
    if isinstance(row, str):
        return row
    if isinstance(row, (list, tuple)) and row and isinstance(row[0], str):
        return row[0]
    raise ValueError(
        f"token {t + 1} of sequence {i + 1} must be a string, or a list that begins with one: the "
        f"model is a network of tokens; got {row!r:.60}"
    )
