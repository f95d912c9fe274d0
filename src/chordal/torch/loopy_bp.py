"""Loopy belief propagation as a layer: marginals by messages, and Bethe's log Z."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from chordal.torch import _fixed_point
from chordal.torch._approximate import Approximate, Iterations
from chordal.torch._topology import GraphScores, Topology


@final
class LoopyBP(Iterations):
    """Settings of loopy belief propagation, for `StructuredCRF(inference=…)`.

    One iteration updates all messages at once. Without loops, answers are exact after as many
    iterations as the longest path has edges. With loops, log Z is Bethe's approximation.

    Parameters
    ----------
    n_iter, gradient
        As in `MeanField`.
    tol : float
        "implicit" stops when no message changes by more than this share of the largest one.
    damping : float
        The share of the old message that is kept, in log space; from 0 to below 1.

    Examples
    --------
    >>> import torch
    >>> from chordal.structures import Tree
    >>> from chordal.torch import StructuredCRF
    >>> tree = Tree([[-1, 0, 0]], n_labels=2)
    >>> exact, loopy = StructuredCRF(tree), StructuredCRF(tree, inference=LoopyBP(n_iter=2))
    >>> _ = loopy.load_state_dict(exact.state_dict())
    >>> unary = torch.randn(4, 3, 2)
    >>> torch.allclose(exact.marginals(unary), loopy.marginals(unary), atol=1e-6)
    True
    """

    def __init__(
        self,
        n_iter: int | None = None,
        gradient: str = "unrolled",
        tol: float = 1e-6,
        damping: float = 0.0,
    ) -> None:
        super().__init__(n_iter, gradient, tol, damping)

    def on(self, topology: Topology) -> LoopyBPAnswers:
        """Answers on a structure."""
        return LoopyBPAnswers(topology, self)


class LoopyBPAnswers(Approximate):
    """Answers of loopy belief propagation on one structure.

    Messages are [B, 2E, L], in log space: those to the second ends of all edges, then those to the
    first ends.
    """

    name = "loopy_bp"
    source: Tensor  # [2E]
    target: Tensor
    degree: Tensor  # [N]

    def __init__(self, topology: Topology, iterations: Iterations) -> None:
        super().__init__(topology, iterations)
        first, second = topology.scopes.reshape(-1, 2).unbind(1)
        target = torch.cat([second, first])
        degree = torch.bincount(target, minlength=topology.n_variables)
        self.register_buffer("source", torch.cat([first, second]), persistent=False)
        self.register_buffer("target", target, persistent=False)
        self.register_buffer("degree", degree, persistent=False)

    def log_partition(self, scores: GraphScores) -> Tensor:
        """[B]: Bethe's approximation, a sum of log Z of single edges and variables."""
        messages = self._messages(scores)
        beliefs = _beliefs(messages, scores.unary, self.target)
        edges = self._edge_beliefs(messages, scores)
        alone = (beliefs.logsumexp(2) * (1 - self.degree)).sum(1)
        return alone + edges.logsumexp((2, 3)).sum(1)

    def marginals(self, scores: GraphScores) -> Tensor:
        """[B, N, L]."""
        return _beliefs(self._messages(scores), scores.unary, self.target).softmax(2)

    def clique_marginals(self, scores: GraphScores) -> Tensor:
        """[B, cells]."""
        beliefs = self._edge_beliefs(self._messages(scores), scores)
        return beliefs.flatten(2).softmax(2).flatten(1)

    def _messages(self, scores: GraphScores) -> Tensor:
        batch, _, n_labels = scores.unary.shape
        start = scores.unary.new_zeros(batch, len(self.source), n_labels)
        indices = [self.source, self.target]
        return self.iterations.run(self.name, start, scores.unary, scores.edge_tables(), indices)

    def _edge_beliefs(self, messages: Tensor, scores: GraphScores) -> Tensor:
        """[B, E, L, L], in log space."""
        first, second = _outgoing(messages, scores.unary, self.source, self.target)
        return first.unsqueeze(3) + scores.edge_tables() + second.unsqueeze(2)


def _beliefs(messages: Tensor, unary: Tensor, target: Tensor) -> Tensor:
    """[B, N, L]: unary scores and all messages that arrive."""
    return unary.index_add(1, target, messages)


def _outgoing(
    messages: Tensor, unary: Tensor, source: Tensor, target: Tensor
) -> tuple[Tensor, Tensor]:
    """[B, E, L] each: messages to the first and second ends of edges, from all but the edge."""
    n_edges = len(source) // 2
    heard = _beliefs(messages, unary, target)[:, source] - messages.roll(n_edges, 1)
    return heard[:, :n_edges], heard[:, n_edges:]


def _step(
    messages: Tensor, unary: Tensor, tables: Tensor, indices: Sequence[Tensor], damping: float
) -> Tensor:
    source, target = indices
    there, back = _outgoing(messages, unary, source, target)
    new = torch.cat(
        [
            (there.unsqueeze(3) + tables).logsumexp(2),
            (back.unsqueeze(2) + tables).logsumexp(3),
        ],
        1,
    ).log_softmax(2)
    return new if damping == 0 else damping * messages + (1 - damping) * new


_fixed_point.register(LoopyBPAnswers.name, _step)
