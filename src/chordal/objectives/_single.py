"""The base class of losses of single variables, without cliques."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from chordal._errors import UnsupportedError
from chordal._validate import check_weight
from chordal.inference import Inference
from chordal.objectives._base import Evaluation, Objective, hard_labels
from chordal.potentials import Floats, Potentials
from chordal.structures import Structure
from chordal.targets import Target


class SingleVariableObjective(Objective):
    """A sum of losses of single variables, from the scores of their labels."""

    convex: ClassVar[bool] = True

    @abstractmethod
    def losses(self, structure: Structure, scores: Floats, gold: Floats) -> tuple[Floats, Floats]:
        """The loss of each variable, and its derivative by the scores.

        scores : float64 [n_states]
        gold : float64 [n_states], 1 at the gold labels and 0 elsewhere
        """

    def evaluate(
        self,
        potentials: Potentials,
        labels: Target | None,
        inference: Inference,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Evaluation:
        """The sum of the losses of single variables, and its derivative."""
        s = potentials.structure
        self.require(inference, s)
        check_weight(weight, s.n_examples)
        chosen = potentials.checked_labels(hard_labels(self, labels))
        gold = np.zeros(s.n_states)
        gold[s.state_offsets[:-1] + chosen] = 1.0
        of_variable, slope = self.losses(s, potentials.unary, gold)
        example = np.repeat(np.arange(s.n_examples), np.diff(s.variable_offsets))
        values = np.zeros(s.n_examples)
        np.add.at(values, example, of_variable)
        if weight is not None:
            values = weight * values
            slope = slope * np.repeat(weight, np.diff(s.state_offsets[s.variable_offsets]))
        return Evaluation(values, potentials.like(slope, np.zeros_like(potentials.tables)))

    def require(self, inference: Inference, structure: Structure) -> None:
        """Raise an error for structures with cliques."""
        if structure.n_cliques:
            raise UnsupportedError(
                f"objective {self.name!r} is for single variables, but this structure has "
                f"{structure.n_cliques} cliques; use 'hinge' or 'likelihood'"
            )
        super().require(inference, structure)


def per_variable(structure: Structure, of_states: Floats) -> Floats:
    """The sum over each variable's labels."""
    if structure.n_variables == 0:
        return np.zeros(0)
    return np.asarray(np.add.reduceat(of_states, structure.state_offsets[:-1]))
