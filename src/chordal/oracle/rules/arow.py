"""The rule of adaptive regularisation of weights, with a variance for each weight."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite

from chordal import _kernels
from chordal.oracle.rules._base import Mistake
from chordal.oracle.rules._mistakes import MistakeRule
from chordal.potentials import Floats


@dataclass(frozen=True)
class AROWRule(MistakeRule):
    """With δ = φ(gold) − φ(best): w += ℓ Σδ / (r + δᵀΣδ), Σ⁻¹ += δδᵀ / r; r: `regularization`."""

    regularization: float = 1.0
    variance: float = 1.0  # of every weight at the beginning
    averaged: bool = False

    @property
    def memory(self) -> float:  # type: ignore[override]
        """The first variance."""
        return self.variance

    def step(self, mistake: Mistake, w: Floats, memory: Floats) -> float:
        x, loss = mistake.weight * mistake.difference, mistake.lead + mistake.n_wrong
        spread = float(x @ (memory * x))
        if not isfinite(spread):
            return inf
        w += loss / (self.regularization + spread) * memory * x
        memory /= 1.0 + memory * x * x / self.regularization
        return mistake.weight * loss

    def kernel(self) -> _kernels.Arow:
        return _kernels.Arow(self.regularization)
