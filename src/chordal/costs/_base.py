"""What a cost is: a price of each labelling, given the gold one, that is a sum over parts."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from chordal.potentials import Potentials

Floats = NDArray[np.float64]
Labels = NDArray[np.int32]


class Cost(ABC):
    """How wrong a labelling is, given the gold one: at least 0, and 0 for the gold one itself.

    It is a sum over variables and cliques, so that adding it to the potentials leaves inference
    as hard as it was.
    """

    @abstractmethod
    def add(self, potentials: Potentials, labels: Labels) -> Potentials:
        """Potentials whose scores are score(y) + cost(y, labels).

        The unary scores are changed in place; tables, which may be tied, are replaced where the
        cost concerns them.
        """

    def of(self, frame: Potentials, predicted: Labels, labels: Labels) -> Floats:
        """The cost of a labelling of each example (float64 [n_examples])."""
        return self.add(frame.zeros(), labels).score(predicted)

    @property
    def name(self) -> str:
        return type(self).__module__.rpartition(".")[2]

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({settings})"
