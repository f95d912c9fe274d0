"""Exact inference on chains by forward–backward and Viterbi, compiled."""

from __future__ import annotations

from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from chordal import _kernels
from chordal._validate import check_choice
from chordal.inference._answers import ByCost, Decoded, Labels, Marginals, Ranked, Spans
from chordal.inference._base import Inference
from chordal.potentials import Floats, Potentials, refuse_infeasible, refuse_other_shape
from chordal.structures import Chain, Structure

UNIFORMS = 2_000_000  # drawn at a time when sampling


@final
class ChainInference(Inference):
    """Forward–backward and Viterbi: linear in the length, quadratic in the number of labels.

    Parameters
    ----------
    domain : {"auto", "scaled", "log"}, default="auto"
        How sums are computed. "auto": in scaled probabilities if the range of scores allows it,
        else in log space. "scaled": an error if the range is too large. "log": always in log space.

    Examples
    --------
    >>> from chordal.structures import Chain
    >>> from chordal.potentials import Potentials
    >>> p = Potentials(Chain([3], n_labels=2), unary=[0, 1, 0, 0, 2, 0], tables=[1, 0, 0, 1])
    >>> best = ChainInference().map(p)
    >>> best.labels, best.score
    (array([0, 0, 0], dtype=int32), array([4.]))
    """

    answers: ClassVar[frozenset[str]] = frozenset(
        {
            "log_partition",
            "marginals",
            "marginals_derivative",
            "map",
            "map_by_cost",
            "k_best",
            "sample",
            "entropy",
            "span_log_probability",
        }
    )

    def __init__(
        self,
        domain: str = "auto",
        *,
        time_limit: float | None = None,
        memory_limit: float | None = None,
    ) -> None:
        super().__init__(time_limit=time_limit, memory_limit=memory_limit)
        check_choice("domain", domain, ("auto", "scaled", "log"))
        self.domain = domain

    def supports(self, structure: Structure) -> bool:
        """Chains."""
        return isinstance(structure, Chain)

    def exact_on(self, structure: Structure) -> bool:
        """Exact on every supported structure."""
        return self.supports(structure)

    def cost(self, structure: Structure, question: str) -> float:
        """One pass over all table cells."""
        return 1.0

    def memory(self, structure: Structure, question: str, n: int = 1) -> float:
        """A row of labels per variable; k rows for `k_best`."""
        longest = np.diff(structure.state_offsets[structure.variable_offsets]).max(initial=0)
        rows = 4.0 * n if question == "k_best" else 16.0
        return rows * float(longest) + 4.0 * n * structure.n_variables

    def log_partition(self, potentials: Potentials) -> Floats:
        """log Z, by the forward pass."""
        out = np.empty(potentials.structure.n_examples)
        _kernels.chain_log_partition(self._scores(potentials, "log_partition"), self.domain, out)
        return out

    def marginals(
        self, potentials: Potentials, weight: Floats | None = None, overwrite: bool = False
    ) -> Marginals:
        """Marginals, by forward–backward."""
        # The kernel is done with a chain's scores before it writes that chain's marginals.
        unary = potentials.unary if overwrite else np.empty_like(potentials.unary)
        parts = potentials.like(unary, np.zeros(len(potentials.tables)))
        log_partition = np.empty(potentials.structure.n_examples)
        _kernels.chain_marginals(
            self._scores(potentials, "marginals"),
            parts.writable,
            self.domain,
            weight=weight,
            log_partition=log_partition,
        )
        refuse_infeasible(log_partition)
        return Marginals(log_partition, parts)

    def marginals_derivative(
        self,
        potentials: Potentials,
        direction: Potentials,
        weight: Floats | None = None,
        overwrite: bool = False,
    ) -> Potentials:
        """The derivative, by forward–backward on values and slopes."""
        scores = self._scores(potentials, "marginals_derivative")
        refuse_other_shape(potentials, direction)
        unary = direction.unary if overwrite else np.empty_like(direction.unary)
        parts = potentials.like(unary, np.zeros(len(direction.tables)))
        log_partition = np.empty(potentials.structure.n_examples)
        _kernels.chain_marginals_derivative(
            scores,
            parts.writable,
            self.domain,
            direction=direction.scores,
            weight=weight,
            log_partition=log_partition,
        )
        refuse_infeasible(log_partition)
        return parts

    def map(self, potentials: Potentials) -> Decoded:
        """The best labelling, by Viterbi."""
        structure = potentials.structure
        labels = np.zeros(structure.n_variables, dtype=np.int32)
        score = np.empty(structure.n_examples)
        _kernels.chain_best_labelling(self._scores(potentials, "map"), score, labels)
        refuse_infeasible(score)
        return Decoded(labels, score)

    def map_by_cost(self, potentials: Potentials, price: NDArray[np.int64]) -> ByCost:
        """The best labelling at every cost."""
        scores = self._scores(potentials, "map_by_cost")
        found = ByCost.empty(potentials.structure, price)
        _kernels.chain_best_by_cost(
            scores,
            price=price,
            level_offsets=found.offsets,
            score=found.score,
            labels=found.labels,
        )
        refuse_infeasible(np.maximum.reduceat(found.score, found.offsets[:-1]))
        return found

    def k_best(self, potentials: Potentials, k: int) -> Ranked:
        """The best labellings, by list Viterbi."""
        structure = potentials.structure
        labels = np.zeros(k * structure.n_variables, dtype=np.int32)
        score = np.empty(k * structure.n_examples)
        _kernels.chain_k_best(self._scores(potentials, "k_best"), k, score, labels)
        ranked = Ranked(labels.reshape(k, -1), score.reshape(-1, k))
        refuse_infeasible(ranked.score[:, 0])
        return ranked

    def sample(self, potentials: Potentials, n: int, rng: np.random.Generator) -> Labels:
        """Exact samples, by forward filtering and backward sampling."""
        scores = self._scores(potentials, "sample")
        refuse_infeasible(self.log_partition(potentials))
        out = np.zeros((n, potentials.structure.n_variables), dtype=np.int32)
        at_once = max(1, UNIFORMS // max(1, out.shape[1]))  # random numbers need memory too
        for first in range(0, n, at_once):
            rows = out[first : first + at_once]
            uniform = rng.random(rows.size)
            _kernels.chain_sample(scores, self.domain, uniform, rows.reshape(-1))
        return out

    def entropy(self, potentials: Potentials) -> Floats:
        """The entropy, by forward–backward."""
        scores = self._scores(potentials, "entropy")
        refuse_infeasible(self.log_partition(potentials))
        out = np.empty(potentials.structure.n_examples)
        _kernels.chain_entropy(scores, self.domain, out)
        return out

    def span_log_probability(self, potentials: Potentials, spans: Spans) -> Floats:
        """log probabilities of labels on spans."""
        scores = self._scores(potentials, "span_log_probability")
        refuse_infeasible(self.log_partition(potentials))
        query, order = spans.in_order(potentials.structure)
        found = np.empty(len(order))
        _kernels.chain_span_log_probability(
            scores,
            self.domain,
            example=query.example,
            start=query.start,
            length=query.length,
            allowed=query.allowed,
            out=found,
        )
        out = np.empty(len(order))
        out[order] = found
        return out

    def _scores(self, potentials: Potentials, question: str) -> _kernels.Scores:
        self.require(question, potentials.structure)
        return potentials.scores
