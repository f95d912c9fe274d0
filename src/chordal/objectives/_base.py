"""What a training objective is: a value, and its derivative in the potentials."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.inference import Inference
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure


class Evaluation(NamedTuple):
    """The objective of each example, and the derivative of their sum in the potentials."""

    values: Floats
    parts: Potentials


class Objective(ABC):
    """A loss of potentials against a gold labelling; sees neither features nor weights.

    `needs` names what it asks of the inference method; `convex` claims convexity in the
    potentials; `minus_gold` says that the gold labelling enters by − score(gold) alone, which is
    linear, so that it can be summed once for all evaluations; `relative` says that only differences
    between the scores of a variable's labels matter. Claims are tested.
    """

    needs: ClassVar[frozenset[str]] = frozenset()
    convex: ClassVar[bool]
    minus_gold: ClassVar[bool] = False
    relative: ClassVar[bool] = True

    @abstractmethod
    def evaluate(
        self,
        potentials: Potentials,
        labels: NDArray[np.int32] | None,
        inference: Inference,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Evaluation:
        """Weighted values of the examples and the derivative of their sum.

        With `overwrite`, the potentials' memory may be reused for the parts. If `minus_gold`,
        labels may be None, and the gold term is left out.
        """

    def require(self, inference: Inference, structure: Structure) -> None:
        """Refuse a pair that cannot work, before any work."""
        missing = self.needs - inference.answers
        if missing:
            raise UnsupportedError(
                f"objective {self.name!r} needs {', '.join(sorted(missing))}, which inference "
                f"{inference.name!r} does not answer"
            )
        for question in self.needs:
            inference.require(question, structure)

    @property
    def name(self) -> str:
        return type(self).__module__.rpartition(".")[2]
