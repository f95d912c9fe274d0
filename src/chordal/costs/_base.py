"""The base class of costs: a penalty of a labelling, as a sum over variables and cliques."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from chordal._errors import UnsupportedError
from chordal.potentials import Potentials
from chordal.structures import Structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Labels = NDArray[np.int32]


class Prices(NamedTuple):
    """A cost that is a sum over variables, in whole units.

    of_state : int64 [n_states], the cost of each label of each variable in units
    unit : float64 [n_examples], the value of a unit
    """

    of_state: Ints
    unit: Floats


class Cost(ABC):
    """How wrong a labelling is compared with the gold one: 0 for the gold labelling, never
    negative.

    It is a sum over variables and cliques, so adding it to the potentials makes inference no
    harder.
    """

    @abstractmethod
    def add(self, potentials: Potentials, labels: Labels) -> Potentials:
        """Potentials whose scores are score(y) + cost(y, labels).

        The unary scores are changed in place. Tables, which may be tied, are replaced if the cost
        concerns them. New tables refine the tying: cliques that shared a table may get two;
        `Potentials.tied_as` sums them again.
        """

    def of(self, frame: Potentials, predicted: Labels, labels: Labels) -> Floats:
        """The cost of a labelling of each example (float64 [n_examples])."""
        return self.add(frame.zeros(), labels).score(predicted)

    def require(self, structure: Structure) -> None:  # noqa: B027 - most costs work anywhere
        """Raise an error for a structure over which the cost does not decompose."""

    @property
    def in_units(self) -> bool:
        """Whether it is a whole number of units for each variable, as slack scaling needs."""
        return False

    def prices(self, structure: Structure, labels: Labels) -> Prices:
        """The cost in whole units per variable; an error if it has no such form."""
        raise UnsupportedError(
            f"cost {self.name!r} is not a whole number of units for each variable, as "
            "scaling='slack' needs; use 'hamming', or 'weighted_hamming' with whole numbers"
        )

    def for_labels(self, labels: Sequence[Any], order: Ints) -> Cost:
        """The same cost for numbered labels: `labels` by number; `order` is the number of each
        class in the order that users see."""
        return self

    def with_class_weight(self, weight: Floats) -> Cost:
        """The same cost, weighted by the number of the gold label."""
        raise UnsupportedError(
            f"class_weight needs a cost of single labels, which {self.name!r} is not; "
            "use 'hamming' or 'weighted_hamming'"
        )

    @property
    def name(self) -> str:
        """The name of the cost: that of its file."""
        return type(self).__module__.rpartition(".")[2]

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v!r}" for k, v in vars(self).items() if not k.startswith("_"))
        return f"{type(self).__name__}({settings})"


def shares(structure: Structure) -> Floats:
    """One over the number of variables, for each example."""
    return np.asarray(1.0 / np.maximum(np.diff(structure.variable_offsets), 1))
