"""Exponentiated gradient: dual variables as scores, moved towards those that the weights give.

Reference: Collins et al. (2008), Exponentiated gradient algorithms for conditional random fields
and max-margin Markov networks.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._errors import UnsupportedError
from chordal._saved import Kept
from chordal.oracle._chain_arrays import ChainDuals
from chordal.oracle.examples import DualLearner, DualRule, StructuredExamples
from chordal.oracle.rules.frank_wolfe import DualState
from chordal.potentials import Floats
from chordal.structures import offsets_of

Ints = NDArray[np.int64]

SHARPNESS = 0.5  # K of the first visit to all examples, in units of 1 / cost
RISE = 20.0  # visits after which K grows faster


class ExponentiatedRule(DualRule):
    """Multiplicative steps on the distribution of an example's labellings."""

    def learner(self, examples: StructuredExamples, duals: ChainDuals | None = None) -> DualLearner:
        """A compiled learner of chains."""
        if duals is not None:
            return ChainExponentiated(examples, duals)
        raise UnsupportedError(
            "dual variables by the rule 'exponentiated_gradient' are kept for chains alone; use "
            "solver 'block_frank_wolfe' or 'one_slack', or for the likelihood 'lbfgs'"
        )


class ChainExponentiated(Kept):
    """Chains, in a compiled loop.

    The hinge is the limit K → ∞ of losses log Σ exp(K score) / K, and K grows from visit to visit.
    """

    kept: ClassVar[tuple[str, ...]] = ("_visits",)
    filled: ClassVar[tuple[str, ...]] = ("_w", "_theta", "_eta", "_term")

    def __init__(self, examples: StructuredExamples, duals: ChainDuals) -> None:
        self._examples, self._duals, chains = examples, duals, duals.chains
        self._centre = np.zeros(examples.n_weights) if examples.centre is None else examples.centre
        self._w = chains.spread(self._centre)
        edges = np.maximum(chains.lengths - 1, 0)
        tables = np.minimum(edges, 1) if chains.tied else edges
        offsets = offsets_of(chains.lengths * chains.n_labels + tables * chains.n_labels**2)
        highest = duals.highest_cost
        self._visits, self._sharpness = 0, SHARPNESS / highest if highest > 0.0 else SHARPNESS
        self._term, self._eta = np.zeros(examples.n_examples), np.zeros(examples.n_examples)
        self._theta = np.zeros(int(offsets[-1]))
        self._arrays = _kernels.Exponentiated(
            w=self._w,
            theta=self._theta,
            theta_offsets=offsets,
            eta=self._eta,
            term=self._term,
        )

    def visit(self, order: Ints) -> None:
        """Improve the dual variables of these examples in turn."""
        duals, order = self._duals, self._examples.checked(order)
        self._visits += 1
        sharpness = self._sharpness * self._visits * (1.0 + self._visits / RISE)
        _kernels.chain_exponentiated(
            duals.chains.arrays,
            duals.costs,
            order,
            self._examples.l2,
            1.0 if duals.soft else sharpness,
            duals.soft,
            self._arrays,
        )

    def state(self) -> tuple[Floats, float]:
        """The weights of the dual variables, and the dual value."""
        weights = self._duals.chains.gather(self._w)
        linear = float(self._duals.sample_weight @ self._term)
        return weights, DualState(self._examples).reach(weights, linear)
