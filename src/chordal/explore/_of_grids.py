"""Grids of pixels: segmentations of images."""

from __future__ import annotations

from typing import ClassVar, final

from chordal.explore._labels import Ints
from chordal.explore._shapes import Shapes, shapes_of_grids
from chordal.explore._subject import Subject
from chordal.explore._weights import Weights, weights_of_grid


@final
class Grids(Subject):
    """`GridCRF`, and what holds one."""

    whole: ClassVar[bool] = True

    def shapes(self, sizes: Ints) -> Shapes:
        """Images, if they have one or three channels."""
        return shapes_of_grids(self.X)

    def weights(self, local: Ints) -> Weights:
        """Attributes of pixels, and weights of neighbours."""
        return weights_of_grid(self.model, self.crf, self.X)
