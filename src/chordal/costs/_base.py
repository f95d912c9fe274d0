"""What a cost is: a price of each labelling, given the gold one, that is a sum over parts."""

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

    of_state : int64 [n_states], how many units each label of each variable costs
    unit : float64 [n_examples], what a unit costs
    """

    of_state: Ints
    unit: Floats


class Cost(ABC):
    """How wrong a labelling is, given the gold one: at least 0, and 0 for the gold one itself.

    It is a sum over variables and cliques, so that adding it to the potentials leaves inference
    as hard as it was.
    """

    @abstractmethod
    def add(self, potentials: Potentials, labels: Labels) -> Potentials:
        """Potentials whose scores are score(y) + cost(y, labels).

        The unary scores are changed in place; tables, which may be tied, are replaced where the
        cost concerns them. New tables refine the tying: those of two cliques with one table are
        one table or two, and `Potentials.tied_as` takes parts back.
        """

    def of(self, frame: Potentials, predicted: Labels, labels: Labels) -> Floats:
        """The cost of a labelling of each example (float64 [n_examples])."""
        return self.add(frame.zeros(), labels).score(predicted)

    def require(self, structure: Structure) -> None:  # noqa: B027 - most costs work anywhere
        """Refuse a structure on which the cost is no sum over its parts."""

    @property
    def in_units(self) -> bool:
        """Whether it is a whole number of units for each variable, as slack scaling needs."""
        return False

    def prices(self, structure: Structure, labels: Labels) -> Prices:
        """The cost in whole units per variable; refused where it has no such form."""
        raise UnsupportedError(
            f"cost {self.name!r} is not a whole number of units for each variable, which "
            "scaling='slack' counts; use 'hamming', or 'weighted_hamming' with whole numbers"
        )

    def for_labels(self, labels: Sequence[Any], order: Ints) -> Cost:
        """The same cost for labels with numbers: `labels` by number, `order` the number of each
        class in the order in which users see them."""
        return self

    def with_class_weight(self, weight: Floats) -> Cost:
        """The same cost with errors weighed by the gold label's number."""
        raise UnsupportedError(
            f"class_weight weighs single labels, and cost {self.name!r} is not a price of those; "
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
