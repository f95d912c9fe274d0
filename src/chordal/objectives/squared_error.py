"""Squared error on indicators: least-squares classification, for comparison."""

from __future__ import annotations

from typing import ClassVar, final

from chordal.objectives._single import SingleVariableObjective, per_variable
from chordal.potentials import Floats
from chordal.structures import Structure


@final
class SquaredError(SingleVariableObjective):
    """½ Σ over labels of (score − [label is gold])², for single variables.

    It serves for comparison. A gold score above 1 is penalised like an error, so points far on the
    correct side pull the boundary towards them. With three classes in a row, the middle one may
    never be predicted. 'likelihood' and 'crammer_singer' do not have this flaw.

    Examples
    --------
    >>> from chordal.inference.exhaustive import ExhaustiveInference
    >>> from chordal.potentials import Potentials
    >>> from chordal.structures import Chain
    >>> p = Potentials(Chain([1, 1], n_labels=2), unary=[3, 0, 0, 1], tables=[])
    >>> SquaredError().evaluate(p, [0, 1], ExhaustiveInference()).values
    array([2., 0.])
    """

    relative: ClassVar[bool] = False
    smooth: ClassVar[bool] = True

    def losses(self, structure: Structure, scores: Floats, gold: Floats) -> tuple[Floats, Floats]:
        """Half the squared distance of scores from indicators."""
        error = scores - gold
        return 0.5 * per_variable(structure, error * error), error
