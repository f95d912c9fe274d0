"""AROW: adaptive regularisation of weights, steps shrink as a weight gets certain."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from typing import ClassVar, final

from chordal import _kernels
from chordal.oracle import Floats
from chordal.oracle.examples import Mistake
from chordal.oracle.rules.mistake import MistakeRule
from chordal.solvers._base import number
from chordal.solvers._online import MistakeDriven


@final
@dataclass(eq=False)
class AROW(MistakeDriven):
    """Adaptive regularisation of weights, with one variance for each weight.

    It updates the weights if the best labelling ŷ is not the gold one. With δ = φ(y) − φ(ŷ) and ℓ =
    score(ŷ) − score(y) + number of wrong labels: w += ℓ Σδ / (r + δᵀΣδ), Σ⁻¹ += δδᵀ / r. Weights
    that were updated often have a small variance and move little. `l2` is not used.

    Parameters
    ----------
    variance : float, default=1.0
        Initial variance of every weight.
    regularization : float, default=10.0
        r: larger values give smaller steps and slower falling variances. It is CRFsuite's gamma,
        where the default is 1. On held-out training data of CoNLL-2000, 10 makes fewer errors.

    References
    ----------
    Crammer, Kulesza and Dredze (2009), Adaptive regularization of weight vectors.
    """

    variance: float = number(1.0, strict=True)
    regularization: float = number(10.0, strict=True)

    objectives: ClassVar[tuple[str, ...]] = ("hinge",)

    def _rule(self) -> MistakeRule:
        kernel = _kernels.Arow(float(self.regularization))
        return MistakeRule(self._step, kernel, averaged=False, memory=float(self.variance))

    def _step(self, mistake: Mistake, w: Floats, memory: Floats) -> float:
        """`memory` is the diagonal of Σ."""
        x, loss = mistake.weight * mistake.difference, mistake.lead + mistake.n_wrong
        spread = float(x @ (memory * x))
        if not isfinite(spread):
            return inf
        w += loss / (self.regularization + spread) * memory * x
        memory /= 1.0 + memory * x * x / self.regularization
        return mistake.weight * loss
