"""What a rule is: how one example changes the weights, or its own dual variables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from chordal.objectives import Objective
from chordal.oracle._chain_arrays import ChainDuals, Chains
from chordal.potentials import Floats, Potentials

Ints = NDArray[np.int64]


class Mistake(NamedTuple):
    """What the best labelling of an example has wrong."""

    n_wrong: int
    n_labels: int
    lead: float  # score(best) − score(gold)
    difference: Floats  # φ(gold) − φ(best)
    weight: float  # of the example


class Examples(Protocol):
    """What a rule may ask of examples, whatever their structure."""

    n_examples: int
    n_weights: int
    l2: float
    centre: Floats | None
    exempt: Ints  # weights without regularisation, where others have one
    objective: Objective

    def checked(self, order: Ints) -> Ints:
        """An order of examples, each of which is there."""
        ...

    def mistake(self, i: int, weights: Floats) -> Mistake | None:
        """What the best labelling of one example has wrong; None if nothing."""
        ...

    def loss_gradient(self, i: int, weights: Floats) -> tuple[float, Floats]:
        """The weighted loss of one example, and its gradient."""
        ...

    def potentials(self, i: int, weights: Floats) -> Potentials:
        """The scores of one example."""
        ...

    def evaluate(self, i: int, potentials: Potentials) -> tuple[float, Potentials]:
        """The weighted loss of one example with these scores, and its parts."""
        ...

    def adjoint(self, i: int, parts: Potentials) -> Floats:
        """The gradient of parts of one example."""
        ...


class Learner(Protocol):
    """Weights that examples change, one after another."""

    def visit(self, order: Ints) -> float:
        """Learn from these examples in turn; the sum of the losses met on the way.

        Raises
        ------
        OverflowError
            When weights or scores are no longer finite.
        """
        ...

    def weights(self) -> Floats:
        """What has been learned so far, also when a visit was interrupted; a copy."""
        ...


class DualLearner(Protocol):
    """Dual variables of examples, which visits improve one after another."""

    def visit(self, order: Ints) -> None:
        """Improve the dual variables of these examples in turn; raises as `Learner.visit`."""
        ...

    def state(self) -> tuple[Floats, float]:
        """Weights that the dual variables give, and the dual value reached; also in between."""
        ...


class Rule(ABC):
    """How one example changes the weights.

    `learner` is the rule in Python, for any structure. A rule may have a compiled loop for chains
    beside it, which `chain_learner` gives.
    """

    averaged: bool  # what is learned is a mean over time, not the last weights

    @abstractmethod
    def learner(self, examples: Examples, start: Floats) -> Learner:
        """A learner by this rule, from these weights on."""

    def chain_learner(self, examples: Examples, chains: Chains, start: Floats) -> Learner:
        """The same for chains, which are the examples; compiled if it can be."""
        return self.learner(examples, start)


class DualRule(ABC):
    """How an example's dual variables are improved; as `Rule`, at w = centre."""

    @abstractmethod
    def learner(self, examples: Examples) -> DualLearner:
        """A learner by this rule."""

    def chain_learner(self, examples: Examples, duals: ChainDuals) -> DualLearner:
        """The same for chains, which are the examples; compiled if it can be."""
        return self.learner(examples)
