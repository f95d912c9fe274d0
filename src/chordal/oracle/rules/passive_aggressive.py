"""The passive–aggressive rule: the smallest change that gives the gold labelling its margin."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Literal

from chordal import _kernels
from chordal.oracle.rules._base import Mistake
from chordal.oracle.rules._mistakes import MistakeRule
from chordal.potentials import Floats

Variant = Literal["hard", "linear", "squared"]


@dataclass(frozen=True)
class PassiveAggressiveRule(MistakeRule):
    """w += τ (φ(gold) − φ(best)), with the τ that makes up for the loss.

    Attributes
    ----------
    variant : {"hard", "linear", "squared"}
        How `aggressiveness` bounds τ: not at all, by a limit, or softly.
    error_sensitive : bool
        The margin is √(number of wrong labels), or else 1.
    """

    variant: Variant = "linear"
    aggressiveness: float = 1.0
    error_sensitive: bool = True
    averaged: bool = True

    def step(self, mistake: Mistake, w: Floats, memory: Floats) -> float:
        loss = mistake.lead + (sqrt(mistake.n_wrong) if self.error_sensitive else 1.0)
        norm = float(mistake.difference @ mistake.difference)
        if norm == 0.0 or not isfinite(norm):
            return 0.0 if norm == 0.0 else inf
        tau = loss / norm
        if self.variant == "linear":
            tau = min(self.aggressiveness, tau)
        elif self.variant == "squared":
            tau = loss / (norm + 0.5 / self.aggressiveness)
        w += mistake.weight * tau * mistake.difference
        return mistake.weight * loss

    def kernel(self) -> _kernels.PassiveAggressive:
        return _kernels.PassiveAggressive(self.variant, self.aggressiveness, self.error_sensitive)
