"""Sequences: words, or small images such as letters."""

from __future__ import annotations

from typing import Any, ClassVar, final

from chordal.explore._labels import Coder, Ints
from chordal.explore._shapes import Shapes, shapes_of_sequences
from chordal.explore._subject import Subject, with_labellings
from chordal.explore._weights import Weights, weights_of_chain


@final
class Sequences(Subject):
    """`ChainCRF`, and what holds one."""

    joint: ClassVar[bool] = True
    least: ClassVar[bool] = True
    spans: ClassVar[bool] = True

    def ranked(self, coder: Coder, X: Any, k: int) -> list[list[tuple[Ints, float]]]:
        """The best labellings of each sequence."""
        return with_labellings(self, coder, X, k)

    def shapes(self, sizes: Ints) -> Shapes:
        """Words or letters."""
        return shapes_of_sequences(self.X, sizes, self.looks.tokens, self.looks.image_shape)

    def weights(self, local: Ints) -> Weights:
        """Attributes and transitions; of a model that holds a chain, scores and transitions."""
        return weights_of_chain(self.model, self.crf, self.X)
