"""What is known of a problem before any work: what a solver says yes or no to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from chordal.objectives import TARGETS, Objective


class Problem(NamedTuple):
    """What training is about to minimise.

    Attributes
    ----------
    objective : Objective
    targets : {"hard", "soft", "partial"}
        What is known of the labels.
    l2 : float or dict by group of weights
    partial : bool
        Some weights stay as they are.
    n_weights : int
    exempt : bool
        Some weights, such as intercepts, have no l2.
    chains : bool
        Examples are chains, as far as is known before they are read.
    """

    objective: Objective
    targets: str = "hard"
    l2: float | Mapping[str, float] = 1.0
    partial: bool = False
    n_weights: int = 0
    exempt: bool = False
    chains: bool = True

    @property
    def described_targets(self) -> str:
        """The kind of targets, in words."""
        return TARGETS[self.targets]
