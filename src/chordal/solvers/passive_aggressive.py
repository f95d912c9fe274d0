"""Passive–aggressive: the smallest change of the weights that gives the gold labelling a margin."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import ClassVar, Literal, final, get_args

from chordal import _kernels
from chordal._validate import check_choice
from chordal.oracle import Floats
from chordal.oracle.examples import Mistake
from chordal.oracle.rules.mistake import MistakeRule
from chordal.solvers._base import number
from chordal.solvers._online import MistakeDriven

Variant = Literal["hard", "linear", "squared"]


@final
@dataclass(eq=False)
class PassiveAggressive(MistakeDriven):
    """Passive–aggressive updates, averaged over all examples by default.

    If the best labelling ŷ is not the gold one, w += τ (φ(y) − φ(ŷ)). τ follows from the loss ℓ =
    score(ŷ) − score(y) + margin. `l2` is not used.

    Parameters
    ----------
    variant : {"hard", "linear", "squared"}, default="linear"
        The step size τ, with n = ‖φ(y) − φ(ŷ)‖² and C the aggressiveness. "hard" (PA): ℓ/n, without
        limit. "linear" (PA-I): min(C, ℓ/n). "squared" (PA-II): ℓ / (n + 1/2C). CRFsuite calls them
        0, 1 and 2.
    aggressiveness : float, default=1.0
        C: limits how far one example moves the weights.
    error_sensitive : bool, default=True
        Whether the margin is √(number of wrong labels); if not, it is 1.
    averaged : bool, default=True
        Whether the result is the mean of the weights over all examples; if not, the last weights.

    References
    ----------
    Crammer et al. (2006), Online passive-aggressive algorithms.
    """

    variant: Variant = "linear"
    aggressiveness: float = number(1.0, strict=True)
    error_sensitive: bool = True
    averaged: bool = True

    objectives: ClassVar[tuple[str, ...]] = ("hinge",)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("variant", self.variant, get_args(Variant))

    def _rule(self) -> MistakeRule:
        settings = (self.variant, float(self.aggressiveness), bool(self.error_sensitive))
        kernel = _kernels.PassiveAggressive(*settings)
        return MistakeRule(self._step, kernel, averaged=bool(self.averaged))

    def _step(self, mistake: Mistake, w: Floats, memory: Floats) -> float:
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
